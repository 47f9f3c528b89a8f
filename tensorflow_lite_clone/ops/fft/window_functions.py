"""Window functions of signal processing: Bartlett's, Blackman's, Hamming's, Hann's, Kaiser's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.core.device import Layout
from tensorflow_lite_clone.core.dtypes import DType, as_dtype, get_default_dtype
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.signature import checked
from tensorflow_lite_clone.ops.create.constructors import finish
from tensorflow_lite_clone.tensor import Tensor


def _window(
    name: str,
    values: Callable[..., Any],
    length: int,
    periodic: bool,
    dtype: DType | None,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    """``values(F, x)`` at `length` places x in [0, 1], without the last one if `periodic`."""
    if not hasattr(length, "__index__"):
        raise TypeError(
            f"{name}(): argument 'window_length' (position 1) must be int, not "
            f"{type(length).__name__}"
        )
    dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
    if dtype.kind != "f":
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    if length < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={length}"
        )
    backend = backends.load(device)
    F = backend.F
    if length < 2:
        array = F.ones((length,), dtype=F.float64)
    else:
        last = length if periodic else length - 1
        x = F.divide(F.astype(F.arange(length), F.float64), last)
        array = backend.guarded(values)(F, x)
    return finish(F.astype(array, dtype), backend, requires_grad)


def _cosines(*coefficients: float) -> Callable[..., Any]:
    """``a + b cos(2 pi x) + c cos(4 pi x) + ...``"""

    def values(F: Any, x: Any) -> Any:
        terms = [a * F.cos(x * (2 * math.pi * k)) for k, a in enumerate(coefficients)]
        return sum(terms[1:], terms[0])

    return values


def _public(name: str, values: Callable[..., Any], formula: str) -> Callable[..., Tensor]:
    def window(
        window_length: int,
        periodic: bool = True,
        *,
        dtype: DType | None = None,
        layout: Layout | None = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Tensor:
        return _window(name, values, window_length, periodic, dtype, device, requires_grad)

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"{formula}, with N = `window_length`, or one less unless `periodic`."
    export(checked(window), "torch", name=name)
    return window


hann_window = _public("hann_window", _cosines(0.5, -0.5), "``(1 - cos(2 pi n / N)) / 2``")
blackman_window = _public(
    "blackman_window",
    _cosines(0.42, -0.5, 0.08),
    "``0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)``",
)
bartlett_window = _public(
    "bartlett_window", lambda F, x: 1 - F.abs(2 * x - 1), "A triangle: ``1 - abs(2 n / N - 1)``"
)


@public("torch")
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """``alpha - beta cos(2 pi n / N)``, N as in `hann_window`."""
    values = _cosines(alpha, -beta)
    return _window("hamming_window", values, window_length, periodic, dtype, device, requires_grad)


@public("torch")
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """``i0(beta sqrt(1 - (2 n / N - 1)^2)) / i0(beta)``, N as in `hann_window`."""

    def values(F: Any, x: Any) -> Any:
        one = F.ones((), dtype=F.float64)
        place = F.sqrt(F.maximum(4 * x * (1 - x), 0 * one))
        # the scaled function, which does not overflow
        return F.i0e(beta * place) / F.i0e(beta * one) * F.exp(beta * (place - 1))

    return _window("kaiser_window", values, window_length, periodic, dtype, device, requires_grad)

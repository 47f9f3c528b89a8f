"""``torch.signal.windows``: window functions for the analysis of spectra.

Each has `M` samples. It is symmetric, or with ``sym=False`` periodic: the first `M` samples of the
symmetric one of ``M + 1``. The dtype is float32 or float64, else ValueError is raised, as it is for
a negative `M`.

>>> torch.signal.windows.hann(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

from tensorflow_lite_clone.core.device import Layout, strided
from tensorflow_lite_clone.core.dtypes import as_dtype, float32, float64, get_default_dtype
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.special.special_functions import i0
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
    "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


def _window(formula: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A public window function from ``formula(n, steps, **parameters)``.

    `n` are the numbers of the samples, in float64; `steps` is how many lie between the ends.
    """
    name = formula.__name__

    @functools.wraps(formula)
    def window(
        M: int,
        *,
        sym: bool = True,
        dtype: Any = None,
        layout: Layout = strided,
        device: Any = None,
        requires_grad: bool = False,
        **parameters: Any,
    ) -> Tensor:
        if not hasattr(M, "__index__"):
            raise TypeError(f"{name}(): argument 'M' must be int, not {type(M).__name__}")
        if M < 0:
            raise ValueError(f"{name} requires a non-negative window length, got M={M}")
        if layout is not strided:
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        kind = get_default_dtype() if dtype is None else as_dtype(dtype)
        if kind not in (float32, float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {kind}")
        if parameters.get("center") is not None and sym:
            raise ValueError(f"{name}: a symmetric window has its center in the middle")
        n = arange(M, dtype=float64, device=device)
        steps = M - 1 if sym or M < 2 else M
        return formula(n, steps, **parameters).to(kind).requires_grad_(requires_grad)

    del window.__wrapped__  # its signature is the public one
    return window


def _along(n: Tensor, steps: int) -> Tensor:
    """Where the samples lie between the ends 0 and 1; a single one is in the middle."""
    return n / steps if steps > 0 else n + 0.5


@_window
def bartlett(n: Tensor, steps: int) -> Tensor:
    """``1 - |2 n / (M - 1) - 1|``: a triangle that ends in zeros."""
    return 1 - (2 * _along(n, steps) - 1).abs()


@_window
def cosine(n: Tensor, steps: int) -> Tensor:
    """``sin(pi (n + 1/2) / M)``."""
    return ((n + 0.5) * (math.pi / max(steps + 1, 1))).sin()


@_window
def exponential(n: Tensor, steps: int, *, center: float | None = None, tau: float = 1.0) -> Tensor:
    """``exp(-|n - center| / tau)``; `center` is for windows that are not symmetric."""
    if tau <= 0:
        raise ValueError(f"exponential: tau must be positive, got {tau}")
    return (-(n - (steps / 2 if center is None else center)).abs() / tau).exp()


@_window
def gaussian(n: Tensor, steps: int, *, std: float = 1.0) -> Tensor:
    """``exp(-(n - (M - 1) / 2)^2 / (2 std^2))``."""
    if std <= 0:
        raise ValueError(f"gaussian: std must be positive, got {std}")
    return (((n - steps / 2) / std).square() * -0.5).exp()


@_window
def kaiser(n: Tensor, steps: int, *, beta: float = 12.0) -> Tensor:
    """``I0(beta sqrt(1 - (2 n / (M - 1) - 1)^2)) / I0(beta)``."""
    if beta < 0:
        raise ValueError(f"kaiser: beta must be non-negative, got {beta}")
    x = 2 * _along(n, steps) - 1
    return i0(beta * (1 - x * x).sqrt()) / i0(n.new_full((), beta))


def _cosines(n: Tensor, steps: int, a: Iterable[float]) -> Tensor:
    """``sum_k (-1)^k a_k cos(2 pi k n / (M - 1))``."""
    x = 2 * math.pi * _along(n, steps)
    result = n * 0
    for k, weight in enumerate(a):
        result = result + (-1) ** k * weight * (k * x).cos()
    return result


@_window
def general_cosine(n: Tensor, steps: int, *, a: Iterable[float]) -> Tensor:
    """``sum_k (-1)^k a_k cos(2 pi k n / (M - 1))``; 1 for a single sample."""
    if not isinstance(a, Iterable):
        raise TypeError(f"general_cosine: the coefficients must be a sequence, got {a!r}")
    a = list(a)
    if not a:
        raise ValueError("general_cosine: there must be a coefficient")
    return _cosines(n, steps, a) if steps > 0 else n + 1


@_window
def general_hamming(n: Tensor, steps: int, *, alpha: float = 0.54) -> Tensor:
    """``alpha - (1 - alpha) cos(2 pi n / (M - 1))``."""
    return _cosines(n, steps, (alpha, 1 - alpha))


@_window
def hamming(n: Tensor, steps: int) -> Tensor:
    """`general_hamming` with 0.54."""
    return _cosines(n, steps, (0.54, 0.46))


@_window
def hann(n: Tensor, steps: int) -> Tensor:
    """`general_hamming` with 0.5: ends in zeros."""
    return _cosines(n, steps, (0.5, 0.5))


@_window
def blackman(n: Tensor, steps: int) -> Tensor:
    """`general_cosine` with 0.42, 0.5 and 0.08."""
    return _cosines(n, steps, (0.42, 0.5, 0.08))


@_window
def nuttall(n: Tensor, steps: int) -> Tensor:
    """`general_cosine` with four coefficients: low side lobes (Nuttall, 1981)."""
    return _cosines(n, steps, (0.3635819, 0.4891775, 0.1365995, 0.0106411))

"""The frequencies that belong to the elements of a discrete Fourier transform, and their order."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.core.device import Layout
from tensorflow_lite_clone.core.dtypes import DType, as_dtype, get_default_dtype
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import normalize_dim
from tensorflow_lite_clone.core.signature import whole_number
from tensorflow_lite_clone.core.strides import sizes_of
from tensorflow_lite_clone.ops.create.constructors import requiring_grad
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.decorators.out import dtype_of_out, write_filled
from tensorflow_lite_clone.ops.shape.rearrange import roll
from tensorflow_lite_clone.tensor import Tensor


def _halves(x: Tensor, dim: Any, up: bool) -> Tensor:
    """`x` rolled by half its size along `dim`, rounded up or down."""
    shape = x._storage.physical.shape
    if dim is None:
        axes = tuple(range(len(shape)))
    else:
        dims = sizes_of((dim,), "dim")
        if dims and not shape:
            raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
        axes = tuple([normalize_dim(axis, len(shape)) for axis in dims])
    return roll(x, tuple([(shape[axis] + up) // 2 for axis in axes]), axes)


@public("fft")
def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """`input` with the frequency 0 in the middle of `dim`, by default of all dimensions."""
    return _halves(input, dim, False)


@public("fft")
def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _halves(input, dim, True)


def _frequencies(
    name: str,
    n: Any,
    d: Any,
    half: bool,
    out: Tensor | None,
    dtype: DType | None,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    n = whole_number(f"{name}(): argument 'n'", n)
    if isinstance(d, Tensor):
        d = d.item()
    if type(d) is bool or not isinstance(d, (int, float)):
        raise TypeError(f"{name}(): argument 'd' must be float, not {type(d).__name__}")
    if out is not None:
        dtype = dtype_of_out(out, dtype)
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    if kind.kind not in "fc":
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    count = int(n / 2) + 1 if half else n
    if count < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {count}: [{count}]")
    width = n * float(d)
    step = 1 / width if width else math.copysign(math.inf, width)
    if out is not None and device is None:
        device = out.device
    if half:
        places = arange(count, dtype=kind, device=device)
    else:
        places = ifftshift(arange(-(n // 2), n - n // 2, dtype=kind, device=device))
    places *= step
    if out is not None:
        places = write_filled(name, out, places)
    return requiring_grad(places) if requires_grad else places


@public("fft")
def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """The frequencies of `fft`'s elements: ``[0, 1, ..., -2, -1] / (n d)``.

    `d` is the distance of samples. Negative ones follow the positive ones; for even `n` the
    highest is negative. Raises RuntimeError for dtypes of integers.
    """
    return _frequencies("fftfreq", n, d, False, out, dtype, device, requires_grad)


@public("fft")
def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """The frequencies of `rfft`'s elements: ``[0, 1, ..., n // 2] / (n d)``, as in `fftfreq`."""
    return _frequencies("rfftfreq", n, d, True, out, dtype, device, requires_grad)

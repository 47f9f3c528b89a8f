"""Reductions and scans, with two-byte floats accumulated in float32.

Reductions are those of `reduction`, and CuPy's for the dtypes and layouts that it declines.

`axis` is None, an int or a tuple.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.native import NATIVE
from tensorflow_lite_clone.backends.cupy.reduction import reduced

_f32 = np.dtype(np.float32)


def _narrow(dtype: Any) -> bool:
    """Whether a dtype is float16 or bfloat16 (which is no dtype of NumPy's own: kind V)."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def sum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    native = x.dtype if dtype is None else NATIVE.get(dtype, dtype)
    made = reduced("sum", x, axis, keepdims, None if dtype is None else native)
    if made is not NotImplemented:
        return made
    if _narrow(native):
        return cupy.sum(x, axis, _f32, None, keepdims).astype(native)
    return cupy.sum(x, axis, None if dtype is None else native, None, keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    made = reduced("mean", x, axis, keepdims)
    if made is not NotImplemented:
        return made
    total = cupy.sum(x, axis, _f32 if _narrow(x.dtype) else None, None, keepdims)
    result = total / (x.size // (total.size or 1)) if x.size else total / 0.0
    return result.astype(x.dtype) if _narrow(x.dtype) else result


def _place(find: Any, x: Any, axis: int | None, keepdims: bool) -> Any:
    """CuPy's place among several NaNs depends on the order of its reduction; the first is meant."""
    found = find(x, axis=axis, keepdims=keepdims)
    if x.dtype.kind != "f":
        return found
    nan = cupy.isnan(x)
    first = cupy.argmax(nan, axis=axis, keepdims=keepdims)
    return cupy.where(cupy.any(nan, axis=axis, keepdims=keepdims), first, found)


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    return _place(cupy.argmax, x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    return _place(cupy.argmin, x, axis, keepdims)


def prod(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    native = x.dtype if dtype is None else NATIVE.get(dtype, dtype)
    made = reduced("prod", x, axis, keepdims, native)
    if made is not NotImplemented:
        return made
    if _narrow(native):
        return cupy.prod(x, axis, _f32, None, keepdims).astype(native)
    return cupy.prod(x, axis, native, None, keepdims)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    made = reduced("max", x, axis, keepdims)
    return cupy.max(x, axis, None, keepdims) if made is NotImplemented else made


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    made = reduced("min", x, axis, keepdims)
    return cupy.min(x, axis, None, keepdims) if made is NotImplemented else made


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    made = reduced("any", x, axis, keepdims)
    return cupy.any(x, axis, None, keepdims) if made is NotImplemented else made


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    made = reduced("all", x, axis, keepdims)
    return cupy.all(x, axis, None, keepdims) if made is NotImplemented else made


def cumulative_sum(
    x: Any, *, axis: int = 0, dtype: Any = None, include_initial: bool = False
) -> Any:
    return _scan(cupy.cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: Any, *, axis: int = 0, dtype: Any = None, include_initial: bool = False
) -> Any:
    return _scan(cupy.cumprod, x, axis, dtype, 1 if include_initial else None)


def _scan(function: Any, x: Any, axis: int, dtype: Any, initial: int | None) -> Any:
    native = x.dtype if dtype is None else NATIVE.get(dtype, dtype)
    if _narrow(native):
        result = function(x.astype(_f32), axis).astype(native)
    else:
        result = function(x.astype(native, copy=False), axis, native)
    if initial is None:
        return result
    first = list(result.shape)
    first[axis] = 1
    return cupy.concatenate([cupy.full(first, initial, native), result], axis)


def _doubling(function: Any, x: Any, axis: int) -> Any:
    """A scan in log2(n) steps, each combining elements twice as far apart."""
    result = x.copy()
    lines, step = cupy.moveaxis(result, axis, -1), 1
    while step < x.shape[axis]:
        lines[..., step:] = function(lines[..., :-step], lines[..., step:])
        step *= 2
    return result


def cumulative_max(x: Any, *, axis: int) -> Any:
    return _doubling(cupy.maximum, x, axis)


def cumulative_min(x: Any, *, axis: int) -> Any:
    return _doubling(cupy.minimum, x, axis)


def cumulative_logsumexp(x: Any, *, axis: int) -> Any:
    if x.dtype.kind == "c":
        return _doubling(_complex_logaddexp, x.astype(np.complex128), axis).astype(x.dtype)
    return _doubling(cupy.logaddexp, x.astype(np.float64), axis).astype(x.dtype)


def _complex_logaddexp(x: Any, y: Any) -> Any:
    """The larger term, and the logarithm of 1 plus the ratio.

    So the imaginary part goes on from the larger term's, as on the CPU, instead of wrapping.
    """
    first = x.real >= y.real
    large, small = cupy.where(first, x, y), cupy.where(first, y, x)
    both = cupy.isinf(large.real) & (large.real == small.real)
    infinite = cupy.where(large.real < 0, small, cupy.log(cupy.exp(large) + cupy.exp(small)))
    return cupy.where(both, infinite, large + cupy.log1p(cupy.exp(small - large)))


def vecdot(x: Any, y: Any, /, *, axis: int = -1) -> Any:
    return sum(cupy.conj(x) * y, axis=axis)

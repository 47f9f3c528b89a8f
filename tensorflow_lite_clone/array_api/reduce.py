"""The standard's statistical and utility functions, and its scans."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.array_api._axes import axis_of_line, one_axis, several_axes
from tensorflow_lite_clone.array_api._promotion import alike
from tensorflow_lite_clone.array_api._register import word
from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import DType, int64, uint64
from tensorflow_lite_clone.ops.pointwise.complex_numbers import real
from tensorflow_lite_clone.ops.reduce import extremes, reductions, scan, statistics
from tensorflow_lite_clone.ops.reduce._arguments import (
    as_floating,
    is_integral,
    reduced_count,
    with_dtype,
)
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.ops.shape.memory import Clone
from tensorflow_lite_clone.tensor import Tensor


def _wide(x: Tensor, dtype: DType | None) -> DType | None:
    """`dtype`, or that of sums and products of integers; None for that of `x`."""
    if dtype is None and is_integral(x):
        return uint64 if x._storage.physical.dtype.kind == "u" else int64
    return dtype


@word
def sum(
    x: Tensor, /, *, axis: Any = None, dtype: DType | None = None, keepdims: bool = False
) -> Tensor:
    """The sum over `axis`; that of integers has 64 bits unless `dtype` says otherwise."""
    dtype = _wide(x, dtype)
    shape = x._storage.physical.shape
    axes = several_axes(axis, len(shape))
    return apply(reductions.Sum, x, axis=axes, keepdims=keepdims, dtype=dtype, shape=shape)


@word
def mean(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over `axis`; that of integers has the default dtype."""
    x = as_floating(x)
    shape = x._storage.physical.shape
    axes = several_axes(axis, len(shape))
    return apply(reductions.Mean, x, axis=axes, keepdims=keepdims, shape=shape)


@word
def prod(
    x: Tensor, /, *, axis: Any = None, dtype: DType | None = None, keepdims: bool = False
) -> Tensor:
    """The product over `axis`; that of integers has 64 bits unless `dtype` says otherwise."""
    x = with_dtype(x, _wide(x, dtype))
    axes = several_axes(axis, x.ndim)
    if not axes:
        return apply(Clone, x)
    for one in reversed(axes):  # the last first, so that the others keep their place
        x = apply(reductions.Prod, x, axis=one, keepdims=keepdims)
    return x


@word
def max(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element over `axis`."""
    shape = x._storage.physical.shape
    axes = several_axes(axis, len(shape))
    return apply(extremes.Amax, x, axis=axes, keepdims=keepdims, shape=shape)


@word
def min(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest element over `axis`."""
    shape = x._storage.physical.shape
    axes = several_axes(axis, len(shape))
    return apply(extremes.Amin, x, axis=axes, keepdims=keepdims, shape=shape)


@word
def var(
    x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The variance over `axis`; NaN where `correction` leaves no degree of freedom."""
    return _spread(statistics.Var, x, axis, correction, keepdims)


@word
def std(
    x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The standard deviation over `axis`; NaN where `correction` leaves no degree of freedom."""
    return _spread(statistics.Std, x, axis, correction, keepdims)


def _spread(op: Any, x: Tensor, axis: Any, correction: float, keepdims: bool) -> Tensor:
    x = as_floating(x)
    shape = x._storage.physical.shape
    axes = several_axes(axis, len(shape))
    if reduced_count(shape, axes) <= correction:
        return mean(real(x), axis=axes, keepdims=keepdims) * math.nan
    return apply(op, x, axis=axes, keepdims=keepdims, correction=correction, shape=shape)


@word
def any(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether any element over `axis` is true."""
    return apply(reductions.Any_, x, axis=several_axes(axis, x.ndim), keepdims=keepdims)


@word
def all(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether all elements over `axis` are true."""
    return apply(reductions.All_, x, axis=several_axes(axis, x.ndim), keepdims=keepdims)


@word
def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """How many elements over `axis` are not zero."""
    return sum(x != 0, axis=axis, keepdims=keepdims)


@word
def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The first place of the largest element along `axis`, by default of the flattened array."""
    return _place(extremes.Argmax, x, axis, keepdims)


@word
def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The first place of the smallest element along `axis`, by default of the flattened array."""
    return _place(extremes.Argmin, x, axis, keepdims)


def _place(op: Any, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    axis = None if axis is None else one_axis(axis, x.ndim)
    return apply(op, x, axis=axis, keepdims=keepdims)


def _cumulative(
    op: Any, x: Tensor, axis: int | None, dtype: DType | None, include_initial: bool
) -> Tensor:
    axis = axis_of_line(op.name, axis, x.ndim)
    x = with_dtype(x, _wide(x, dtype))
    result = apply(op, x, axis=axis)
    if not include_initial:
        return result
    shape = list(x.shape)
    shape[axis] = 1
    return cat([x.new_full(shape, 0 if op is scan.Cumsum else 1), result], axis)


@word
def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Running sums along `axis`, optionally from an initial 0."""
    return _cumulative(scan.Cumsum, x, axis, dtype, include_initial)


@word
def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Running products along `axis`, optionally from an initial 1."""
    return _cumulative(scan.Cumprod, x, axis, dtype, include_initial)


@word
def diff(
    x: Tensor,
    /,
    n: int = 1,
    *,
    axis: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The `n`-th differences of neighbours along `axis`, after joining `prepend` and `append`.

    `n` may stand second, as in NumPy and as scikit-learn has it; in the standard it is named.
    """
    axis = one_axis(axis, x.ndim)
    joined = [array for array in (prepend, x, append) if array is not None]
    return scan.diff(cat(alike(joined), axis) if len(joined) > 1 else x, n, axis)

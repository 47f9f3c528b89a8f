"""The standard's statistical and utility functions, and its scans."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.array_api._register import word
from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import DType, int64
from tensorflow_lite_clone.ops import extremes, reduce, scan, statistics
from tensorflow_lite_clone.ops._arguments import axes_of, axis_of, is_integral, with_dtype
from tensorflow_lite_clone.ops.join import cat
from tensorflow_lite_clone.tensor import Tensor


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """As `axes_of`, but () is no axis at all, not every one."""
    return () if axis == () else axes_of(axis, ndim)


@word
def sum(
    x: Tensor, /, *, axis: Any = None, dtype: DType | None = None, keepdims: bool = False
) -> Tensor:
    """The sum over `axis`."""
    if dtype is None and is_integral(x):
        dtype = int64
    shape = x._storage.array.shape
    axes = _axes(axis, len(shape))
    return apply(reduce.Sum, x, axis=axes, keepdims=keepdims, dtype=dtype, shape=shape)


@word
def mean(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over `axis`."""
    shape = x._storage.array.shape
    return apply(reduce.Mean, x, axis=_axes(axis, len(shape)), keepdims=keepdims, shape=shape)


@word
def prod(
    x: Tensor, /, *, axis: Any = None, dtype: DType | None = None, keepdims: bool = False
) -> Tensor:
    """The product over `axis`."""
    if dtype is None and is_integral(x):
        dtype = int64
    x = with_dtype(x, dtype)
    for one in reversed(_axes(axis, x.ndim)):  # the last first, so that the others keep their place
        x = apply(reduce.Prod, x, axis=one, keepdims=keepdims)
    return x


@word
def max(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element over `axis`."""
    shape = x._storage.array.shape
    axes = _axes(axis, len(shape))
    return apply(extremes.Amax, x, axis=axes, keepdims=keepdims, shape=shape)


@word
def min(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest element over `axis`."""
    shape = x._storage.array.shape
    axes = _axes(axis, len(shape))
    return apply(extremes.Amin, x, axis=axes, keepdims=keepdims, shape=shape)


@word
def var(
    x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The variance over `axis`."""
    return statistics.var(x, axis, keepdim=keepdims, correction=correction)


@word
def std(
    x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The standard deviation over `axis`."""
    return statistics.std(x, axis, keepdim=keepdims, correction=correction)


@word
def any(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether any element over `axis` is true."""
    return apply(reduce.Any_, x, axis=_axes(axis, x.ndim), keepdims=keepdims)


@word
def all(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether all elements over `axis` are true."""
    return apply(reduce.All_, x, axis=_axes(axis, x.ndim), keepdims=keepdims)


@word
def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """How many elements over `axis` are not zero."""
    return sum(x != 0, axis=axis, keepdims=keepdims)


@word
def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The first place of the largest element along `axis`."""
    return extremes.argmax(x, axis, keepdims)


@word
def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The first place of the smallest element along `axis`."""
    return extremes.argmin(x, axis, keepdims)


def _cumulative(
    op: Any, x: Tensor, axis: int | None, dtype: DType | None, include_initial: bool
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError("axis must be given for an array of more or fewer dimensions than 1")
        axis = 0
    axis = axis_of(axis, x.ndim)
    x = with_dtype(x, int64 if dtype is None and is_integral(x) else dtype)
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
    """The `n`-th differences of neighbours along `axis`.

    `n` may stand second, as in NumPy and as scikit-learn has it; in the standard it is named.
    """
    return scan.diff(x, n, axis, prepend, append)

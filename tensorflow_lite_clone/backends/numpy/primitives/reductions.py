"""Reductions and scans: NumPy's, with two-byte floats accumulated in wider ones as in PyTorch.

`axis` is None, an int or a tuple. Scans of floats accumulate in float64, also as in PyTorch.
"""

from __future__ import annotations

from functools import cache
from math import prod as _product
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.native import NATIVE
from tensorflow_lite_clone.backends.numpy.threads import parallel_for
from tensorflow_lite_clone.backends.numpy.tuning import tuning

_f32 = np.dtype(np.float32)
_f64 = np.dtype(np.float64)
_i64 = np.dtype(np.int64)


def _narrow(x: Any) -> bool:
    """Whether `x` is of float16 or bfloat16 (which is no dtype of NumPy's own: kind V)."""
    return x.itemsize == 2 and x.dtype.kind in "fV"


@cache
def _run(length: int, longest: int) -> int:
    """`length` up to `longest`, else its largest divisor from 64 to 256; 0 if it has none."""
    found = [n for n in range(64, 257) if length % n == 0]
    return length if 1 < length <= longest else found[-1] if found else 0


def _total(x: Any, axis: Any, keepdims: bool) -> Any:
    """The sum of floats.

    Many are first added up in runs, by products with ones: what lies in a row takes BLAS a fifth
    of NumPy's time, with the errors of pairwise sums, and rows NumPy would add one by one.
    """
    if x.size < tuning.blas_sum_elements or x.dtype.kind != "f" or not x.flags.c_contiguous:
        return np.add.reduce(x, axis, None, None, keepdims)
    ndim = x.ndim
    axes = range(ndim) if axis is None else axis if axis.__class__ is tuple else (axis,)
    reduced = {a % ndim for a in axes}
    kept = ndim  # from here on all axes are reduced
    while kept and kept - 1 in reduced:
        kept -= 1
    total = x if kept == ndim else _line_sums(x.reshape(*x.shape[:kept], -1))
    shape = list(x.shape[:kept])
    rest = sorted([a for a in reduced if a < kept])
    while rest:  # neighbours together, the last ones first
        start = stop = rest.pop()
        while rest and rest[-1] == start - 1:
            start = rest.pop()
        length, each = _product(shape[start : stop + 1]), _product(shape[stop + 1 :])
        total = _row_sums(total.reshape(-1, length, each))
        del shape[start : stop + 1]
    total = total.reshape(shape)
    if keepdims:
        return total.reshape([1 if a in reduced else n for a, n in enumerate(x.shape)])
    return total


def _line_sums(x: Any) -> Any:
    """The sums along the last axis."""
    length = x.shape[-1]
    run = _run(length, tuning.blas_sum_run)
    if not run:
        return np.add.reduce(x, -1)
    total = x.reshape(-1, run) @ np.ones(run, x.dtype)
    count = length // run
    if 1 < count <= 64:
        total, count = total.reshape(-1, count) @ np.ones(count, x.dtype), 1
    return np.add.reduce(total.reshape(*x.shape[:-1], count), -1)


def _row_sums(x: Any) -> Any:
    """The sums along the second of three axes."""
    run = tuning.blas_sum_run
    while (runs := x.shape[1] // run) > 1:
        whole = runs * run
        some = np.ones(run, x.dtype) @ x[:, :whole].reshape(len(x), runs, run, -1)
        x = some if whole == x.shape[1] else np.concatenate([some, x[:, whole:]], 1)
    return np.add.reduce(x, 1)


def sum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    if dtype is None:
        if _narrow(x):
            return np.add.reduce(x, axis, _f32, None, keepdims).astype(x.dtype)
        return _total(x, axis, keepdims)
    native = NATIVE.get(dtype, dtype)
    if x.dtype.kind == "b" and native == _i64:
        if axis.__class__ is tuple and len(axis) == x.ndim:
            axis = None  # counting everything at once is ten times as fast
        return np.count_nonzero(x, axis, keepdims=keepdims)
    if native.itemsize == 2 and native.kind in "fV":
        return np.add.reduce(x, axis, _f32, None, keepdims).astype(native)
    return np.add.reduce(x, axis, native, None, keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    # numpy.mean does the same in three times the time
    if _narrow(x):
        total = np.add.reduce(x, axis, _f32, None, keepdims)
        return (total / (x.size // (total.size or 1))).astype(x.dtype)
    total = _total(x, axis, keepdims)
    return total / (x.size // (total.size or 1))


def prod(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    native = x.dtype if dtype is None else NATIVE.get(dtype, dtype)
    if native.itemsize == 2 and native.kind in "fV":
        return np.multiply.reduce(x, axis, _f32, None, keepdims).astype(native)
    return np.multiply.reduce(x, axis, native, None, keepdims)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if _searches(x, axis):
        return _found(np.ndarray.argmax, x, keepdims)
    return np.maximum.reduce(x, axis, None, None, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if _searches(x, axis):
        return _found(np.ndarray.argmin, x, keepdims)
    return np.minimum.reduce(x, axis, None, None, keepdims)


def _searches(x: Any, axis: Any) -> bool:
    """Whether finding the place of the extreme is twice as fast as `reduce`: along short rows."""
    if axis.__class__ is tuple:
        if len(axis) != 1:
            return False
        axis = axis[0]
    last = x.ndim - 1
    return last > 0 and axis in (last, -1) and x.dtype.kind == "f" and x.flags.c_contiguous


def _found(argument: Any, x: Any, keepdims: bool) -> Any:
    """The extremes of rows, by their places."""
    if x.size < 2 * tuning.extremes_per_thread:
        values = pick_last(x, argument(x, -1))
        return values[..., None] if keepdims else values
    rows = x.reshape(-1, x.shape[-1])
    values = np.empty(len(rows), x.dtype)

    def part(start: int, stop: int) -> None:
        some = rows[start:stop]
        values[start:stop] = pick_last(some, argument(some, 1))

    parallel_for(part, len(rows), tuning.extremes_per_thread // rows.shape[1])
    return values.reshape((*x.shape[:-1], 1) if keepdims else x.shape[:-1])


def pick_last(x: Any, index: Any) -> Any:
    """The elements of the contiguous `x` at one index per row of its last axis."""
    if x.ndim == 2:
        return x[np.arange(x.shape[0]), index]
    rows = x.reshape(-1, x.shape[-1])
    return rows[np.arange(len(rows)), index.reshape(-1)].reshape(x.shape[:-1])


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return np.logical_or.reduce(x, axis, None, None, keepdims)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return np.logical_and.reduce(x, axis, None, None, keepdims)


def _accumulate(ufunc: Any, x: Any, axis: int, dtype: Any) -> Any:
    native = x.dtype if dtype is None else NATIVE.get(dtype, dtype)
    if native.kind in "fV" and native.itemsize < 8:
        return ufunc.accumulate(x, axis, _f64).astype(native)
    return ufunc.accumulate(x, axis, native)


def cumulative_sum(
    x: Any, *, axis: int = 0, dtype: Any = None, include_initial: bool = False
) -> Any:
    result = _accumulate(np.add, x, axis, dtype)
    return _with_initial(result, axis, 0) if include_initial else result


def cumulative_prod(
    x: Any, *, axis: int = 0, dtype: Any = None, include_initial: bool = False
) -> Any:
    result = _accumulate(np.multiply, x, axis, dtype)
    return _with_initial(result, axis, 1) if include_initial else result


def _with_initial(result: Any, axis: int, value: int) -> Any:
    first = list(result.shape)
    first[axis] = 1
    return np.concatenate([np.full(first, value, result.dtype), result], axis)


def cumulative_max(x: Any, *, axis: int) -> Any:
    return np.maximum.accumulate(x, axis)


def cumulative_min(x: Any, *, axis: int) -> Any:
    return np.minimum.accumulate(x, axis)


def cumulative_logsumexp(x: Any, *, axis: int) -> Any:
    if x.dtype.kind == "c":
        return _complex_logsumexp(x, axis)
    return np.logaddexp.accumulate(x, axis, _f64).astype(x.dtype)


def _complex_logsumexp(x: Any, axis: int) -> Any:
    """The running sums one after the other: the larger term, and the logarithm of 1 plus the ratio.

    So the imaginary part goes on from the larger term's, as in PyTorch, instead of wrapping; and
    of a NaN in one part both are NaN from there on.
    """
    moved = np.moveaxis(x.astype(np.complex128), axis, 0)
    result = moved.copy()
    result[np.isnan(result)] = complex(np.nan, np.nan)
    for place in range(1, len(result)):
        before, term = result[place - 1], moved[place]
        first = before.real >= term.real
        large, small = np.where(first, before, term), np.where(first, term, before)
        both = np.isinf(large.real) & (large.real == small.real)
        infinite = np.where(large.real < 0, small, np.log(np.exp(large) + np.exp(small)))
        total = np.where(both, infinite, large + np.log1p(np.exp(small - large)))
        nan = np.isnan(before) | np.isnan(term)
        result[place] = np.where(nan, complex(np.nan, np.nan), total)
    return np.ascontiguousarray(np.moveaxis(result, 0, axis)).astype(x.dtype)

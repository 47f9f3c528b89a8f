"""Sorting, selecting, counting. Sorts are stable, as PyTorch's on the CPU; NaN is largest."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np


def _sortable(x: Any) -> Any:
    return x.astype(np.float32) if x.dtype.kind == "V" else x


def _along(axis: int, where: slice) -> tuple:
    return (Ellipsis, where) if axis == -1 else (slice(None),) * axis + (where,)


_BACKWARDS = slice(None, None, -1)


def argsort(x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    x = _sortable(x)
    if axis == x.ndim - 1:
        axis = -1
    if axis == -1 and x.itemsize <= 4 and x.shape[-1] > 64:
        return _argsort_packed(x, descending)
    if not descending:
        return x.argsort(axis, "stable")
    # Sorting the reversed array and reversing again keeps equal elements in their order.
    backwards = _along(axis, _BACKWARDS)
    return x.shape[axis] - 1 - x[backwards].argsort(axis, "stable")[backwards]


def _argsort_packed(x: Any, descending: bool) -> Any:
    """Sort 64-bit numbers of a value and its place: NumPy does that several times as fast."""
    if x.dtype.kind == "f":
        x = np.add(x, 0, dtype=np.float32)  # no negative zeros
        x[x != x] = np.nan  # no negative NaN
        bits = x.view(np.int32)
        key = (bits ^ (bits >> 31 & 0x7FFFFFFF)).astype(np.int64)
    else:
        key = x.astype(np.int64)
    if descending:
        key = ~key
    key <<= 32
    key |= np.arange(x.shape[-1])
    key.sort(-1)
    key &= 0xFFFFFFFF
    return key


def sort(x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    result = np.sort(_sortable(x), axis).astype(x.dtype, copy=False)
    return result[_along(axis, _BACKWARDS)] if descending else result


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    return x[grid(np, x.shape, indices, axis % x.ndim)]


def arg_kth(x: Any, k: int, *, axis: int) -> Any:
    order = _sortable(x).argpartition(k, axis)
    return order[_along(axis, slice(k, k + 1))]


def top_k(x: Any, k: int, *, axis: int, largest: bool) -> tuple[Any, Any]:
    if axis != x.ndim - 1:
        values, order = top_k(x.swapaxes(axis, -1), k, axis=x.ndim - 1, largest=largest)
        return values.swapaxes(axis, -1), order.swapaxes(axis, -1)
    size = x.shape[-1]
    key = _sortable(x)
    if size <= 64 or k == 0 or 4 * k >= size:
        order = argsort(key, descending=largest)[..., :k]
    else:
        if largest:
            order = key.argpartition(size - k, -1)[..., size - k :]
        else:
            order = key.argpartition(k - 1, -1)[..., :k]
        order.sort(-1)  # equal elements in the order of their places
        inner = argsort(take_along_axis(key, order), descending=largest)
        order = take_along_axis(order, inner)
    return take_along_axis(x, order), order


def put_along_axis(values: Any, index: Any, *, axis: int, size: int) -> Any:
    shape = list(values.shape)
    shape[axis] = size
    result = np.zeros(shape, values.dtype)
    if values.size:
        result[grid(np, index.shape, index, axis)] = values
    return result


def grid(F: Any, shape: tuple, index: Any, axis: int) -> tuple:
    """`index` among the places of all other axes, to index an array of `shape` with."""
    ndim = len(shape)
    return tuple(
        [
            index if d == axis else F.arange(n).reshape((n,) + (1,) * (ndim - d - 1))
            for d, n in enumerate(shape)
        ]
    )


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    if sorter is not None:
        x1 = np.take_along_axis(x1, sorter, -1)
    x1, x2 = _sortable(x1), _sortable(x2)
    if x1.ndim == 1:
        return np.searchsorted(x1, x2, side)
    count = prod(x1.shape[:-1])
    rows, queries = x1.reshape(count, x1.shape[-1]), x2.reshape(count, x2.shape[-1])
    found = [np.searchsorted(row, values, side) for row, values in zip(rows, queries)]
    return np.array(found, np.int64).reshape(x2.shape)


def bincount(x: Any, weights: Any, *, minlength: int) -> Any:
    if x.size and x.max() == np.iinfo(np.int64).max:  # NumPy's count would wrap around
        raise RuntimeError(f"bincount: the maximum value of input overflowed: {x.max()}")
    return np.bincount(x, weights, minlength)

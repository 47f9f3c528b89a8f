"""Sorting, selecting, counting. Sorts are stable; NaN is largest."""

from __future__ import annotations

from math import prod
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy import device_asserts
from tensorflow_lite_clone.backends.numpy.primitives.sorting import grid

_BACKWARDS = slice(None, None, -1)


def _sortable(x: Any) -> Any:
    """CuPy sorts no bfloat16 and no bool along an axis."""
    if x.dtype.kind == "V":
        return x.astype(np.float32)
    return x.astype(np.int8) if x.dtype.kind == "b" else x


def _along(axis: int, ndim: int, where: slice) -> tuple:
    return (slice(None),) * (axis % ndim) + (where,)


def argsort(x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    x = _sortable(x)
    if not descending:
        return cupy.argsort(x, axis=axis)
    # Sorting the reversed array and reversing again keeps equal elements in their order.
    backwards = _along(axis, x.ndim, _BACKWARDS)
    order = cupy.argsort(x[backwards], axis=axis)[backwards]
    return cupy.ascontiguousarray(x.shape[axis] - 1 - order)


def sort(x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    result = cupy.sort(_sortable(x), axis).astype(x.dtype, copy=False)
    if descending:
        return cupy.ascontiguousarray(result[_along(axis, x.ndim, _BACKWARDS)])
    return result


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    size = x.shape[axis]
    device_asserts.check_index(indices, -size, size)
    return _found_along(x, indices, axis)


def _found_along(x: Any, indices: Any, axis: int = -1) -> Any:
    return x[grid(cupy, x.shape, indices, axis % x.ndim)]


def arg_kth(x: Any, k: int, *, axis: int) -> Any:
    return argsort(x, axis=axis)[_along(axis, x.ndim, slice(k, k + 1))]


def top_k(x: Any, k: int, *, axis: int, largest: bool) -> tuple[Any, Any]:
    order = argsort(x, axis=axis, descending=largest)[_along(axis, x.ndim, slice(0, k))]
    order = cupy.ascontiguousarray(order)
    return _found_along(x, order, axis), order


def put_along_axis(values: Any, index: Any, *, axis: int, size: int) -> Any:
    axis %= values.ndim
    shape = list(values.shape)
    shape[axis] = size
    result = cupy.zeros(shape, values.dtype)
    if values.size:
        result[grid(cupy, index.shape, index, axis)] = values
    return result


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    if sorter is not None:
        x1 = _found_along(x1, sorter)
    x1, x2 = _sortable(x1), _sortable(x2)
    if x1.ndim == 1:
        return cupy.searchsorted(x1, x2, side)
    count = prod(x1.shape[:-1])
    rows, queries = x1.reshape(count, 1, x1.shape[-1]), x2.reshape(count, x2.shape[-1], 1)
    before = rows < queries if side == "left" else rows <= queries
    return cupy.sum(before, axis=-1, dtype=np.int64).reshape(x2.shape)


def bincount(x: Any, weights: Any, *, minlength: int) -> Any:
    return cupy.bincount(x, weights, minlength)

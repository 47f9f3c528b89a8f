"""Sorting, selecting, counting. Sorts are stable, as PyTorch's on the CPU; NaN is largest."""

from __future__ import annotations

from typing import Any

import numpy as np


def _sortable(x: Any) -> Any:
    return x.astype(np.float32) if x.dtype.kind == "V" else x


def argsort(x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    if not descending:
        return np.argsort(_sortable(x), axis, "stable")
    # Sorting the reversed array and reversing again keeps equal elements in their order.
    order = np.flip(np.argsort(np.flip(_sortable(x), axis), axis, "stable"), axis)
    return x.shape[axis] - 1 - order


def sort(x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    result = np.sort(_sortable(x), axis, "stable").astype(x.dtype, copy=False)
    return np.flip(result, axis) if descending else result


def arg_kth(x: Any, k: int, *, axis: int) -> Any:
    order = np.argpartition(_sortable(x), k, axis)
    return order[(slice(None),) * axis + (slice(k, k + 1),)]


def top_k(x: Any, k: int, *, axis: int, largest: bool) -> tuple[Any, Any]:
    size = x.shape[axis]
    x = np.moveaxis(x, axis, -1)
    key = _sortable(x)
    if size <= 16 or k == 0 or 4 * k >= size:
        order = argsort(key, descending=largest)[..., :k]
    else:
        if largest:
            order = np.argpartition(key, size - k, -1)[..., size - k :]
        else:
            order = np.argpartition(key, k - 1, -1)[..., :k]
        order.sort(-1)  # equal elements in the order of their places
        inner = argsort(np.take_along_axis(key, order, -1), descending=largest)
        order = np.take_along_axis(order, inner, -1)
    values = np.take_along_axis(x, order, -1)
    return np.moveaxis(values, -1, axis), np.moveaxis(order, -1, axis)


def put_along_axis(values: Any, index: Any, *, axis: int, size: int) -> Any:
    shape = list(values.shape)
    shape[axis] = size
    result = np.zeros(shape, values.dtype)
    if values.size:
        result[_grid(index, axis)] = values
    return result


def _grid(index: Any, axis: int) -> tuple:
    ndim = index.ndim
    return tuple(
        [
            index if d == axis else np.arange(n).reshape((n,) + (1,) * (ndim - d - 1))
            for d, n in enumerate(index.shape)
        ]
    )


def searchsorted(
    x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None
) -> Any:
    if sorter is not None:
        x1 = np.take_along_axis(x1, sorter, -1)
    x1, x2 = _sortable(x1), _sortable(x2)
    if x1.ndim == 1:
        return np.searchsorted(x1, x2, side)
    rows = x1.reshape(-1, x1.shape[-1])
    wanted = x2.reshape(len(rows), -1)
    found = [np.searchsorted(row, values, side) for row, values in zip(rows, wanted)]
    return np.array(found, np.int64).reshape(x2.shape)


def bincount(x: Any, weights: Any, *, minlength: int) -> Any:
    return np.bincount(x, weights, minlength)

"""Reads and sums at index arrays: gather, scatter_add, gradients of rows of a table."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numba.layer import Kernels, compiled, run
from tensorflow_lite_clone.backends.numpy.primitives.indexing import check_index, copy

_kernels = Kernels("index")
_LEAST = 1 << 10
_PLACES = 2  # that are as much work as an element of a softmax


def _fits(index: np.ndarray, shape: tuple, axis: int) -> bool:
    """Whether an int64 index covers `shape` but along the axis."""
    return (
        index.dtype == np.int64
        and index.flags.c_contiguous
        and index.shape[:axis] == shape[:axis]
        and index.shape[axis + 1 :] == shape[axis + 1 :]
    )


def _blocks(x: np.ndarray, axis: int) -> np.ndarray:
    """x as (before, along the axis, behind)."""
    return x.reshape(prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :]))


def _check(most: np.ndarray, index: np.ndarray, size: int, axis: int) -> None:
    if int(most.max(initial=0)) >= size:
        check_index(index, size, axis)


@compiled("gather", least=_LEAST)
def gather(
    x: np.ndarray, index: np.ndarray, *, axis: int, shape: tuple, checks: bool = False
) -> Any:
    if not _fits(index, shape, axis):
        return NotImplemented
    y = np.empty(index.shape, x.dtype)
    places = _blocks(index, axis)
    most = np.empty(len(places), np.uintp)
    run(_kernels.gather, len(places), places[0].size // _PLACES, _blocks(x, axis), places,
        _blocks(y, axis), most)  # fmt: skip
    _check(most, index, shape[axis], axis)
    return y


def _add(y: np.ndarray, index: np.ndarray, src: np.ndarray, axis: int) -> None:
    places = _blocks(index, axis)
    most = np.empty(len(places), np.uintp)
    run(_kernels.scatter_add, len(places), places[0].size // _PLACES, _blocks(y, axis), places,
        _blocks(src, axis), most)  # fmt: skip
    _check(most, index, y.shape[axis], axis)


def _addable(src: np.ndarray, index: np.ndarray) -> bool:
    return src.dtype == np.float32 and src.shape == index.shape


@compiled("gather_backward", least=_LEAST)
def gather_backward(g: np.ndarray, index: np.ndarray, *, axis: int, shape: tuple) -> Any:
    if not _fits(index, shape, axis):
        return NotImplemented
    gx = np.zeros(shape, g.dtype)
    _add(gx, index, g, axis)  # places may have been written to since they were read
    return gx


@compiled("scatter_add", least=_LEAST)
def scatter_add(
    x: np.ndarray, index: np.ndarray, src: np.ndarray, *, axis: int, checks: bool = False
) -> Any:
    if not _fits(index, x.shape, axis) or not _addable(src, index):
        return NotImplemented
    y = copy(x)
    _add(y, index, src, axis)
    return y


@compiled("scatter_add_to", least=_LEAST)
def scatter_add_to(x: np.ndarray, index: np.ndarray, src: np.ndarray, *, axis: int) -> Any:
    if not _fits(index, x.shape, axis) or not _addable(src, index):
        return NotImplemented
    _add(x, index, src, axis)
    return None


def _sum_of_rows(g: np.ndarray, index: np.ndarray, rows: int, skipped: int) -> np.ndarray:
    """Zeros (rows, width) with those of g, (..., width), added at the index but where `skipped`."""
    g = g.reshape(index.size, -1)
    sums = np.empty((rows, g.shape[1]), g.dtype)
    each = g.shape[1] + g.size // rows
    run(_kernels.sum_rows, rows, each, g, index.reshape(-1), skipped, sums)
    return sums


@compiled("index_select_backward", least=_LEAST)
def index_select_backward(g: np.ndarray, index: np.ndarray, *, axis: int, shape: tuple) -> Any:
    if axis or index.dtype != np.int64 or not index.flags.c_contiguous or index.min() < 0:
        return NotImplemented
    return _sum_of_rows(g, index, shape[0], -1).reshape(shape)


@compiled("embedding_backward", least=_LEAST)
def embedding_backward(
    g: np.ndarray, index: np.ndarray, *, rows: int, padding: int | None, by_frequency: bool
) -> Any:
    if by_frequency or index.dtype != np.int64 or not index.flags.c_contiguous:
        return NotImplemented
    return _sum_of_rows(g, index, rows, -1 if padding is None else padding)

"""Reads and sums at index arrays: gather, scatter_add_, the gradient of an embedding."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.compiled.layer import (
    Kernels,
    compiled,
    row_major,
    run,
)

_kernels = Kernels("index")
_LEAST = 1 << 10


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


@compiled("gather", least=_LEAST)
def gather(x: np.ndarray, index: np.ndarray, *, axis: int, shape: tuple) -> Any:
    if not _fits(index, shape, axis):
        return NotImplemented
    y = np.empty(index.shape, x.dtype)
    places = _blocks(index, axis)
    run(_kernels.gather, len(places), places[0].size, _blocks(x, axis), places, _blocks(y, axis))
    return y


@compiled("scatter_add_to", least=_LEAST)
def scatter_add_to(x: np.ndarray, index: np.ndarray, src: np.ndarray, *, axis: int) -> Any:
    if not _fits(index, x.shape, axis) or src.shape != index.shape or not row_major(src):
        return NotImplemented
    places = _blocks(index, axis)
    run(_kernels.scatter_add, len(places), places[0].size, _blocks(x, axis), places,
        _blocks(src, axis))  # fmt: skip
    return None


@compiled("embedding_backward", least=_LEAST)
def embedding_backward(
    g: np.ndarray, index: np.ndarray, *, rows: int, padding: int | None, by_frequency: bool
) -> Any:
    if by_frequency or index.dtype != np.int64 or not index.flags.c_contiguous:
        return NotImplemented
    size = g.shape[-1]
    gw = np.empty((rows, size), g.dtype)
    each = size + g.size // rows
    run(_kernels.embedding_backward, rows, each, g.reshape(-1, size), index.reshape(-1),
        -1 if padding is None else padding, gw)  # fmt: skip
    return gw

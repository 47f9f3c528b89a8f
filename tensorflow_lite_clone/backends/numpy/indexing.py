"""Reads and sums at places along an axis; the last one block by block, for few 64-bit positions.

Sums of whole rows begin with one write for each row that is named.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.primitives.indexing import add_at, summed_rows
from tensorflow_lite_clone.backends.numpy.threads import parallel_for
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.backends.numpy.workspace import workspace
from tensorflow_lite_clone.dispatch.table import override

_positions = np.dtype(np.intp)


def _is_unsuitable(shape: tuple, index: Any, axis: int) -> bool:
    return (
        index.size < tuning.gather_minimum
        or axis != len(shape) - 1
        or index.shape[:-1] != shape[:-1]
        or not index.flags.c_contiguous
    )


def _row_blocks(
    index: Any, size: int, work: Callable[[slice, Any], object], *, shared: bool
) -> None:
    """Call ``work(rows, places)`` for all rows of an index into rows of `size` elements.

    The places are those in the memory of these rows. Work that is `shared` has several threads.
    """
    width = index.shape[-1]
    rows = index.reshape(-1, width)
    step = min(max(tuning.gather_block // width, 1), len(rows))
    begins = np.arange(0, step * size, size)[:, None]

    def part(start: int, stop: int) -> None:
        with workspace(step * width, _positions) as memory:
            for first in range(start, stop, step):
                some = slice(first, min(first + step, stop))
                count = some.stop - first
                places = memory[: count * width].reshape(count, width)
                work(some, np.add(rows[some], begins[:count], out=places))

    parallel_for(
        part, len(rows), max(tuning.gather_per_thread // width, 1) if shared else len(rows)
    )


@override("gather", backend="numpy")
def gather(F: Any, x: Any, index: Any, *, axis: int, shape: tuple, checks: bool = False) -> Any:
    if _is_unsuitable(shape, index, axis) or not x.flags.c_contiguous:
        return NotImplemented
    if checks:
        F.check_index(index, shape[axis], axis)
    table = x.reshape(-1, shape[-1])
    out = np.empty(index.shape, x.dtype)
    result = out.reshape(-1, index.shape[-1])

    def work(rows: slice, places: Any) -> None:
        # "wrap" is the fastest mode; all indices are within bounds.
        table[rows].reshape(-1).take(places, out=result[rows], mode="wrap")

    _row_blocks(index, shape[-1], work, shared=True)
    return out


def _summable(x: Any) -> bool:
    return x.dtype.kind in "fi" and x.itemsize >= 4


@override("scatter_add_to", backend="numpy")
def scatter_add_to(F: Any, x: Any, index: Any, src: Any, *, axis: int) -> Any:
    if (
        _is_unsuitable(x.shape, index, axis)
        or not x.flags.c_contiguous
        or not _summable(x)
        or src.shape != index.shape
    ):
        return NotImplemented
    table = x.reshape(-1, x.shape[-1])
    source = src.reshape(-1, src.shape[-1])

    def work(rows: slice, places: Any) -> None:
        np.add.at(table[rows].reshape(-1), places.reshape(-1), source[rows].reshape(-1))

    # `numpy.add.at` holds the interpreter's lock: several threads would wait for each other.
    _row_blocks(index, x.shape[-1], work, shared=False)
    return None


@override("gather_backward", backend="numpy")
def gather_backward(F: Any, g: Any, index: Any, *, axis: int, shape: tuple) -> Any:
    if _is_unsuitable(shape, index, axis) or not _summable(g):
        return NotImplemented
    out = np.zeros(shape, g.dtype)
    F.scatter_add_to(out, index, g, axis=axis)
    return out


def _has_long_rows(g: Any, width: int) -> bool:
    return width >= tuning.gather_row and g.size >= tuning.gather_minimum and g.dtype.itemsize > 2


@override("index_select_backward", backend="numpy")
def index_select_backward(F: Any, g: Any, index: Any, *, axis: int, shape: tuple) -> Any:
    width = prod(shape[1:])
    if axis == 0 and _has_long_rows(g, width):
        return summed_rows(shape[0], index.reshape(-1), g.reshape(-1, width)).reshape(shape)
    out = np.zeros(shape, g.dtype)  # not copied, as `index_add` has to
    add_at(out, (*(slice(None),) * axis, index), g)
    return out


@override("embedding_backward", backend="numpy")
def embedding_backward(
    F: Any, g: Any, index: Any, *, rows: int, padding: int | None, by_frequency: bool
) -> Any:
    width = g.shape[-1]
    if by_frequency or not _has_long_rows(g, width):
        return NotImplemented
    out = summed_rows(rows, index.reshape(-1), g.reshape(-1, width))
    if padding is not None:
        out[padding] = 0
    return out

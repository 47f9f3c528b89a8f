"""Formulas of several steps over large arrays, in blocks: what lies between stays in a cache."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.threads import parallel_for
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.backends.numpy.workspace import workspace
from tensorflow_lite_clone.core.flags import flags

# Beside another thread blocks are larger: after every call the threads wait for the interpreter's
# lock, 5 us each time, which is what working on 64 K elements takes; and L3 is not much slower.
# Those of rows are larger still, as there are calls for a number a row, which take little else.
_THREADED, _THREADED_ROWS = 1 << 17, 1 << 19
BLOCK = _THREADED  # the most elements that a kernel is given at once
_BUFFERED = 8192  # NumPy's buffer, in elements
ROW = 512  # elements of a row from which one loop a row is faster than copies to the buffer


def _block(size: int, least: int, arrays: int, shared: int) -> int:
    """Elements of blocks of `arrays` with `size` elements, of which a thread gets `least`."""
    return shared if flags.threads > 1 and size >= 2 * least else tuning.block_elements // arrays


def blockwise(
    kernel: Callable[..., object], x: Any, *others: Any, buffers: int = 0, least: int = 1 << 18
) -> Any:
    """A new array like x, written by ``kernel(out, x, *others, *buffers)`` over parts of all.

    Parts of `least` elements or more go to a thread each. NotImplemented unless all are float32
    or float64 arrays of one dtype and shape, not zero-dimensional, that lie without gaps.
    """
    dtype = x.dtype
    if dtype.char not in "fd" or not x.ndim or not x.flags.c_contiguous:
        return NotImplemented
    for other in others:
        if other.dtype != dtype or other.shape != x.shape or not other.flags.c_contiguous:
            return NotImplemented
    out = np.empty(x.shape, dtype)
    size = x.size
    step = _block(size, least, 2 + len(others) + buffers, _THREADED)
    if size <= step:
        kernel(out, x, *others, *[np.empty(x.shape, dtype) for _ in range(buffers)])
        return out
    whole = [array.reshape(-1) for array in (out, x, *others)]

    def part(start: int, stop: int) -> None:
        with workspace(buffers * step, dtype) as memory:
            for first in range(start, stop, step):
                last = min(first + step, stop)
                kernel(
                    *[array[first:last] for array in whole],
                    *[memory[i : i + last - first] for i in range(0, buffers * step, step)],
                )

    parallel_for(part, size, least)
    return out


def chunked(ufunc: Any, *arrays: Any) -> Any:
    """``ufunc(*arrays)``, whose threads each work on a part where that is the same.

    So it is of NumPy's own numbers of one dtype that lie without gaps, of one shape or 0-d.
    """
    dtype, shape = arrays[0].dtype, arrays[0].shape
    if flags.threads < 2 or ufunc.__class__ is not np.ufunc or dtype.kind not in "fiub":
        return ufunc(*arrays)
    for x in arrays:
        if x.dtype != dtype or (x.ndim and x.shape != shape) or not x.flags.c_contiguous:
            return ufunc(*arrays)
    out = np.empty(shape, ufunc(*[x.reshape(-1)[:1] for x in arrays]).dtype)
    result = out.reshape(-1)
    whole = [x.reshape(-1) if x.ndim else x for x in arrays]

    def part(start: int, stop: int) -> None:
        ufunc(*[x[start:stop] if x.ndim else x for x in whole], out=result[start:stop])

    parallel_for(part, out.size, 1 << 19)
    return out


def row_blocks(
    work: Callable[[int, int], object],
    count: int,
    width: int,
    *,
    least: int = 1 << 18,
    products: bool = False,
) -> None:
    """Call ``work(start, stop)`` for blocks of rows of `width` elements that cover `count` rows.

    Parts of `least` elements or more go to a thread each, those with matrix products told so.
    """
    size = count * width
    step = max(1, _block(size, least, 3, _THREADED_ROWS) // max(width, 1))
    if count <= step and not ROW <= width < _BUFFERED:
        work(0, count)
        return

    def part(start: int, stop: int) -> None:
        with unbuffered_rows(width):
            for first in range(start, stop, step):
                work(first, min(first + step, stop))

    parallel_for(part, count, -(-least // max(width, 1)), products=products)


def broadcast_row(ufunc: Any, x: Any, row: Any, out: Any) -> None:
    """``ufunc(x, row, out)`` for matrices without gaps, some rows together: loops are long then."""
    count, width = x.shape
    together = _BUFFERED // max(width, 1)
    whole = count - count % together if together > 1 else 0
    if whole:
        long = (-1, together * width)
        repeated = np.concatenate([row] * together)
        ufunc(x[:whole].reshape(long), repeated, out[:whole].reshape(long))
    if whole < count:
        ufunc(x[whole:], row, out[whole:])


@contextmanager
def unbuffered_rows(width: int) -> Any:
    """Let NumPy work without its buffer on rows of `width` beside a column or a row.

    It copies what it repeats into its buffer until that is full, to have fewer and longer loops:
    for rows that are long themselves the copies take as long as the work.
    """
    if not ROW <= width < _BUFFERED:
        yield
        return
    before = np.setbufsize(ROW)
    try:
        yield
    finally:
        np.setbufsize(before)

"""Softmax and its logarithm along the last axis, and largest elements with their places.

Rows are worked on in blocks. The exponentials are taken of x itself: where their sums are neither
small nor large the results are as good as of x less its largest elements, which take as long to
find and to subtract; other blocks are done that way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy import small_inputs
from tensorflow_lite_clone.backends.numpy.blocks import row_blocks
from tensorflow_lite_clone.backends.numpy.primitives.reductions import pick_last
from tensorflow_lite_clone.backends.numpy.statistics import row_dots, row_sums
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.dispatch.table import override

# Sums of exponentials from which on all terms that are normal numbers after division by the sum
# were so before (but for those under 1e-34), and up to which none has overflown.
_LEAST, _MOST = 2.0**-11, 2.0**120
_LOWEST, _ZERO, _ONE = [np.array(value, np.float32) for value in (-np.inf, 0, 1)]
MOST_FOR_LOGS = 2.0**11  # the logarithm, below 8, is rounded by 2.4e-7 at most


def _rows(x: Any, axis: int) -> Any:
    """x as a matrix of rows along `axis`; None where it is not the last or x has gaps.

    Also for rows of one element, for which what is made of them is known exactly.
    """
    if axis != x.ndim - 1 or x.dtype.char not in "fd" or not x.flags.c_contiguous:
        return None
    if x.shape[axis] == 1:
        return None
    return x.reshape(-1, x.shape[axis])


def exponentials(x: Any, y: Any, most: float) -> tuple[Any, Any]:
    """exp(x - s) in y for rows x, their sums, and s (a column): None where it is zero."""
    np.exp(x, y)
    sums = row_sums(y)
    # Extremes by their places, which NumPy finds in a third of the time; NaN is both.
    if sums.item(sums.argmin()) >= _LEAST and sums.item(sums.argmax()) <= most:
        return sums, None
    top = pick_last(x, x.argmax(1))[:, None]  # faster than the maximum
    np.subtract(x, top, y)
    np.exp(y, y)
    return row_sums(y), top


@override("softmax", backend="numpy")
def softmax(F: Any, x: Any, *, axis: int) -> Any:
    if x.size < tuning.small_elementwise:
        return small_inputs.softmax(x, axis, False)
    rows = _rows(x, axis)
    if rows is None:
        return NotImplemented
    y = np.empty(x.shape, x.dtype)
    results = y.reshape(rows.shape)

    def work(start: int, stop: int) -> None:
        part = results[start:stop]
        sums, _ = exponentials(rows[start:stop], part, _MOST)
        np.multiply(part, np.divide(_ONE, sums, sums)[:, None], part)

    row_blocks(work, *rows.shape, products=True)
    return y


@override("softmax_backward", backend="numpy")
def softmax_backward(F: Any, g: Any, y: Any, *, axis: int) -> Any:
    if axis != y.ndim - 1 or y.dtype.kind != "f" or y.itemsize == 2:
        return NotImplemented
    if (
        y.size < tuning.small_elementwise
        or (ys := _rows(y, axis)) is None
        or (gs := _rows(g, axis)) is None
    ):
        gx = g - np.vecdot(g, y)[..., None]
        gx *= y
        return gx
    gx = np.empty(y.shape, y.dtype)
    results = gx.reshape(ys.shape)

    def work(start: int, stop: int) -> None:
        part, g, y = results[start:stop], gs[start:stop], ys[start:stop]
        np.subtract(g, row_dots(g, y, part)[:, None], part)
        np.multiply(part, y, part)

    row_blocks(work, *ys.shape, products=True)
    return gx


@override("log_softmax", backend="numpy")
def log_softmax(F: Any, x: Any, *, axis: int) -> Any:
    if x.size < tuning.small_elementwise:
        return small_inputs.softmax(x, axis, True)
    rows = _rows(x, axis)
    if rows is None:
        return NotImplemented
    y = np.empty(x.shape, x.dtype)
    results = y.reshape(rows.shape)

    def work(start: int, stop: int) -> None:
        source, part = rows[start:stop], results[start:stop]
        sums, top = exponentials(source, part, MOST_FOR_LOGS)
        np.log(sums, sums)
        if top is not None:
            source = np.subtract(source, top, part)
        np.subtract(source, sums[:, None], part)
        if top is None:
            part.clip(_LOWEST, _ZERO, part)  # which rounding may have passed

    row_blocks(work, *rows.shape, products=True)
    return y


@override("log_softmax_backward", backend="numpy")
def log_softmax_backward(F: Any, g: Any, y: Any, *, axis: int) -> Any:
    if y.dtype.kind != "f" or y.itemsize == 2:
        return NotImplemented
    if (
        y.size < tuning.small_elementwise
        or (ys := _rows(y, axis)) is None
        or (gs := _rows(g, axis)) is None
    ):
        gx = np.exp(y)
        gx *= np.add.reduce(g, axis, None, None, True)
        return np.subtract(g, gx, gx)
    gx = np.empty(y.shape, y.dtype)
    results = gx.reshape(ys.shape)

    def work(start: int, stop: int) -> None:
        part, g = results[start:stop], gs[start:stop]
        np.exp(ys[start:stop], part)
        np.multiply(part, row_sums(g)[:, None], part)
        np.subtract(g, part, part)

    row_blocks(work, *ys.shape, products=True)
    return gx


def _extreme(argument: Any, x: Any, axis: int, keepdims: bool) -> Any:
    if axis != x.ndim - 1 or not x.flags.c_contiguous:
        return NotImplemented
    index = argument(x, axis)
    values = pick_last(x, index)
    if keepdims:
        return values[..., None], index[..., None]
    return values, index


@override("max_with_indices", backend="numpy")
def max_with_indices(F: Any, x: Any, *, axis: int, keepdims: bool, size: int) -> Any:
    return _extreme(np.ndarray.argmax, x, axis, keepdims)


@override("min_with_indices", backend="numpy")
def min_with_indices(F: Any, x: Any, *, axis: int, keepdims: bool, size: int) -> Any:
    return _extreme(np.ndarray.argmin, x, axis, keepdims)

"""Softmax, cross-entropy and layer norm of few short rows, where only the number of calls counts.

NumPy takes 0.2 us for a call on two small arrays of one shape, and four times as long where it has
to broadcast or to reduce. BLAS takes 0.3 us, and a product with a square of ones gives each element
the sum of its row: the sums come broadcast.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np

_MAX_PRODUCTS = 1 << 15  # in a product with a square, which BLAS does in a microsecond
_MAX_ROWS = 64
SMALL = 256  # elements up to which BLAS adds up with no larger errors than NumPy, in less time
# Exponentials are taken of x less the largest element of all rows, or for their logarithms of x
# itself, where that is as good as of x less each row's largest: where no sum of them is so small
# that terms were rounded to few digits, or so large that the logarithm is.
_MIN_SUM, _MAX_SUM_OF_LOGS = 2.0**-11, 2.0**11


@cache
def constant(value: Any, shape: tuple, dtype: np.dtype) -> np.ndarray:
    """An array of one number, which is never written to."""
    array = np.full(shape, value, dtype)
    array.setflags(write=False)
    return array


def _has_short_rows(x: Any, size: int) -> bool:
    """Whether rows of `size` elements are such as are served here."""
    return (
        1 < size < 64
        and 0 < x.size <= size * _MAX_ROWS
        and x.size * size <= _MAX_PRODUCTS
        and x.dtype.char in "fd"
        and x.flags.c_contiguous
    )


def softmax(x: Any, axis: int, logarithm: bool) -> Any:
    size = x.shape[axis]
    if axis != x.ndim - 1 or not _has_short_rows(x, size):
        return NotImplemented
    x = np.subtract(x, np.array(x.item(x.argmax()), x.dtype))
    y = np.exp(x, None if logarithm else x)
    sums = y.dot(constant(1, (size, size), x.dtype))
    if not sums.item(sums.argmin()) >= _MIN_SUM:  # or one is NaN
        return NotImplemented
    if not logarithm:
        return np.divide(y, sums, y)
    y = np.subtract(x, np.log(sums, sums), y)
    return np.minimum(y, constant(0, (), x.dtype))  # which rounding may have passed


@cache
def _loss_constants(
    rows: int, size: int, reduction: str, dtype: np.dtype
) -> tuple[np.ndarray, ...]:
    """Where rows begin in a flat array; what products with give their sums, and the loss; zero."""
    share = 1 / rows if reduction == "mean" else 1
    arrays = np.ones(size, dtype), np.full(rows, share, dtype), np.zeros((), dtype)
    return np.arange(0, rows * size, size), *arrays


def cross_entropy(x: Any, target: Any, reduction: str, ignore_index: int) -> Any:
    """The loss of rows with a class index each, and the logarithms of their sums."""
    rows, size = x.shape
    if not _has_short_rows(x, size):
        return NotImplemented
    classes = target.tolist()
    if 0 <= ignore_index < size or min(classes) < 0 or max(classes) >= size:
        return NotImplemented
    starts, ones, shares, zero = _loss_constants(rows, size, reduction, x.dtype)
    sums = np.exp(x).dot(ones)
    found = sums.tolist()
    if not (min(found) >= _MIN_SUM and max(found) <= _MAX_SUM_OF_LOGS):  # or the first is NaN
        return NotImplemented
    logs = np.log(sums, sums)
    loss = np.maximum(logs - x.take(starts + target), zero)  # what is rounded may be less
    return (loss if reduction == "none" else np.array(loss.dot(shares))), logs


@cache
def _moment_constants(size: int, eps: float, dtype: np.dtype) -> tuple[np.ndarray, ...]:
    """What products with give means, broadcast or not; eps; and weights of one."""
    square = np.full((size, size), 1 / size, dtype)
    return square, square[:, :1].copy(), np.array(eps, dtype), np.ones((1, size), dtype)


def layer_norm(x: Any, w: Any, b: Any, ndim: int, eps: float) -> Any:
    """y, and the means and 1 / sqrt(variance + eps) of rows as columns."""
    shape = x.shape
    size = shape[-1] if ndim == 1 else prod(shape[len(shape) - ndim :])
    dtype = x.dtype
    if not (
        _has_short_rows(x, size)
        and (w is None or (w.dtype is dtype and w.flags.c_contiguous))
        and (b is None or (b.dtype is dtype and b.flags.c_contiguous))
    ):
        return NotImplemented
    rows = x if len(shape) == 2 and ndim == 1 else x.reshape(-1, size)
    square, column, least, line = _moment_constants(size, eps, dtype)
    means = rows.dot(square)
    y = np.subtract(rows, means)
    rest = y.dot(square)  # means were rounded, which counts where rows are nearly constant
    y -= rest
    means += rest
    rstd = np.reciprocal(np.sqrt(np.add(np.multiply(y, y).dot(column), least)))
    y = np.multiply(y, rstd.dot(line if w is None else w.reshape(1, size)), y)
    if b is not None:
        y += b.reshape(size)
    return (y if rows is x else y.reshape(shape)), means[:, :1], rstd

"""Sums over rows and over channels, and what normalisation makes of them, on the CPU.

Variances are mean(x^2) - mean(x)^2 here, and sums of g (x - mean) are sums of g x less a product:
one pass less each. Both lose what the mean is larger than the deviation by, so `is_safe` is asked
first; up to its limit they are off by no more than 16 roundings.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.blocks import ROW, row_blocks
from tensorflow_lite_clone.backends.numpy.workspace import workspace

_DOTS = 256  # elements of a row from which a call of BLAS a row is faster than a product of all


def is_plain(*arrays: Any) -> bool:
    """Whether all that are not None are float32 or float64 arrays of one dtype without gaps."""
    dtype = arrays[0].dtype
    if dtype.char not in "fd":
        return False
    for array in arrays:
        if array is not None and not (array.dtype == dtype and array.flags.c_contiguous):
            return False
    return True


def is_safe(mean: Any, variance: Any) -> bool:
    """Whether means are at most four times as large as deviations, all of them (and no NaN)."""
    return bool(np.all(mean * mean <= 16 * variance))


@lru_cache(8)
def _kept_ones(count: int, dtype: np.dtype) -> np.ndarray:
    ones = np.ones(count, dtype)
    ones.setflags(write=False)
    return ones


def row_sums(x: Any) -> Any:
    """The sums of a matrix's rows, by BLAS, which is faster than numpy.add.reduce along rows."""
    width = x.shape[1]
    return np.dot(x, (_kept_ones if width <= 8192 else np.ones)(width, x.dtype))


def row_dots(x: Any, y: Any, buffer: Any) -> Any:
    """The inner products of two matrices' rows; what is in the buffer is lost."""
    if x.shape[1] >= _DOTS:
        return np.vecdot(x, y)
    return row_sums(np.multiply(x, y, buffer))


def row_moments(x: Any, eps: float, buffer: Any) -> tuple[Any, Any]:
    """Mean and 1 / sqrt(variance + eps) of each row of a matrix, as columns."""
    size = x.shape[1]
    mean = (row_sums(x) / size)[:, None]
    variance = row_dots(x, x, buffer)[:, None]
    variance /= size
    variance -= mean * mean
    if not is_safe(mean, variance):
        # The mean of what is left is what the sum was rounded by.
        centered = np.subtract(x, mean, buffer)
        rest = (row_sums(centered) / size)[:, None]
        mean += rest
        variance = row_sums(np.multiply(centered, centered, buffer))[:, None] / size
        variance -= rest * rest
        np.maximum(variance, 0, out=variance)
    variance += eps
    np.sqrt(variance, variance)
    return mean, np.divide(1, variance, variance)


def channel_sums(x: Any, y: Any) -> tuple[Any, Any]:
    """The sums of x and of x * y, arrays (N, C, L), over N and L, in float64."""
    n, channels, size = x.shape
    if size >= _DOTS:
        sums, dots = np.empty((2, n * channels), x.dtype)
        xs, ys = x.reshape(-1, size), y.reshape(-1, size)

        def sum_rows(start: int, stop: int) -> None:
            sums[start:stop] = row_sums(xs[start:stop])
            dots[start:stop] = np.vecdot(xs[start:stop], ys[start:stop])

        row_blocks(sum_rows, n * channels, size, least=1 << 19, products=True)
        return (
            np.add.reduce(sums.reshape(n, channels), 0, np.float64),
            np.add.reduce(dots.reshape(n, channels), 0, np.float64),
        )
    total, products = np.zeros((2, channels * size))
    xs, ys = x.reshape(n, -1), y.reshape(n, -1)

    def add_samples(start: int, stop: int) -> None:
        part = xs[start:stop]
        ones = np.ones(len(part), x.dtype)
        np.add(total, np.dot(ones, part), total)
        with workspace(part.size, x.dtype) as memory:
            product = np.multiply(part, ys[start:stop], memory.reshape(part.shape))
            np.add(products, np.dot(ones, product), products)

    row_blocks(add_samples, n, channels * size, least=n * channels * size + 1)  # in one thread
    return (
        np.add.reduce(total.reshape(channels, size), 1),
        np.add.reduce(products.reshape(channels, size), 1),
    )


class Channels:
    """Blocks of arrays (N, C, L) beside numbers for every channel or for every one of a sample."""

    def __init__(self, x: Any) -> None:
        n, channels, self.size = x.shape
        # Long rows, a number beside each; or samples, beside a row of repeated numbers.
        self.long = self.size >= ROW
        self.shape = (n * channels, self.size) if self.long else (n, channels * self.size)
        self.samples, self.dtype = n, x.dtype

    def rows(self, x: Any) -> Any:
        return x.reshape(self.shape)

    def beside(self, values: Any) -> Any:
        """Numbers (C,) or (N, C) as an array that rows(...) can be multiplied by."""
        values = values.astype(self.dtype, copy=False)
        if not self.long:
            return np.repeat(values, self.size, -1) if self.size > 1 else values
        if values.ndim == 1:
            values = np.tile(values, self.samples)
        return values.reshape(-1, 1)


def _part(values: Any, start: int, stop: int) -> Any:
    return values if values.ndim == 1 else values[start:stop]


def scaled(x: Any, scale: Any, shift: Any | None, shape: tuple[int, ...]) -> Any:
    """x * scale + shift in a given shape; x is (N, C, L), the others are (C,) or (N, C)."""
    out = np.empty(shape, x.dtype)
    channels = Channels(x)
    rows, results = channels.rows(x), channels.rows(out)
    scale = channels.beside(scale)
    shift = None if shift is None else channels.beside(shift)

    def work(start: int, stop: int) -> None:
        part = results[start:stop]
        np.multiply(rows[start:stop], _part(scale, start, stop), part)
        if shift is not None:
            np.add(part, _part(shift, start, stop), part)

    row_blocks(work, *rows.shape, least=1 << 19)
    return out


def combined(g: Any, x: Any, a: Any, b: Any, c: Any, shape: tuple[int, ...]) -> Any:
    """g * a + x * b + c in a given shape; g and x are (N, C, L), the others (C,) or (N, C)."""
    out = np.empty(shape, x.dtype)
    channels = Channels(x)
    gs, xs, results = map(channels.rows, (g, x, out))
    a, b, c = map(channels.beside, (a, b, c))

    def work(start: int, stop: int) -> None:
        part = results[start:stop]
        with workspace(part.size, x.dtype) as memory:
            other = memory.reshape(part.shape)
            np.multiply(gs[start:stop], _part(a, start, stop), part)
            np.multiply(xs[start:stop], _part(b, start, stop), other)
            np.add(part, other, part)
            np.add(part, _part(c, start, stop), part)

    row_blocks(work, *xs.shape)
    return out

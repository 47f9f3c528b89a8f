"""Depthwise convolutions on the CPU: places of the window are summed one by one, in the cache."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tensorflow_lite_clone.backends.numpy.convolution_folding import Folder
from tensorflow_lite_clone.core.shape import contiguous_strides
from tensorflow_lite_clone.core.windows import Ints, window_slices

_BYTES = 1 << 19


def _blocks(samples: int, sample_bytes: int, budget: int) -> Iterator[slice]:
    """Divide samples into blocks of about `budget` bytes."""
    step = max(1, min(samples, budget // max(sample_bytes, 1)))
    for start in range(0, samples, step):
        yield slice(start, min(start + step, samples))


class _Padded:
    """Blocks of `x` inside zeros, in one buffer whose rim stays zero."""

    def __init__(self, x: np.ndarray, padding: Ints, total: Ints) -> None:
        self.x = x
        self.needed = any(padding)
        self.padding, self.total = padding, total
        self.buffer: np.ndarray | None = None

    def __getitem__(self, block: slice) -> np.ndarray:
        x = self.x[block]
        if not self.needed:
            return x
        if self.buffer is None:
            self.buffer = np.zeros((*x.shape[:2], *self.total), x.dtype)
        result = self.buffer[: len(x)]
        inside = tuple([slice(p, p + n) for p, n in zip(self.padding, x.shape[2:])])
        result[(..., *inside)] = x
        return result


def depthwise(
    y: np.ndarray, x: np.ndarray, w: np.ndarray, stride: Ints, padding: Ints, dilation: Ints
) -> None:
    padded = _Padded(x, padding, tuple([n + 2 * p for n, p in zip(x.shape[2:], padding)]))
    places = list(_factors(w, y.shape[2:], stride, dilation))
    terms = None
    for block in _blocks(len(x), y[0].nbytes, _BYTES):
        part, total = padded[block], y[block]
        if terms is None:
            terms = np.empty_like(total)
        term = terms[: len(total)]
        total.fill(0)
        for slices, factor in places:
            np.multiply(part[(..., *slices)], factor, out=term)
            total += term


def _factors(
    w: np.ndarray, count: Ints, stride: Ints, dilation: Ints
) -> Iterator[tuple[tuple[slice, ...], np.ndarray]]:
    """Per place in a depthwise window: what it sees of the input, and a factor per channel."""
    for place, slices in window_slices(w.shape[2:], count, stride, dilation):
        yield slices, w[(slice(None), 0, *place)].reshape(-1, *(1,) * len(count))


def depthwise_input(
    gx: np.ndarray, g: np.ndarray, w: np.ndarray, stride: Ints, padding: Ints, dilation: Ints
) -> None:
    count, kernel = g.shape[2:], w.shape[2:]
    fold = Folder(gx, count, kernel, stride, padding, dilation)
    factors = {
        place: w[(slice(None), 0, *place)].reshape(-1, *(1,) * len(count))
        for place in np.ndindex(*kernel)
    }
    terms = None
    for block in _blocks(len(g), g[0].nbytes, _BYTES):
        part = g[block]
        if terms is None:
            terms = np.empty_like(part)
        term = terms[: len(part)]
        fold(
            block.start,
            len(part),
            lambda place, part=part, term=term: np.multiply(part, factors[place], out=term),
        )


def depthwise_weight(
    g: np.ndarray, x: np.ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> np.ndarray:
    count = g.shape[2:]
    gw = np.zeros((g.shape[1], 1, *kernel), g.dtype)
    blocks = _blocks(len(g), max(g[:1].nbytes, 1), _BYTES)
    total = tuple([n + 2 * p for n, p in zip(x.shape[2:], padding)])
    padded = _Padded(x, padding, total)
    if max(stride) == 1 and g.size:
        # Between lines of the padded width, a place of the window sees the whole image shifted:
        # its gradient is one scalar product, for which what is too much of g is zero.
        steps = contiguous_strides(total)
        length = sum([(c - 1) * step for c, step in zip(count, steps)]) + 1
        wide = None
        for block in blocks:
            part = np.ascontiguousarray(padded[block])
            rows = part.reshape(*part.shape[:2], -1)
            if wide is None:
                wide = np.zeros_like(part)
            upstream = wide[: len(part)]
            upstream[(..., *[slice(0, c) for c in count])] = g[block]
            inner = upstream.reshape(rows.shape)[..., :length]
            if g.dtype.kind == "c":
                inner = inner.conj()  # vecdot conjugates its first argument
            for place in np.ndindex(*kernel):
                start = sum([i * d * step for i, d, step in zip(place, dilation, steps)])
                sums = np.vecdot(inner, rows[..., start : start + length])
                gw[(slice(None), 0, *place)] += sums.sum(0)
        return gw
    places = list(window_slices(kernel, count, stride, dilation))
    axes = (0, *range(2, g.ndim))
    for block in blocks:
        part, upstream = padded[block], g[block]
        for place, slices in places:
            gw[(slice(None), 0, *place)] += (part[(..., *slices)] * upstream).sum(axes)
    return gw

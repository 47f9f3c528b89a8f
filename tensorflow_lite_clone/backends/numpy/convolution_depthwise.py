"""Depthwise convolutions on the CPU: places of the window are summed one by one, in the cache.

Where the stride is 1, a place of the window sees the whole image shifted, if there is padding
between its lines. The images of a channel then are one long line, several channels a matrix, and
what a place adds is a product of that, from some column on, with a factor for each channel. NumPy
does this three times as fast as lines of 32 numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tensorflow_lite_clone.backends.numpy.convolution_col2im import Col2im
from tensorflow_lite_clone.backends.numpy.convolution_im2col import pad_lines
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.backends.numpy.workspace import workspace
from tensorflow_lite_clone.backends.windows import Ints, padded_size, window_slices
from tensorflow_lite_clone.core.shape import contiguous_strides


def depthwise(
    y: np.ndarray, x: np.ndarray, w: np.ndarray, stride: Ints, padding: Ints, dilation: Ints
) -> None:
    """Write the convolution of x (n, c, *space) with w (c, 1, *kernel) to y (n, c, *count)."""
    count, kernel = y.shape[2:], w.shape[2:]
    if max(stride) == 1:
        _sum_shifted(y, x, w, padding, dilation)
        return
    total = padded_size(count, kernel, stride, dilation)
    places = list(window_slices(kernel, count, stride, dilation))
    for block in _blocks(y):
        part, result = _inside(x[block], padding, total), y[block]
        with workspace(result.size, y.dtype) as memory:
            term = memory.reshape(result.shape)
            result.fill(0)
            for place, slices in places:
                np.multiply(part[(..., *slices)], _factor(w, place), out=term)
                result += term


def depthwise_input(
    gx: np.ndarray, g: np.ndarray, w: np.ndarray, stride: Ints, padding: Ints, dilation: Ints
) -> None:
    """Write the gradient of x (n, c, *size) to gx, for that of y."""
    kernel = w.shape[2:]
    before = tuple([d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding)])
    if max(stride) == 1 and min(before) >= 0:
        mirrored = w[(..., *(slice(None, None, -1),) * len(kernel))]
        _sum_shifted(gx, g, mirrored, before, dilation)
        return
    fold = Col2im(gx, g.shape[2:], kernel, stride, padding, dilation)
    for block in _blocks(g):
        part = g[block]
        with workspace(part.size, g.dtype) as memory:
            term = memory.reshape(part.shape)
            fold(
                block.start,
                len(part),
                lambda place, part=part, term=term: np.multiply(part, _factor(w, place), out=term),
            )


def depthwise_weight(
    g: np.ndarray, x: np.ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> np.ndarray:
    """The gradient (c, 1, *kernel) of the weight, for that of y."""
    count = g.shape[2:]
    gw = np.zeros((g.shape[1], 1, *kernel), g.dtype)
    if max(stride) == 1:
        for samples, channels, lines, sizes in _lines(x, count, kernel, padding, dilation):
            part = g[samples, channels].swapaxes(0, 1)
            c, m = part.shape[:2]
            length = m * math.prod(sizes)
            with workspace(c * length, g.dtype) as memory:
                upstream = pad_lines(part, sizes, memory).reshape(c, length)
                if g.dtype.kind == "c":
                    np.conj(upstream, out=upstream)  # vecdot conjugates its first argument
                for place, shift in _shifts(kernel, sizes, dilation):
                    sums = np.vecdot(upstream, lines[:, shift : shift + length])
                    gw[(channels, 0, *place)] += sums
        return gw
    total = padded_size(count, kernel, stride, dilation)
    axes = (0, *range(2, g.ndim))
    for block in _blocks(g):
        part = _inside(x[block], padding, total)
        for place, slices in window_slices(kernel, count, stride, dilation):
            gw[(slice(None), 0, *place)] += (part[(..., *slices)] * g[block]).sum(axes)
    return gw


def _sum_shifted(y: np.ndarray, x: np.ndarray, w: np.ndarray, before: Ints, dilation: Ints) -> None:
    """Write the convolution of x (n, c, *space) with w (c, 1, *kernel) and stride 1 to y."""
    count, kernel = y.shape[2:], w.shape[2:]
    valid = (..., *[slice(0, c) for c in count])
    for samples, channels, lines, sizes in _lines(x, count, kernel, before, dilation):
        target = y[samples, channels]
        m, c = target.shape[:2]
        length = m * math.prod(sizes)
        with workspace(2 * c * length, y.dtype) as memory:
            result, term = memory.reshape(2, c, length)
            for number, (place, shift) in enumerate(_shifts(kernel, sizes, dilation)):
                seen, factor = lines[:, shift : shift + length], w[(channels, 0, *place)][:, None]
                np.multiply(seen, factor, out=term if number else result)
                if number:
                    result += term
            target[...] = result.reshape(c, m, *sizes)[valid].swapaxes(0, 1)


def _lines(
    x: np.ndarray, count: Ints, kernel: Ints, before: Ints, dilation: Ints
) -> Iterator[tuple[slice, slice, np.ndarray, Ints]]:
    """Blocks of samples and channels: (c, m * prod(sizes) + more), and the sizes of an image.

    Between lines, and between images, there is as much padding as one of both needs.
    """
    n, channels = x.shape[:2]
    space = x.shape[2:]
    covered = padded_size(count, kernel, (1,) * len(kernel), dilation)
    sizes = tuple(
        [max(s + max(b, c - s - b), m) for s, b, c, m in zip(space, before, covered, count)]
    )
    image = math.prod(sizes)
    more = max([shift for _, shift in _shifts(kernel, sizes, dilation)])
    m = max(1, min(n, tuning.depthwise_block // 4 // image))
    c = max(1, min(channels, tuning.depthwise_block // (m * image)))
    inside = (..., *[slice(b, b + s) for b, s in zip(before, space)])
    with workspace(c * (m * image + more), x.dtype) as memory:
        memory.fill(0)  # what is around the images stays zero
        lines = memory.reshape(c, m * image + more)
        grid = lines[:, : m * image].reshape(c, m, *sizes)
        for start in range(0, n, m):
            samples = slice(start, min(start + m, n))
            for first in range(0, channels, c):
                block = slice(first, min(first + c, channels))
                part = x[samples, block].swapaxes(0, 1)
                grid[: len(part), : part.shape[1]][inside] = part
                yield samples, block, lines[: len(part)], sizes


def _shifts(kernel: Ints, sizes: Ints, dilation: Ints) -> Iterator[tuple[Ints, int]]:
    """Each place in the window, and how far it is from the first one in lines of these sizes."""
    steps = contiguous_strides(sizes)
    for place in np.ndindex(*kernel):
        yield place, sum([i * d * step for i, d, step in zip(place, dilation, steps)])


def _factor(w: np.ndarray, place: Ints) -> np.ndarray:
    return w[(slice(None), 0, *place)].reshape(-1, *(1,) * len(place))


def _blocks(x: np.ndarray) -> Iterator[slice]:
    step = max(1, tuning.depthwise_block // max(x[0].size, 1))
    for start in range(0, len(x), step):
        yield slice(start, min(start + step, len(x)))


def _inside(x: np.ndarray, before: Ints, total: Ints) -> np.ndarray:
    """x (m, c, *space) in zeros of size `total`, of which it may not need all."""
    if not any(before) and all([n >= t for n, t in zip(x.shape[2:], total)]):
        return x
    result = np.zeros((*x.shape[:2], *total), x.dtype)
    kept = (..., *[slice(0, t - b) for t, b in zip(total, before)])
    result[(..., *[slice(b, b + n) for b, n in zip(before, x.shape[2:])])] = x[kept]
    return result

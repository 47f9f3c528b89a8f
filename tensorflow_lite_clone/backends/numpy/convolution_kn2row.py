"""Convolutions of few channels: the lines of the kernel are stacked.

A product with 16 rows is half as fast as one with 48. So all lines of the kernel (the places along
the window's first axis) are multiplied with the same columns, and their results are added up, each
moved by whole lines. The columns are those of one line: a third, where the kernel has three.
"""

from __future__ import annotations

import math

import numpy as np

from tensorflow_lite_clone.backends.numpy.convolution_im2col import (
    Windows,
    im2col,
    long_lines,
    pad_lines,
)
from tensorflow_lite_clone.backends.numpy.workspace import workspace
from tensorflow_lite_clone.backends.windows import Ints

_MAX_ROWS = 128  # of the stacked weight
_MIN_WINDOWS, _MAX_WINDOWS = 64, 4096


def is_kn2row(outputs: int, space: Ints, windows: Windows) -> bool:
    """Whether this serves, and is better than columns of whole windows."""
    k, d, before = windows.kernel[0], windows.dilation[0], windows.before[0]
    return (
        k > 1
        and windows.long
        and outputs * k <= _MAX_ROWS
        and max(windows.stride) == 1
        and windows.counts[0] == space[0]
        and before % d == 0
        and before // d < k
        and _MIN_WINDOWS <= math.prod(windows.counts) <= _MAX_WINDOWS
    )


def kn2row(
    y: np.ndarray, x: np.ndarray, w: np.ndarray, windows: Windows, bias: np.ndarray | None
) -> None:
    """Write to y (n, o, *count) what w (o, c, *kernel) and `bias` make of x (n, c, *space)."""
    o, c, k = w.shape[:3]
    one_line, lines = _split(windows)
    rows = math.prod(w.shape[1:]) // k
    matrix = w.reshape(o, c, k, -1).transpose(2, 0, 1, 3).reshape(k * o, rows)
    sizes = long_lines(x.shape[2:], one_line)
    line = math.prod(sizes)
    middle = lines.index(0)
    valid = (..., *[slice(0, count) for count in windows.counts])
    for block, _, windows_of in im2col(x, one_line, merge=False, whole=True):
        m, length = len(windows_of), windows_of.shape[-1]
        with workspace(m * k * o * length, y.dtype) as memory:
            products = memory.reshape(m, k * o, length)
            np.matmul(matrix, windows_of.reshape(m, rows, length), out=products)
            results = products.reshape(m, k, o, length)
            total = results[:, middle]
            for number, offset in enumerate(lines):
                if offset and abs(offset) * line < length:
                    start, stop, shift = _overlap(offset * line, length)
                    total[..., start:stop] += results[:, number, :, start + shift : stop + shift]
            y[block] = total.reshape(m, o, windows.counts[0], *sizes)[valid]
        if bias is not None:
            y[block] += bias


def kn2row_weight(g: np.ndarray, x: np.ndarray, windows: Windows) -> np.ndarray:
    """The gradient (o, c, *kernel) of the weight of `kn2row`."""
    n, o = g.shape[:2]
    one_line, lines = _split(windows)
    sizes = long_lines(x.shape[2:], one_line)
    line = math.prod(sizes)
    rows = x.shape[1] * math.prod(one_line.kernel)
    gw = np.zeros((len(lines), o, rows), g.dtype)
    for block, _, windows_of in im2col(x, one_line, merge=False, whole=True):
        m, length = len(windows_of), windows_of.shape[-1]
        with workspace(m * o * length, g.dtype) as memory:
            upstream = pad_lines(g[block], (windows.counts[0], *sizes), memory)
            upstream = upstream.reshape(m, o, length)
            matrix = windows_of.reshape(m, rows, length).swapaxes(1, 2)
            for number, offset in enumerate(lines):
                if abs(offset) * line < length:
                    start, stop, shift = _overlap(offset * line, length)
                    seen = matrix[:, start + shift : stop + shift]
                    gw[number] += np.add.reduce(np.matmul(upstream[..., start:stop], seen), 0)
    shape = (len(lines), o, x.shape[1], math.prod(one_line.kernel))
    gw = np.ascontiguousarray(gw.reshape(shape).transpose(1, 2, 0, 3))
    return gw.reshape(o, x.shape[1], *windows.kernel)


def _split(windows: Windows) -> tuple[Windows, list[int]]:
    """Windows of one line, and the offset of each line of the kernel."""
    count, kernel, stride, before, dilation, long = windows
    one_line = Windows(count, (1, *kernel[1:]), stride, (0, *before[1:]), dilation, long)
    return one_line, [i * dilation[0] - before[0] for i in range(kernel[0])]


def _overlap(shift: int, length: int) -> Ints:
    """Which places of `length` see one of them `shift` away: from, to; and the shift."""
    return max(-shift, 0), min(length - shift, length), shift

"""The gradient of a convolution's input, window by window: products are added up."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tensorflow_lite_clone.backends.windows import Ints, padded_size, window_slices

_MERGE_BELOW = 256  # windows per sample
_BATCH_BYTES, _MERGED_BYTES = 1 << 20, 1 << 22


def col2im_products(
    gx: np.ndarray,
    g: np.ndarray,
    w: np.ndarray,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> None:
    """Write to gx (n, c, *size) the gradient of g (n, o, *count); w is (o, c / groups, *kernel)."""
    n, o, count, kernel = len(g), g.shape[1], g.shape[2:], w.shape[2:]
    channels, windows = gx.shape[1], math.prod(count)
    rows = w.shape[1] * math.prod(kernel)
    weight = w.reshape(groups, o // groups, rows).swapaxes(1, 2)
    merged = windows < _MERGE_BELOW
    fold = Col2im(gx, count, kernel, stride, padding, dilation)
    budget = _MERGED_BYTES if merged else _BATCH_BYTES
    step = max(1, min(n, budget // (groups * rows * windows * g.itemsize)))
    for start in range(0, n, step):
        part = g[start : start + step]
        m = len(part)
        if merged:
            upstream = part.swapaxes(0, 1).reshape(groups, o // groups, m * windows)
            columns = np.matmul(weight, upstream).reshape(channels, *kernel, m, *count)
            columns = np.moveaxis(columns, len(kernel) + 1, 0)
        else:
            columns = np.matmul(weight, part.reshape(m, groups, o // groups, windows))
            columns = columns.reshape(m, channels, *kernel, *count)
        fold(start, m, lambda place, c=columns: c[(slice(None), slice(None), *place)])


class Col2im:
    """Adds windows up into `gx`, block by block."""

    def __init__(
        self, gx: np.ndarray, count: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
    ) -> None:
        size = gx.shape[2:]
        covered = padded_size(count, kernel, stride, dilation)
        self.gx = gx
        self.total = tuple([max(c, n + 2 * p) for c, n, p in zip(covered, size, padding)])
        self.inside = tuple([slice(p, p + n) for p, n in zip(padding, size)])
        self.direct = self.total == size
        self.places = list(window_slices(kernel, count, stride, dilation))
        self.buffer: np.ndarray | None = None

    def __call__(self, start: int, m: int, windows_at: Callable[[Ints], np.ndarray]) -> None:
        part = self.gx[start : start + m]
        if self.direct:
            total = part
        else:
            if self.buffer is None:
                self.buffer = np.empty((*part.shape[:2], *self.total), part.dtype)
            total = self.buffer[: len(part)]
        total.fill(0)
        for place, slices in self.places:
            total[(..., *slices)] += windows_at(place)
        if not self.direct:
            part[...] = total[(..., *self.inside)]

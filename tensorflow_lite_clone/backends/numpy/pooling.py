"""The gradient of the maximum over windows on the CPU, a few samples at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.core.windows import Ints, padded_size, window_slices
from tensorflow_lite_clone.dispatch.table import override

_BYTES = 1 << 18


@override("max_pool_backward", backend="numpy")
def max_pool_backward(
    F: Any,
    g: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    hint: Any,
    *,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
) -> np.ndarray:
    if x.dtype.char not in "fd" or not y.size or not np.isfinite(np.add.reduce(y, None)):
        return NotImplemented  # infinities may win in the padding, and NaNs equal nothing
    size, count = x.shape[2:], y.shape[2:]
    covered = padded_size(count, kernel, stride, dilation)
    total = tuple([max(c, n + p) for c, n, p in zip(covered, size, padding)])
    inside = (..., *[slice(p, p + n) for p, n in zip(padding, size)])
    # what of x lies in `total`: a last window may not reach its end
    part_of_x = (..., *[slice(0, t - p) for t, p in zip(total, padding)])
    direct = total == size
    apart = all([s >= d * (k - 1) + 1 for s, k, d in zip(stride, kernel, dilation)])
    places = [slices for _, slices in window_slices(kernel, count, stride, dilation)]
    gx = np.empty(x.shape, x.dtype)
    step = max(1, _BYTES // max(x[0].nbytes, 1))
    values = sums = None
    for start in range(0, len(x), step):
        block = slice(start, start + step)
        source, target, tops, upstream = x[block], gx[block], y[block], g[block]
        if not direct:
            if values is None:
                values = np.full((len(source), x.shape[1], *total), -np.inf, x.dtype)
                sums = np.empty(values.shape, x.dtype)
            values[: len(source)][inside] = source[part_of_x]
            source, target = values[: len(source)], sums[: len(source)]
        target.fill(0)
        taken = np.zeros(tops.shape, np.bool_)
        wins = np.empty(tops.shape, np.bool_)
        for slices in places:
            place = (..., *slices)
            np.equal(source[place], tops, out=wins)
            np.greater(wins, taken, out=wins)  # the first of equal values wins
            np.logical_or(taken, wins, out=taken)
            if apart:
                np.multiply(upstream, wins, out=target[place])
            else:
                target[place] += upstream * wins
        if not direct:
            gx[block] = target[inside]
    return gx

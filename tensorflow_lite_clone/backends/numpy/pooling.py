"""Pools on the CPU: a few samples at a time, which stay in the cache, in several threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.threads import parallel_for
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.backends.numpy.workspace import workspace
from tensorflow_lite_clone.backends.windows import Ints, padded_size, window_slices
from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.dispatch.table import override

_GLOBAL = 1 << 10  # of a window, whose sum in a product is as good as NumPy's


def _in_blocks(generic: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """The op's generic form, block by block."""
    n, size = len(x), x.size
    step = max(1, tuning.pooling_block * n // size) if size else n
    if step >= n:
        return generic(x)
    first = generic(x[:step])
    result = np.empty((n, *first.shape[1:]), first.dtype)
    result[:step] = first

    def work(start: int, stop: int) -> None:
        for begin in range((start + 1) * step, min((stop + 1) * step, n), step):
            block = slice(begin, begin + step)
            result[block] = generic(x[block])

    blocks = -(-n // step) - 1
    parallel_for(work, blocks, -(-tuning.pooling_per_thread * n // (step * max(size, result.size))))
    return result


@override("max_pool", backend="numpy")
def max_pool(F: Any, x: np.ndarray, **parameters: Any) -> tuple[np.ndarray, np.ndarray]:
    forward = TABLE["max_pool"].forward  # type: ignore[union-attr]
    return _in_blocks(lambda x: forward(F, x, **parameters)[0], x), np.empty(0, np.uint8)


@override("avg_pool", backend="numpy")
def avg_pool(
    F: Any, x: np.ndarray, *, size: Ints, kernel: Ints, padding: Ints, **others: Any
) -> np.ndarray:
    length = math.prod(size)
    if kernel == size and not any(padding) and x.dtype.char in "fd" and length <= _GLOBAL:
        # a product with ones is five times as fast as many short sums
        total = np.matmul(x.reshape(-1, length), np.ones(length, x.dtype))
        total /= others["divisor"] or length
        return total.reshape(*x.shape[:2], *(1,) * len(size))
    parameters = {"size": size, "kernel": kernel, "padding": padding, **others}
    forward = TABLE["avg_pool"].forward  # type: ignore[union-attr]
    return _in_blocks(lambda x: forward(F, x, **parameters), x)


@override("avg_pool_backward", backend="numpy")
def avg_pool_backward(F: Any, x: np.ndarray, **parameters: Any) -> np.ndarray:
    forward = TABLE["avg_pool_backward"].forward  # type: ignore[union-attr]
    return _in_blocks(lambda x: forward(F, x, **parameters), x)


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
    disjoint = all([s >= d * (k - 1) + 1 for s, k, d in zip(stride, kernel, dilation)])
    places = [slices for _, slices in window_slices(kernel, count, stride, dilation)]
    gx = np.empty(x.shape, x.dtype)
    step = max(1, min(len(x), tuning.pooling_block // max(x[0].size, 1)))
    shape = (step, x.shape[1], *total)

    def work(start: int, stop: int) -> None:
        needed = 0 if direct else int(np.prod(shape))
        with (
            workspace(2 * needed, x.dtype) as memory,
            workspace(2 * y[:step].size, np.dtype(np.bool_)) as flags,
            workspace(y[:step].size, x.dtype) as part_of_g,
        ):
            memory[:needed] = -np.inf
            for begin in range(start, stop, step):
                block = slice(begin, min(begin + step, stop))
                source, target, tops, upstream = x[block], gx[block], y[block], g[block]
                if not direct:
                    values, sums = memory.reshape(2, *shape)[:, : len(source)]
                    values[inside] = source[part_of_x]
                    source, target = values, sums
                target.fill(0)
                taken, wins = flags[: 2 * tops.size].reshape(2, *tops.shape)
                share_of_g = part_of_g[: tops.size].reshape(tops.shape)
                taken.fill(False)
                for slices in places:
                    place = (..., *slices)
                    np.equal(source[place], tops, out=wins)
                    np.greater(wins, taken, out=wins)  # the first of equal values wins
                    np.logical_or(taken, wins, out=taken)
                    if disjoint:
                        np.multiply(upstream, wins, out=target[place])
                    else:
                        np.multiply(upstream, wins, out=share_of_g)
                        target[place] += share_of_g
                if not direct:
                    gx[block] = target[inside]

    parallel_for(work, len(x), -(-tuning.pooling_per_thread * len(x) // x.size))
    return gx

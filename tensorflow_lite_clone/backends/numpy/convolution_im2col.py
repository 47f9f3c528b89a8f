"""Windows of an image as columns of a matrix, a cacheful at a time.

To copy them costs a tenth to a half of what the product costs, depending on how long the runs are
that are copied. Where the stride is 1, a place of the window sees the whole flattened image
shifted, if lines are as long as the padding between them asks for: that is one run per channel,
with a few windows too many at the end of each line. Elsewhere a run is a line of windows.

Each block is a handful of calls that last for 0.1 ms or more, since threads that take turns at the
interpreter between shorter ones wait for each other most of the time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tensorflow_lite_clone.backends.numpy.primitives.indexing import as_strided
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.backends.numpy.workspace import workspace
from tensorflow_lite_clone.backends.windows import Ints, padded_size
from tensorflow_lite_clone.core.shape import contiguous_strides

_MAX_WASTE = 1.15  # windows that are multiplied for each one that is wanted

_all = slice(None)
Block = tuple[slice, slice, np.ndarray]


class Windows(NamedTuple):
    """Where windows lie: `counts` along the axes, the first one `before` the input's first place.

    `long` ones may lie in longer lines than `counts` says, see `long_lines`: that is worth while
    where a window has far more numbers than the result.
    """

    counts: Ints
    kernel: Ints
    stride: Ints
    before: Ints
    dilation: Ints
    long: bool = False


@lru_cache(1024)
def long_lines(space: Ints, windows: Windows) -> Ints:
    """The sizes, but the first one, that `im2col` gives the grid of windows: `count` or more."""
    count = windows.counts
    if windows.long and max(windows.stride) == 1 and max(windows.kernel[1:], default=1) > 1:
        covered = padded_size(count, windows.kernel, windows.stride, windows.dilation)
        sizes = tuple(
            [
                max(n + max(before, c - n - before), m)
                for n, m, before, c in zip(space, count, windows.before, covered)
            ]
        )[1:]
        if math.prod(sizes) <= _MAX_WASTE * math.prod(count[1:]):
            return sizes
    return count[1:]


def im2col(x: np.ndarray, windows: Windows, merge: bool, whole: bool = False) -> Iterator[Block]:
    """Blocks of samples and lines (of the first axis of the grid), with the columns of windows.

    x is (n, c, *space); a block is (samples, c, places in the window, windows), where the windows
    are those of lines of `long_lines`. The next block uses its memory again. Blocks that
    `merge` lie in memory as (c, places, samples, windows). They and `whole` ones have all lines.
    """
    count, kernel = windows.counts, windows.kernel
    plan = _plan(x.shape, x.itemsize, windows, merge, merge or whole, tuning.im2col_bytes)
    if plan.at_once:
        seen = [slice(0, (c - 1) * s + 1, s) for c, s in zip(count, windows.stride)]
        rows = x[(..., *seen)].reshape(*x.shape[:2], 1, math.prod(count))
        yield slice(0, len(x)), slice(0, count[0]), rows
        return
    n, channels, places, length = len(x), x.shape[1], math.prod(kernel), plan.length
    samples, lines, line = plan.samples, plan.lines, plan.line
    with (
        workspace(samples * channels * length, x.dtype) as padding,
        workspace(samples * channels * places * lines * line, x.dtype) as memory,
    ):
        padding.fill(0)  # what is around the input stays zero
        grid = padding.reshape(samples, channels, length)[..., : math.prod(plan.total)]
        grid = grid.reshape(samples, channels, *plan.total)
        for start in range(0, n, samples):
            block = slice(start, min(start + samples, n))
            m = block.stop - start
            grid[(slice(0, m), *plan.inside)] = x[(block, *plan.kept)]
            for first in range(0, count[0], lines):
                part = slice(first, min(first + lines, count[0]))
                number = part.stop - first
                shape = (number * line,) if plan.flat else (number, *count[1:])
                view = as_strided(
                    padding, (m, channels, *kernel, *shape), plan.steps, first * plan.next_line
                )
                target = memory[: m * channels * places * number * line]
                if merge:
                    target = target.reshape(channels, places, m, number * line)
                    target = target.transpose(2, 0, 1, 3)
                else:
                    target = target.reshape(m, channels, places, number * line)
                np.copyto(target.reshape(view.shape), view)  # splits axes: never a copy
                yield block, part, target


class _Plan(NamedTuple):
    """How `im2col` goes about inputs of one shape."""

    at_once: bool  # the input itself is the columns
    flat: bool  # the grid has long lines
    samples: int  # of a block
    lines: int  # of a block
    line: int  # windows of a line
    total: Ints  # the size of the padded input
    length: int  # elements of it, and what is read behind them
    steps: Ints  # along samples, channels, a window, and from window to window
    next_line: int  # from the first line of windows to the second
    kept: tuple[slice, ...]  # of the input
    inside: tuple[slice, ...]  # where that lies in the padded one


@lru_cache(1024)
def _plan(
    shape: Ints, itemsize: int, windows: Windows, merge: bool, whole: bool, limit: int
) -> _Plan:
    count, kernel, stride, before, dilation, _ = windows
    (n, channels), space = shape[:2], shape[2:]
    fits = all([(c - 1) * s < n for n, c, s in zip(space, count, stride)])
    at_once = math.prod(kernel) == 1 and not any(before) and fits and not merge
    sizes = long_lines(space, windows)
    flat = sizes != count[1:]
    covered = padded_size(count, kernel, stride, dilation)
    total = (covered[0], *sizes) if flat else covered
    steps = contiguous_strides(total)
    inner = [step * d for step, d in zip(steps, dilation)]
    outer = [step * s for step, s in zip(steps, stride)]
    length = math.prod(total) + sum([(k - 1) * step for k, step in zip(kernel, inner)][1:])
    line = math.prod(sizes)
    a_line = channels * math.prod(kernel) * line * itemsize
    fitting = max(limit // max(a_line, 1), 1)
    samples, lines = max(1, min(n, fitting // max(count[0], 1))), count[0]
    if fitting < count[0] and not whole:
        lines = fitting
    every = (slice(None),)
    return _Plan(
        at_once, flat, samples, lines, line, total, length,
        (channels * length, length, *inner, *((1,) if flat else outer)), outer[0],
        every + tuple([slice(0, max(t - b, 0)) for t, b in zip(total, before)]),
        every + tuple([slice(b, b + n) for b, n in zip(before, space)]),
    )  # fmt: skip


def pad_lines(g: np.ndarray, sizes: Ints, memory: np.ndarray) -> np.ndarray:
    """g (m, o, *count) in images of `sizes`, zeros at their ends: itself, or in `memory`."""
    if g.shape[2:] == sizes:
        return g
    memory.fill(0)
    longer = memory.reshape(*g.shape[:2], *sizes)
    longer[(..., *[slice(0, count) for count in g.shape[2:]])] = g
    return longer

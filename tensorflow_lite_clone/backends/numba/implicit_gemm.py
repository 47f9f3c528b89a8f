"""How the images of a convolution lie in lines, for the kernels in `kernels/direct`.

Along an axis a window is a list of places: of which remainder by the stride, and how far from the
window's own place in that remainder's line.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from tensorflow_lite_clone.backends.windows import Ints

Tap = tuple[int, int, int]  # its place in the kernel, its remainder, its offset


class Phase(NamedTuple):
    """Windows of one phase by the stride, which have the same taps: every so many results."""

    first: int
    number: int
    taps: tuple[Tap, ...]


class Axis(NamedTuple):
    """An axis of `size` numbers, `padding` zeros before them, of which windows see each `stride`.

    The results are in `phases`; those of one are `step` apart.
    """

    size: int
    stride: int
    padding: int
    phases: tuple[Phase, ...]
    step: int = 1

    @property
    def remainders(self) -> list[int]:
        return sorted({remainder for phase in self.phases for _, remainder, _ in phase.taps})

    @property
    def reach(self) -> int:
        """The largest offset of a tap."""
        return max([offset for phase in self.phases for *_, offset in phase.taps], default=0)

    @property
    def max_windows(self) -> int:
        """Windows of the largest part."""
        return max([phase.number for phase in self.phases])

    @property
    def pitch(self) -> int:
        """From one line's beginning to the next one's, whose first zeros are the line's last."""
        span = max([p.number + max([o for *_, o in p.taps], default=0) for p in self.phases])
        ends, zeros = [0], []
        for remainder in self.remainders:
            before = self.padding - remainder
            ends.append(min(-(-(before + self.size) // self.stride), span))
            zeros.append(max(0, -(-before // self.stride)))
        return max(*ends, span - min(zeros, default=0), self.max_windows)


def forward(size: int, count: int, kernel: int, stride: int, padding: int, dilation: int) -> Axis:
    """Along an axis of an input."""
    taps = tuple([(i, i * dilation % stride, i * dilation // stride) for i in range(kernel)])
    return Axis(size, stride, padding, (Phase(0, count, taps),))


def backward(size: int, count: int, kernel: int, stride: int, padding: int, dilation: int) -> Axis:
    """Along an axis of `count` windows, whose gradients an input of `size` numbers receives.

    Numbers of the same remainder by the stride have the same taps, which see windows side by side.
    """
    seen = [
        [
            (i, (remainder + padding - i * dilation) // stride)
            for i in range(kernel)
            if (remainder + padding - i * dilation) % stride == 0
        ]
        for remainder in range(stride)
    ]
    before = max([0, *[-offset for taps in seen for _, offset in taps]])
    phases = [
        Phase(first, len(range(first, size, stride)), tuple([(i, 0, o + before) for i, o in taps]))
        for first, taps in enumerate(seen)
    ]
    return Axis(count, 1, before, tuple([phase for phase in phases if phase.number]), stride)


class Plan(NamedTuple):
    """A product of weights with lines of images, as the kernels take it."""

    remainders: np.ndarray  # (number, 2): for each of the lines of a channel
    weights: np.ndarray  # where each tap of each channel has its weight
    places: np.ndarray  # and where it begins in the lines
    phases: np.ndarray  # (number, 6): first place, places, first row and column, rows, columns
    geometry: Ints  # strides, padding, and the pitches of rows and columns
    groups: int  # of images
    bands: int  # items of an image
    rows: int  # of an item's image
    line_length: int  # of a channel


@lru_cache(256)
def plan(rows: Axis, columns: Axis, sizes: Ints, steps: Ints, tile: int, split: Ints) -> Plan:
    """The plan of two axes; `sizes` are the numbers of images, channels, and results of a pixel.

    `steps` are those from channel to channel and from row to row of a weight, `tile` is what lines
    are rounded up to; `split`: numbers that an item may have, pixels that its lines should have,
    and items that there should be.
    """
    (images, channels, outputs), (room, long, min_items) = sizes, split
    remainders = list(product(rows.remainders, columns.remainders)) or [(0, 0)]
    tall, wide = rows.pitch, columns.pitch
    a_row = max(channels * len(remainders), outputs) * wide
    bands = max(-(-a_row * tall // room), min(-(-min_items // max(images, 1)), rows.max_windows))
    count = -(-rows.max_windows // bands)
    bands, groups = -(-rows.max_windows // count), images
    if bands == 1:
        group = max(1, min(long // (tall * wide), room // (a_row * tall)))
        groups = min(images, -(-images // (group * min_items)) * min_items)
    else:
        tall = count + rows.reach
    group = -(-images // groups)
    used = (group - 1) * tall * wide + count * wide
    length = -(-used // tile) * tile + rows.reach * wide + columns.reach
    length = max(length, group * tall * wide)
    weights, starts, table, first = [], [], [], 0
    for row, column in product(rows.phases, columns.phases):
        for channel, (i, row_left, down), (j, left, right) in product(
            range(channels), row.taps, column.taps
        ):
            weights.append(channel * steps[0] + i * steps[1] + j)
            line = remainders.index((row_left, left)) * channels + channel
            starts.append(line * length + down * wide + right)
        number = len(starts) - first
        table.append((first, number, row.first, column.first, row.number, column.number))
        first += number
    return Plan(
        np.array(remainders), np.array(weights, np.int64), np.array(starts, np.int64),
        np.array(table),
        (rows.stride, columns.stride, rows.padding, columns.padding, tall, wide),
        groups, bands, count, length,
    )  # fmt: skip

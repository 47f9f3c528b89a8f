"""How convolutions are cut up for Hopper: tiles, patches, stages, and what they cost.

A tile of outputs is a box of pixels (width, height, images in some order). What it reads at one tap
is a box as well; where taps are a stride apart, one box with its margin, a patch, serves several.
A product's 64 rows are pixels and its columns outputs, or for few outputs the other way about: so
shared memory is read less often.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import gcd, prod
from typing import NamedTuple

CHUNK = 128  # bytes of channels that are read at once
_SHARED = 226 * 1024  # of a multiprocessor, for all its blocks
_MOST_STAGES = 12
RESULTS = 32 * 1024  # under way beside the stages, where a block has several tiles
_WIDEST = 256  # elements of a box along an axis

# Fitted to 41 times of an H200, in cycles at 1715 MHz; the root mean square of the errors is 12 %.
_SLOW = 1.04  # of products, beside what the tensor cores and shared memory could do
_L2_BYTES = 34  # a cycle and multiprocessor
_LEAD = 5120  # by which weights should be asked for before they are needed
_LATE = 27000  # of lead that is missing make products take twice as long
_FIXED = 10900  # around a kernel's products
_WRITTEN = 16  # bytes of results a cycle and block
_EXCHANGE = 1000  # around what blocks add up together
_SPLIT = 8  # of a column of 128 pixels of that
_SCATTERED = 1.04  # where boxes begin with several images


class Shape(NamedTuple):
    """An instance of the kernel."""

    outputs: int  # of a block
    pieces: int  # of a warpgroup
    resident: int  # blocks of a multiprocessor
    split: int  # blocks that share the channels
    piece: int = 64  # pixels of a product: its rows, or if more than 64 its columns

    @property
    def columns(self) -> int:
        """Of a product."""
        return self.outputs if self.piece == 64 else self.piece


SHAPES = (
    Shape(128, 2, 1, 1), Shape(128, 1, 1, 1), Shape(64, 2, 1, 1), Shape(64, 1, 2, 1),
    Shape(128, 2, 1, 2), Shape(128, 1, 1, 2), Shape(64, 1, 2, 2), Shape(64, 1, 1, 1, 256),
    Shape(64, 2, 1, 1, 128),
)  # fmt: skip


class Axis(NamedTuple):
    """Outputs along an axis and what they read: input = first + slope output + step tap.

    `tap` and `tap_step` say which taps of the weights these are.
    """

    size: int
    taps: int = 1
    first: int = 0
    slope: int = 1
    step: int = 1
    tap: int = 0
    tap_step: int = 0


class Box(NamedTuple):
    """A tile, the pieces it is made of, and the patch it reads; innermost axis first."""

    tile: tuple[int, ...]
    piece: tuple[int, ...]
    patch: tuple[int, ...]
    group_stride: int  # bytes in the patch from 8 rows of a piece to the next 8
    tiles: int


class Plan(NamedTuple):
    """How convolutions are cut up; tuples by axis, innermost first."""

    shape: Shape
    order: tuple[int, ...]  # of width, height, images
    period: tuple[int, ...]  # taps that far apart share a patch
    shift: tuple[int, ...]  # and are so many rows apart in it
    box: Box
    patch_stages: int
    weight_stages: int
    cycles: float

    @property
    def rank(self) -> tuple:
        """The cost; of equal ones, the least beyond the edges, and boxes of fewest images."""
        box = self.box
        return self.cycles, box.tiles * prod(box.tile), box.tile[self.order.index(2)]

    @property
    def shared(self) -> int:
        """Bytes of the stages."""
        weights = self.weight_stages * self.shape.outputs * CHUNK
        return self.patch_stages * _patch_bytes(self.box.patch) + weights


def by(values: tuple, order: tuple) -> tuple:
    """The values of width, height and images in an order."""
    return tuple([values[i] for i in order])


def choose(
    parts: tuple, sizes: tuple, outputs: int, chunks: int, itemsize: int, processors: int
) -> Plan:
    """The plan of the fewest cycles for convolutions `parts` (triples of axes) in one launch."""
    return min(
        plans(parts, sizes, outputs, chunks, itemsize, processors), key=lambda plan: plan.rank
    )


def plans(
    parts: tuple, sizes: tuple, outputs: int, chunks: int, itemsize: int, processors: int
) -> Iterator[Plan]:
    """All plans. `sizes`: of the input, along width, height and images; `chunks`: of channels."""
    for order in ((0, 1, 2), (2, 0, 1)):
        axes = [by(part, order) for part in parts]
        # What is read along each axis is that of the part with the most taps along it.
        most = [max(along, key=lambda axis: axis.taps) for along in zip(*axes)]
        counts = [max([axis.size for axis in along]) for along in zip(*axes)]
        taps = sum([prod([a.taps for a in part]) for part in axes])
        useful = taps * _useful(most[2], sizes[order[2]])
        together = tuple([a.slope // gcd(a.slope, a.step) for a in most])
        strides = tuple([max(a.taps, 1) for a in most])
        for period in dict.fromkeys((together, strides)):
            shift = tuple(
                [p * a.step // a.slope if p < a.taps else 0 for p, a in zip(period, most)]
            )
            each = prod([-(-a.taps // p) for a, p in zip(most, period)])  # taps of a patch
            loads = sum([prod([min(a.taps, p) for a, p in zip(part, period)]) for part in axes])
            boxes = {
                pieces: list(_boxes(*pieces, most, counts, period, shift))
                for pieces in {(shape.piece, shape.pieces) for shape in SHAPES}
            }
            for shape in SHAPES:
                _, pieces, resident, split, piece = shape
                columns = shape.columns
                if split > chunks:
                    continue
                step = pieces * columns * 4  # cycles of a tap
                for box in boxes[piece, pieces]:
                    items = box.tiles * -(-outputs // shape.outputs) * len(parts)
                    room = _SHARED // resident - 1024
                    if split == 1 and items > processors * resident:
                        room -= RESULTS
                    patch, weights = _patch_bytes(box.patch), shape.outputs * CHUNK
                    stages = _stages(room, patch, weights, each, _LEAD // (step * resident))
                    if stages is None:
                        continue
                    blocks = items * split
                    products = 4 * 2 * pieces * (useful if box.piece[2] == 1 else taps)
                    loaded = loads * patch + taps * weights
                    late = 1 + max(0, _LEAD - stages[1] * step * resident) / _LATE
                    cycles = late * -(-chunks // split) / len(parts) * max(
                        _SLOW * products * columns / 2,
                        _SLOW * (products * (16 + columns / 4) + loaded / 128),
                        loaded / _L2_BYTES * min(1, blocks / processors),
                    )  # fmt: skip
                    # A lone block does not multiply while it writes.
                    if resident == 1:
                        used = min(1, outputs / shape.outputs)
                        cycles += 128 * pieces * columns * itemsize * used / _WRITTEN
                    # Blocks that share the channels follow each other: no copies meanwhile.
                    cycles += 0 if split == 1 else _EXCHANGE + _SPLIT * pieces * columns
                    whole, rest = divmod(blocks, processors * resident)
                    rounds = whole * resident + -(-rest // processors)
                    scattered = 1 if order[0] == 0 else _SCATTERED
                    yield Plan(
                        shape, order, period, shift, box, *stages,
                        _FIXED + scattered * rounds * cycles,
                    )  # fmt: skip


def summed(shape: Shape, itemsize: int) -> int:
    """Bytes of the sums and results of blocks that share the channels, in the stages' place."""
    return 2 * shape.pieces * 64 * shape.outputs * (4 + itemsize // shape.split)


def written(shape: Shape, piece: tuple, itemsize: int) -> tuple[int, int, int]:
    """The box of pixels that is written at once: a piece, or what it begins with."""
    pixels = 64 if shape.piece == 64 else 64 * CHUNK // (shape.outputs * itemsize)
    x = min(piece[0], pixels)
    y = min(piece[1], pixels // x)
    return x, y, pixels // (x * y)


def _boxes(
    pixels: int, pieces: int, axes: list, counts: list, period: tuple, shift: tuple
) -> Iterator[Box]:
    for piece, extra in product(_factors(pixels), _factors(2 * pieces)):
        tile = tuple([p * e for p, e in zip(piece, extra)])
        patch = tuple([t + (a.taps - 1) // p * s for t, a, p, s in zip(tile, axes, period, shift)])
        group_stride = _group_stride(piece, patch)
        widest = max([(p - 1) * a.slope + 1 for p, a in zip(patch, axes)])
        if group_stride is not None and widest <= _WIDEST:
            tiles = prod([-(-count // t) for count, t in zip(counts, tile)])
            yield Box(tile, piece, patch, group_stride, tiles)


@lru_cache(4096)
def _group_stride(piece: tuple, patch: tuple) -> int | None:
    """Bytes from 8 rows of a piece in a patch to the next 8; None if they do not lie so."""
    x, y, z = piece
    rows = [i % x + patch[0] * (i // x % y + patch[1] * (i // (x * y))) for i in range(x * y * z)]
    step = rows[8]
    if any([row != step * (i // 8) + i % 8 for i, row in enumerate(rows)]):
        return None
    return step * CHUNK


def _useful(axis: Axis, size: int) -> float:
    """The share of the taps along an axis that are not in the margin, for pieces of one place."""
    inside = 0
    for tap in range(axis.taps):
        first = axis.first + tap * axis.step  # what output 0 reads
        begin, end = -(first // axis.slope), -((first - size) // axis.slope)
        inside += max(0, min(end, axis.size) - max(begin, 0))
    return inside / max(axis.size * axis.taps, 1)


def _factors(number: int) -> list[tuple[int, int, int]]:
    """The ways to write a power of two as a product of three."""
    powers = [1 << i for i in range(number.bit_length())]
    return [(a, b, number // (a * b)) for a in powers for b in powers if number % (a * b) == 0]


def _patch_bytes(patch: tuple) -> int:
    return -(-prod(patch) * CHUNK // 1024) * 1024


def _stages(room: int, patch: int, weights: int, taps: int, minimum: int) -> tuple[int, int] | None:
    """Stages of patches and of weights: of these as many as are wanted, if there is room."""
    for patches in range(3 if taps > 1 else 6, 1, -1):
        number = min((room - patches * patch) // weights, _MOST_STAGES)
        if number >= min(patches * max(taps, 1), minimum):
            return patches, number
    return (2, number) if number >= min(2 * taps, 3) else None

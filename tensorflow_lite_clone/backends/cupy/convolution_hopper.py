"""Launcher of the convolutions on Hopper's tensor cores, and the choice of their tiles.

A tile of outputs is a box of pixels (width, height, images in some order). Its inputs are a box as
well, which the copy engine brings with zeros around the image. Where the stride is one, a box with
its margin serves all taps.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tensorflow_lite_clone.backends.cupy.convolution_layout import Pixels
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.backends.cupy.tensor_maps import tensor_map

_PARAMS = ("T", "BN", "BLOCKS", "RESIDENT", "SPLIT")
_kernel = Kernel("conv2d_sm90.cu", "conv2d_hopper", params=_PARAMS)

_RECORD = np.dtype(
    [(name, "i4", 3) for name in ("tiles", "tile", "piece", "first", "slope", "step", "loads")]
    + [(name, "i4", 3) for name in ("taps", "patch", "size")]
    + [("tap", "i4"), ("tap_step", "i4", 3)]
    + [(name, "i4") for name in ("chunks", "columns", "outputs", "group_stride")]
    + [("patch_stages", "i4"), ("weight_stages", "i4")],
    align=True,
)
_CHUNK = 128  # bytes of channels
_THREADS = 384
_SHARED = 226 * 1024  # of a multiprocessor, for all its blocks
_MOST_STAGES = 12
_L2_BYTES = 28  # a cycle and multiprocessor
_FIXED = 3000  # cycles of a block around its products
_LEAST_CHANNELS = 64  # bytes; with fewer most of a chunk is zeros


class Axis(NamedTuple):
    """Outputs along an axis and what they read: input = first + slope output + step tap.

    `tap` and `tap_step` say which taps of the weights these are.
    """

    count: int
    taps: int = 1
    first: int = 0
    slope: int = 1
    step: int = 1
    tap: int = 0
    tap_step: int = 0


class Plan(NamedTuple):
    """How a convolution is cut up; tuples by axis, innermost first."""

    order: tuple[int, ...]  # of width, height, images
    columns: int
    blocks: int
    resident: int
    split: int
    tile: tuple[int, ...]
    piece: tuple[int, ...]
    patch: tuple[int, ...]
    shared_taps: bool
    group_stride: int
    patch_stages: int
    weight_stages: int
    covered: int  # pixels of all tiles
    cost: float


def serves(x: Pixels, outputs: int, itemsize: int, groups: int) -> bool:
    """Whether the kernel fits: 16-byte strides, enough channels, one group."""
    enough = x.packs * 16 >= _LEAST_CHANNELS and outputs >= 16
    return groups == 1 and enough and outputs * itemsize % 16 == 0


def gather(
    x: Pixels, w: Any, b: Any, y: Any, space: tuple, kernel: tuple, geometry: tuple,
    transposed: bool, processors: int,
) -> None:  # fmt: skip
    """The convolution of `x` with the rows of `w` into `y` (channels_last), or its transpose."""
    strides = geometry[0] if transposed else (1, 1)
    for residue in product(*[range(s) for s in strides]):
        part = y[:, :, residue[0] :: strides[0], residue[1] :: strides[1]]
        if part.size:
            high, wide = [
                _axis(count, k, *[setting[i] for setting in geometry], residue[i], transposed)
                for i, (count, k) in enumerate(zip(part.shape[2:], kernel))
            ]
            high = high._replace(tap=high.tap * kernel[1], tap_step=high.tap_step * kernel[1])
            axes = (wide, high, Axis(part.shape[0]))
            _launch(x, w, b, part, space, prod(kernel), axes, processors)


def _axis(
    count: int, kernel: int, stride: int, padding: int, dilation: int, residue: int,
    transposed: bool,
) -> Axis:  # fmt: skip
    if not transposed:
        return Axis(count, kernel, -padding, stride, dilation, 0, 1)
    # Taps k with residue + padding - k dilation a multiple of the stride, the last one first.
    taps = [k for k in range(kernel) if (residue + padding - k * dilation) % stride == 0]
    if not taps:
        return Axis(count, 0)
    period = taps[1] - taps[0] if len(taps) > 1 else 1
    first = (residue + padding - taps[-1] * dilation) // stride
    return Axis(count, len(taps), first, 1, period * dilation // stride, taps[-1], -period)


def _launch(
    x: Pixels, w: Any, b: Any, y: Any, space: tuple, taps: int, axes: tuple, processors: int
) -> None:
    item = y.itemsize
    channels, outputs = x.packs * 16 // item, y.shape[1]
    height, width = space
    sizes = (width, height, y.shape[0])
    ready = _prepare(axes, sizes, channels, outputs, item, processors)
    order = ready.order
    pitches = (x.pitch, width * x.pitch, x.image)
    out_pitches = tuple([y.strides[i] // item for i in (3, 2, 0)])
    _kernel[(y.dtype, *ready.instance)](
        ready.grid, _THREADS,
        tensor_map(
            x.array, ready.shape, _by(pitches, order), ready.box, steps=ready.steps,
            rounded=item == 4,
        ),
        tensor_map(
            w, (channels, taps, outputs), (channels, taps * channels), ready.weight_box,
            rounded=item == 4,
        ),
        tensor_map(y, ready.out_shape, _by(out_pitches, order), ready.out_box),
        b, ready.record, shared=ready.shared,
    )  # fmt: skip


class _Launch(NamedTuple):
    """All of a launch that does not depend on where the arrays lie."""

    instance: tuple
    grid: int
    shared: int
    record: Any
    order: tuple  # of the maps' axes
    shape: tuple
    box: tuple
    steps: tuple
    weight_box: tuple
    out_shape: tuple
    out_box: tuple


@lru_cache(4096)
def _prepare(
    axes: tuple, sizes: tuple, channels: int, outputs: int, itemsize: int, processors: int
) -> _Launch:
    lanes = _CHUNK // itemsize
    counts = [axis.taps for axis in axes]
    chunks = -(-channels // lanes) if all(counts) else 0
    plan = _choose(axes, sizes, outputs, max(chunks, 1), itemsize, processors)
    ordered, sizes = _by(axes, plan.order), _by(sizes, plan.order)
    taps, ones = tuple([axis.taps for axis in ordered]), (1, 1, 1)
    slopes = tuple([axis.slope for axis in ordered])
    tiles = [-(-axis.count // t) for axis, t in zip(ordered, plan.tile)]
    columns = -(-outputs // plan.columns)
    record = np.array(
        (
            tiles, plan.tile, plan.piece, [axis.first for axis in ordered], slopes,
            [axis.step for axis in ordered], ones if plan.shared_taps else taps,
            taps if plan.shared_taps else ones, plan.patch, sizes,
            sum([axis.tap for axis in axes]), [axis.tap_step for axis in ordered], chunks, columns,
            outputs, plan.group_stride, plan.patch_stages, plan.weight_stages,
        ),
        _RECORD,
    )  # fmt: skip
    stages = plan.patch_stages * _patch_bytes(plan.patch)
    stages += plan.weight_stages * plan.columns * _CHUNK
    staged = _staged(plan.columns, plan.blocks, plan.split, itemsize)
    return _Launch(
        (plan.columns, plan.blocks, plan.resident, plan.split),
        prod(tiles) * columns * plan.split,
        max(stages, staged),
        record,
        plan.order,
        (channels, *sizes),
        (lanes, *[(p - 1) * s + 1 for p, s in zip(plan.patch, slopes)]),
        (1, *slopes),
        (lanes, 1, plan.columns),
        (outputs, *[axis.count for axis in ordered]),
        (lanes, *plan.piece),
    )


def _by(values: tuple, order: tuple) -> tuple:
    return tuple([values[i] for i in order])


def _staged(columns: int, blocks: int, split: int, itemsize: int) -> int:
    """Bytes of the results, and of the sums of a split."""
    rows = 128 * blocks
    return rows * columns * itemsize // split + (rows * columns * 4 if split > 1 else 0)


def _patch_bytes(patch: tuple) -> int:
    return -(-prod(patch) * _CHUNK // 1024) * 1024


def _choose(
    axes: tuple, sizes: tuple, outputs: int, chunks: int, itemsize: int, processors: int
) -> Plan:
    """The plan that takes the fewest cycles by the count of `_plans`."""
    return min(_plans(axes, sizes, outputs, chunks, itemsize, processors), key=_rank)


def _rank(plan: Plan) -> tuple:
    """The cost; of equal ones, the least beyond the edges, and boxes of fewest images."""
    return plan.cost, plan.covered, plan.tile[plan.order.index(2)]


#: columns, pieces of a warpgroup, blocks of a multiprocessor, blocks that share the channels
_SHAPES = (
    (128, 2, 1, 1), (128, 1, 1, 1), (64, 2, 2, 1), (64, 1, 2, 1), (128, 2, 1, 4),
    (128, 2, 1, 2), (128, 1, 1, 2), (64, 2, 2, 2), (64, 1, 2, 2),
)  # fmt: skip


def _plans(
    axes: tuple, sizes: tuple, outputs: int, chunks: int, itemsize: int, processors: int
) -> Iterator[Plan]:
    for order, shape in product(((0, 1, 2), (2, 0, 1)), _SHAPES):
        columns, blocks, resident, split = shape
        if split > chunks:
            continue
        ordered = [axes[i] for i in order]
        taps = prod([axis.taps for axis in ordered])
        sharing = all([axis.slope == 1 for axis in ordered])
        for piece, extra in product(_factors(64), _factors(2 * blocks)):
            tile = tuple([p * e for p, e in zip(piece, extra)])
            patch = tile
            if sharing:
                patch = tuple([t + (a.taps - 1) * a.step for t, a in zip(tile, ordered)])
            group_stride = _group_stride(piece, patch)
            boxes = [(p - 1) * a.slope + 1 for p, a in zip(patch, ordered)]
            if group_stride is None or max(boxes) > 256:
                continue
            tiles = prod([-(-axis.count // t) for axis, t in zip(ordered, tile)])
            weights, pixels = columns * _CHUNK, _patch_bytes(patch)
            room = _SHARED // resident - 1024
            each = taps if sharing else 1
            stages = _stages(room, pixels, weights, each)
            if stages is None or _staged(columns, blocks, split, itemsize) > room:
                continue
            count = tiles * -(-outputs // columns) * split
            loaded = pixels * taps // max(each, 1) + taps * weights
            useful = _useful(ordered[2], sizes[order[2]], piece[2])
            products = taps * 4 * blocks * 2 * useful
            cycles = -(-chunks // split) * max(
                products * columns / 2, products * (16 + columns / 4) + loaded / 128,
                loaded / _L2_BYTES * min(1, count / processors),
            )  # fmt: skip
            whole, rest = divmod(count, processors * resident)
            fixed = _FIXED * (1 if split == 1 else 2)
            cost = whole * (resident * cycles + fixed)
            if rest:
                cost += -(-rest // processors) * cycles + fixed
            yield Plan(
                order, *shape, tile, piece, patch, sharing, group_stride, *stages,
                tiles * prod(tile), cost,
            )  # fmt: skip


@lru_cache(4096)
def _useful(axis: Axis, size: int, piece: int) -> float:
    """The share of the taps along an axis at which a piece reads more than zeros."""
    starts = [axis.first + i * axis.slope for i in range(0, axis.count, piece)]
    extent = (piece - 1) * axis.slope
    read = [
        -extent <= start + tap * axis.step < size for start in starts for tap in range(axis.taps)
    ]
    return sum(read) / max(len(read), 1)


def _factors(number: int) -> list[tuple[int, int, int]]:
    """The ways to write a power of two as a product of three."""
    powers = [1 << i for i in range(number.bit_length())]
    return [(a, b, number // (a * b)) for a in powers for b in powers if number % (a * b) == 0]


@lru_cache(4096)
def _group_stride(piece: tuple, patch: tuple) -> int | None:
    """Bytes from 8 rows of a piece in a patch to the next 8; None if they do not lie so."""
    x, y, _ = piece
    rows = [
        i % x + patch[0] * (i // x % y + patch[1] * (i // (x * y)))
        for i in range(64)
    ]  # fmt: skip
    step = rows[8]
    if any([row != step * (i // 8) + i % 8 for i, row in enumerate(rows)]):
        return None
    return step * _CHUNK


def _stages(room: int, patch: int, weights: int, taps: int) -> tuple[int, int] | None:
    """As many stages as there is room for: of patches, and of weights."""
    most = 3 if taps > 3 else 6
    for least, patches in product((5, 3), range(most, 1, -1)):
        number = min((room - patches * patch) // weights, _MOST_STAGES)
        if number >= min(patches * max(taps, 1), least):
            return patches, number
    return None

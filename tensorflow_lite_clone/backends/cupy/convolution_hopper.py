"""Launcher of the convolutions on Hopper's tensor cores, and the choice of their tiles.

A tile of outputs is a box of pixels (width, height, images in some order). Its inputs are a box as
well, which the copy engine brings with zeros around the image. Where the stride is one, a box with
its margin serves all taps.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np

from tensorflow_lite_clone.backends.cupy.convolution_layout import Pixels
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.backends.cupy.tensor_maps import tensor_map

_PARAMS = ("T", "BN", "BLOCKS", "RESIDENT", "SPLIT")
_kernel = Kernel("conv2d_sm90.cu", "conv2d_hopper", params=_PARAMS)

_MOST_PARTS = 4  # convolutions of a launch
_RECORD = np.dtype(
    [(name, "i4", 3) for name in ("tiles", "tile", "piece", "patch")]
    + [(name, "i4", 3) for name in ("slope", "step", "period", "shift", "size")]
    + [("part", [("first", "i4", 3), ("taps", "i4", 3), ("tap", "i4")], _MOST_PARTS)]
    + [("tap_step", "i4", 3)]
    + [(name, "i4") for name in ("items", "parts", "chunks", "columns", "outputs", "group_stride")]
    + [("patch_stages", "i4"), ("weight_stages", "i4")],
    align=True,
)
_CHUNK = 128  # bytes of channels
_THREADS = 384
_SHARED = 226 * 1024  # of a multiprocessor, for all its blocks
_MOST_STAGES = 12
_STAGED = 64 * 1024  # of results under way, where a piece has not more
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
    """How convolutions are cut up; tuples by axis, innermost first."""

    order: tuple[int, ...]  # of width, height, images
    columns: int
    pieces: int  # of a warpgroup
    resident: int
    split: int
    tile: tuple[int, ...]
    piece: tuple[int, ...]
    patch: tuple[int, ...]
    period: tuple[int, ...]  # taps that far apart share a patch
    shift: tuple[int, ...]  # and are so many rows apart in it
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
    parts, outputs = [], []
    for residue in product(*[range(s) for s in strides]):
        part = y[:, :, residue[0] :: strides[0], residue[1] :: strides[1]]
        if part.size:
            high, wide = [
                _axis(count, k, *[setting[i] for setting in geometry], residue[i], transposed)
                for i, (count, k) in enumerate(zip(part.shape[2:], kernel))
            ]
            high = high._replace(tap=high.tap * kernel[1], tap_step=high.tap_step * kernel[1])
            parts.append((wide, high, Axis(part.shape[0])))
            outputs.append(part)
    for i in range(0, len(parts), _MOST_PARTS):
        some = slice(i, i + _MOST_PARTS)
        _launch(x, w, b, outputs[some], space, prod(kernel), tuple(parts[some]), processors)


def _axis(
    count: int, kernel: int, stride: int, padding: int, dilation: int, residue: int,
    transposed: bool,
) -> Axis:  # fmt: skip
    if not transposed:
        return Axis(count, kernel, -padding, stride, dilation, 0, 1)
    # Taps k with residue + padding - k dilation a multiple of the stride, the last one first.
    taps = [k for k in range(kernel) if (residue + padding - k * dilation) % stride == 0]
    period = stride // gcd(stride, dilation)
    last = taps[-1] if taps else 0
    first = (residue + padding - last * dilation) // stride
    return Axis(count, len(taps), first, 1, period * dilation // stride, last, -period)


def _launch(
    x: Pixels, w: Any, b: Any, outputs: list, space: tuple, taps: int, parts: tuple,
    processors: int,
) -> None:  # fmt: skip
    y = outputs[0]
    item = y.itemsize
    channels, columns = x.packs * 16 // item, y.shape[1]
    height, width = space
    sizes = (width, height, y.shape[0])
    ready = _prepare(parts, sizes, channels, columns, item, processors)
    order = ready.order
    pitches = (x.pitch, width * x.pitch, x.image)
    out_pitches = tuple([y.strides[i] // item for i in (3, 2, 0)])
    rounded = item == 4
    maps = [
        tensor_map(part, shape, _by(out_pitches, order), ready.out_box)
        for part, shape in zip(outputs, ready.out_shapes)
    ]
    maps += maps[:1] * (_MOST_PARTS - len(maps))
    _kernel[(y.dtype, *ready.instance)](
        ready.grid, _THREADS,
        tensor_map(
            x.array, ready.shape, _by(pitches, order), ready.box, steps=ready.steps,
            rounded=rounded,
        ),
        tensor_map(
            w, (channels, taps, columns), (channels, taps * channels), ready.weight_box,
            rounded=rounded,
        ),
        np.concatenate(maps), b, ready.record, shared=ready.shared,
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
    out_shapes: tuple
    out_box: tuple


@lru_cache(4096)
def _prepare(
    parts: tuple, sizes: tuple, channels: int, outputs: int, itemsize: int, processors: int
) -> _Launch:
    lanes = _CHUNK // itemsize
    chunks = -(-channels // lanes)
    plan = _choose(parts, sizes, outputs, chunks, itemsize, processors)
    parts = tuple([_by(axes, plan.order) for axes in parts])
    sizes = _by(sizes, plan.order)
    tiles = [-(-max([a.count for a in along]) // t) for along, t in zip(zip(*parts), plan.tile)]
    slopes, steps, tap_steps = zip(*[(a.slope, a.step, a.tap_step) for a in parts[0]])
    described = [
        ([a.first for a in axes], [a.taps for a in axes], sum([a.tap for a in axes]))
        for axes in parts
    ]
    described += described[:1] * (_MOST_PARTS - len(parts))
    columns = -(-outputs // plan.columns)
    items = prod(tiles) * columns * len(parts)
    record = np.array(
        (
            tiles, plan.tile, plan.piece, plan.patch, slopes, steps, plan.period, plan.shift, sizes,
            described, tap_steps, items, len(parts), chunks, columns, outputs, plan.group_stride,
            plan.patch_stages, plan.weight_stages,
        ),
        _RECORD,
    )  # fmt: skip
    stages = plan.patch_stages * _patch_bytes(plan.patch)
    stages += plan.weight_stages * plan.columns * _CHUNK
    staged = _staged(plan.columns, plan.pieces, plan.split, itemsize)
    alone = plan.split == 1
    return _Launch(
        (plan.columns, plan.pieces, plan.resident, plan.split),
        min(items, processors * plan.resident) if alone else items * plan.split,
        stages + staged if alone else max(stages, staged),
        record,
        plan.order,
        (channels, *sizes),
        (lanes, *[(p - 1) * s + 1 for p, s in zip(plan.patch, slopes)]),
        (1, *slopes),
        (lanes, 1, plan.columns),
        tuple([(outputs, *[a.count for a in axes]) for axes in parts]),
        (lanes, *plan.piece),
    )


def _by(values: tuple, order: tuple) -> tuple:
    return tuple([values[i] for i in order])


def _staged(columns: int, pieces: int, split: int, itemsize: int) -> int:
    """Bytes of the results under way, beside the stages, or of a split's sums, in their place."""
    piece = 64 * columns * itemsize
    if split > 1:
        return 2 * pieces * (64 * columns * 4 + piece // split)
    return 2 * piece * (pieces if 2 * pieces * piece <= _STAGED else 1)


def _patch_bytes(patch: tuple) -> int:
    return -(-prod(patch) * _CHUNK // 1024) * 1024


def _choose(
    parts: tuple, sizes: tuple, outputs: int, chunks: int, itemsize: int, processors: int
) -> Plan:
    """The plan that takes the fewest cycles by the count of `_plans`."""
    return min(_plans(parts, sizes, outputs, chunks, itemsize, processors), key=_rank)


def _rank(plan: Plan) -> tuple:
    """The cost; of equal ones, the least beyond the edges, and boxes of fewest images."""
    return plan.cost, plan.covered, plan.tile[plan.order.index(2)]


#: columns, pieces of a warpgroup, blocks of a multiprocessor, blocks that share the channels
_SHAPES = (
    (128, 2, 1, 1), (128, 1, 1, 1), (64, 2, 1, 1), (64, 1, 2, 1), (128, 2, 1, 4),
    (128, 2, 1, 2), (128, 1, 1, 2), (64, 1, 2, 2),
)  # fmt: skip


def _plans(
    parts: tuple, sizes: tuple, outputs: int, chunks: int, itemsize: int, processors: int
) -> Iterator[Plan]:
    for order, shape, sharing in product(((0, 1, 2), (2, 0, 1)), _SHAPES, (True, False)):
        columns, pieces, resident, split = shape
        room, staged = _SHARED // resident - 1024, _staged(columns, pieces, split, itemsize)
        if split > chunks or staged > room:
            continue
        room -= staged if split == 1 else 0
        axes = [_by(part, order) for part in parts]
        # What is read along each axis is that of the part with the most taps along it.
        most = [max(along, key=lambda axis: axis.taps) for along in zip(*axes)]
        counts = [max([axis.count for axis in along]) for along in zip(*axes)]
        natural = tuple([a.slope // gcd(a.slope, a.step) for a in most])
        period = natural if sharing else tuple([max(a.taps, 1) for a in most])
        if not sharing and period == natural:
            continue
        shift = tuple([p * a.step // a.slope if sharing else 0 for p, a in zip(period, most)])
        each = prod([-(-a.taps // p) for a, p in zip(most, period)])  # taps of a patch
        loads = sum([prod([min(a.taps, p) for a, p in zip(part, period)]) for part in axes])
        taps = sum([prod([a.taps for a in part]) for part in axes])
        useful = taps * _useful(most[2], sizes[order[2]])
        for piece, extra in product(_factors(64), _factors(2 * pieces)):
            tile = tuple([p * e for p, e in zip(piece, extra)])
            patch = tuple(
                [t + (a.taps - 1) // p * s for t, a, p, s in zip(tile, most, period, shift)]
            )
            group_stride = _group_stride(piece, patch)
            boxes = [(p - 1) * a.slope + 1 for p, a in zip(patch, most)]
            if group_stride is None or max(boxes) > 256:
                continue
            weights, pixels = columns * _CHUNK, _patch_bytes(patch)
            stages = _stages(room, pixels, weights, each)
            if stages is None:
                continue
            tiles = prod([-(-count // t) for count, t in zip(counts, tile)])
            blocks = tiles * -(-outputs // columns) * split  # of each part
            products = 4 * 2 * pieces * (useful if piece[2] == 1 else taps)
            loaded = loads * pixels + taps * weights
            cycles = -(-chunks // split) / len(parts) * max(
                products * columns / 2, products * (16 + columns / 4) + loaded / 128,
                loaded / _L2_BYTES * min(1, blocks * len(parts) / processors),
            )  # fmt: skip
            # A lone block does not multiply while it writes.
            cycles += 0 if resident > 1 else pieces * columns * itemsize + 500
            whole, rest = divmod(blocks * len(parts), processors * resident)
            cost = _FIXED * split + whole * resident * cycles + -(-rest // processors) * cycles
            yield Plan(
                order, *shape, tile, piece, patch, period, shift, group_stride, *stages,
                tiles * prod(tile), cost,
            )  # fmt: skip


def _useful(axis: Axis, size: int) -> float:
    """The share of the taps along an axis that are not in the margin, for pieces of one place."""
    places = [
        axis.first + i * axis.slope + tap * axis.step
        for i in range(axis.count)
        for tap in range(axis.taps)
    ]
    return sum([0 <= place < size for place in places]) / max(len(places), 1)


def _factors(number: int) -> list[tuple[int, int, int]]:
    """The ways to write a power of two as a product of three."""
    powers = [1 << i for i in range(number.bit_length())]
    return [(a, b, number // (a * b)) for a in powers for b in powers if number % (a * b) == 0]


@lru_cache(4096)
def _group_stride(piece: tuple, patch: tuple) -> int | None:
    """Bytes from 8 rows of a piece in a patch to the next 8; None if they do not lie so."""
    x, y, _ = piece
    rows = [i % x + patch[0] * (i // x % y + patch[1] * (i // (x * y))) for i in range(64)]
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

"""Launcher of the weight's gradient by 3x3 on Hopper's products of warpgroups."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.convolution_layout import by_pixels, packed_channels
from tensorflow_lite_clone.backends.cupy.convolution_weight import divisor, reduce
from tensorflow_lite_clone.backends.cupy.kernel import Kernel

_weight = Kernel(
    "conv2d_weight_sm90.cu", "conv2d_weight_warpgroups", params=("T", "COLUMNS", "STRIDE")
)

_SETS = np.dtype(
    [("image", "i8")]
    + [(name, "i4") for name in ("number", "split", "images", "down", "slots")]
    + [(name, "i4") for name in ("outputs", "g_pitch", "g_packs", "batch")]
    + [(name, "i4") for name in ("out_height", "out_width", "height", "width", "pitch", "packs")]
    + [(name, "i4") for name in ("padding_height", "padding_width", "stage", "stages")]
    + [(f"rows_{part}", "u4") for part in ("value", "multiplier", "shift")],
    align=True,
)
_TAPS = 3
_TILE = 64
_THREADS = 384
_STAGES = 4
_MOST_SLOTS = 64
_FIXED = 6  # stages that take as long as a block's beginning and end
_STATIC = 2048  # bytes of shared memory beside the stages


class Plan(NamedTuple):
    """How a gradient is computed."""

    blocks: int  # tiles of the gradient
    images: int  # of a set
    down: int  # rows of a set in each
    groups: int  # sets of the same images
    sets: int
    split: int  # sets of a block
    slots: int  # rows of x that a set meets
    columns: int  # of a stage
    stage: int  # bytes
    shared: int  # bytes of all stages, and what is turned


def _shared(columns: int, slots: int, stride: int, itemsize: int) -> tuple[int, int]:
    """Bytes of a stage, and of all that a block holds."""
    runs, met = 32 // itemsize, columns * stride + _TAPS - stride
    if itemsize == 2:
        stage = 128 * (columns * (runs + 1) + met * (slots + 1))
        return stage, _STAGES * stage
    stage = columns * runs * (4 * _TILE + 32) + met * slots * (4 * _TILE + 16)
    return stage, _STAGES * stage + _TAPS * 2 * (2 * met * _TILE * 16)


def _share(blocks: int, sets: int, stages: int, processors: int) -> int:
    """Sets of a block, so that the rounds over the multiprocessors end soonest."""

    def cost(splits: int) -> int:
        split = -(-sets // splits)
        return -(-blocks * -(-sets // split) // processors) * (split * stages + _FIXED)

    return -(-sets // min(range(1, max(1, min(sets, 4 * processors // blocks)) + 1), key=cost))


@lru_cache(4096)
def plan(
    outputs: int, channels: int, batch: int, height: int, width: int, stride: int, itemsize: int,
    processors: int, shared: int,
) -> Plan | None:  # fmt: skip
    """How the rows are shared between blocks; None where another kernel would serve better.

    `height` and `width` are the output's; `shared` is what a block may have.
    """
    if min(outputs, channels) <= _TILE // 2 or (itemsize == 4 and stride > 1):
        return None
    runs = 32 // itemsize
    columns = 8 if itemsize == 2 and stride == 1 and (width - 1) % 8 >= 4 else 4

    def shape(down: int) -> tuple[int, int, int]:
        """Sets of the same images, of all images, and the slots of one."""
        images, groups = runs // down, -(-height // down)
        return groups, groups * -(-batch // images), stride * (down + _TAPS - stride) * images

    fitting = []
    for down in [d for d in (16, 8, 4, 2, 1) if d <= runs]:
        slots = shape(down)[2]
        used = _shared(columns, slots, stride, itemsize)[1]
        if slots <= _MOST_SLOTS and used + _STATIC <= shared:
            fitting.append(down)
    if not fitting:
        return None
    # products and copies of a set
    down = min(fitting, key=lambda d: shape(d)[1] * (2 * runs + shape(d)[2]))
    groups, sets, slots = shape(down)
    blocks = -(-outputs // _TILE) * -(-channels // _TILE)
    split = _share(blocks, sets, -(-width // columns), processors)
    if 4 * blocks * -(-sets // split) < processors:
        return None  # too few rows to share
    sizes = _shared(columns, slots, stride, itemsize)
    return Plan(blocks, runs // down, down, groups, sets, split, slots, columns, *sizes)


def gradient(g: Any, x: Any, gw: Any, last: bool, stride: int, padding: tuple, made: Plan) -> None:
    """Write the gradient for a weight (o, c, 3, 3) into `gw`, which is channels_last if `last`."""
    batch, outputs, *count = g.shape
    gp, xp = by_pixels(g, 1, flat=True), by_pixels(x, 1)
    padded = packed_channels(gw.shape[1], 16 // g.itemsize)
    record = np.array(
        (
            xp.image, made.sets, made.split, made.images, made.down, made.slots, outputs, gp.pitch,
            gp.packs, batch, *count, *x.shape[2:], xp.pitch, xp.packs, *padding, made.stage,
            -(-count[1] // made.columns), *divisor(made.groups),
        ),
        _SETS,
    )  # fmt: skip
    splits = -(-made.sets // made.split)
    sums = cupy.empty(splits * outputs * _TAPS**2 * padded, np.float32)
    _weight[g.dtype, made.columns, stride](
        (made.blocks, splits), _THREADS, gp.array, xp.array, record, sums,
        shared=made.shared,
    )  # fmt: skip
    reduce(sums, splits, gw, padded, last)

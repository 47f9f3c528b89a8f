"""Launcher of the weight's gradient by 3x3 on tensor cores: one reading of the pixels for all taps.

Convolutions it does not serve keep the product that gathers, in convolution.py.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd, prod
from typing import Any, NamedTuple

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.convolution_layout import by_pixels, packed_channels
from tensorflow_lite_clone.backends.cupy.kernel import Kernel

_weight = Kernel(
    "conv2d_weight.cu", "conv2d_weight",
    params=("T", "BO", "BC", "WO", "WC", "COLUMNS", "STRIDE"),
)  # fmt: skip
_reduce = Kernel("conv2d_weight.cu", "conv2d_weight_reduce", params=("T", "KERNEL", "PARTS"))

_DIVISOR = ("value", "multiplier", "shift")
_ROWS = np.dtype(
    [("image", "i8")]
    + [(name, "i4") for name in ("rows", "sets", "split", "outputs", "g_pitch", "g_packs")]
    + [(name, "i4") for name in ("out_width", "batch", "height", "width", "pitch", "packs")]
    + [(name, "i4") for name in ("padding_height", "padding_width", "slots", "stage", "stages")]
    + [(f"{name}_{part}", "u4") for name in ("out", "virtual") for part in _DIVISOR],
    align=True,
)
_TAPS = 3
_COLUMNS = 4  # of a stage
_MOST_SLOTS = 48
_STATIC = 2 * 8 * _MOST_SLOTS  # bytes of shared memory beside the stages


class _Tile(NamedTuple):
    """Outputs and channels of a block, and its warps; `worth` is its speed beside the largest."""

    outputs: int
    channels: int
    down: int
    across: int
    worth: float


_TILES = (_Tile(64, 64, 2, 2, 1.0), _Tile(32, 32, 1, 1, 0.7), _Tile(16, 16, 1, 1, 0.3))


class Plan(NamedTuple):
    """How a gradient is computed."""

    tile: _Tile
    blocks: int  # tiles of the gradient
    rows: int  # of the output, of all images
    sets: int  # of rows that are summed side by side
    split: int  # sets of a block
    slots: int  # rows of x that a set meets
    stage: int  # bytes
    shared: int


def divisor(value: int) -> tuple[int, int, int]:
    """What divides dividends below 2^31 by `value` with a multiplication and a shift."""
    if value == 1:
        return 1, 0, 0
    power = 31 + (value - 1).bit_length()
    return value, -(-(1 << power) // value), power - 32


def is_supported(kernel: tuple, stride: tuple, dilation: tuple) -> bool:
    """Whether there is a kernel for windows of this form."""
    return (kernel, dilation) == ((_TAPS, _TAPS), (1, 1)) and stride in ((1, 1), (2, 2))


@lru_cache(4096)
def plan(
    outputs: int, channels: int, rows: int, height: int, stride: int, itemsize: int,
    processors: int, shared: int,
) -> Plan | None:  # fmt: skip
    """The tile with the least waste, and a block for every multiprocessor; None if none fits.

    `rows` of output there are of all images, `height` of one; `shared` is what a block may have.
    """
    runs = 32 // itemsize
    # from one image into the next, in a set that begins as late in an image as any
    crossings = (height - gcd(height, runs) + runs - 1) // height
    slots = (runs - 1) * stride + _TAPS + 2 * crossings
    slots += slots % stride
    if slots > _MOST_SLOTS or min(outputs, channels) < 16:
        return None
    pad = 32 if itemsize == 4 else 16

    def blocks(tile: _Tile) -> int:
        return -(-outputs // tile.outputs) * -(-channels // tile.channels)

    met = _COLUMNS * stride + _TAPS - stride
    stages = 4 if stride == 1 else 3

    def staged(tile: _Tile) -> int:
        gradients = _COLUMNS * runs * (tile.outputs * itemsize + pad)
        return gradients + met * slots * (tile.channels * itemsize + pad)

    fitting = [tile for tile in _TILES if staged(tile) * stages + _STATIC <= shared]
    if not fitting:
        return None
    tile = min(fitting, key=lambda t: blocks(t) * t.outputs * t.channels / t.worth)
    stage = staged(tile)
    total = stage * stages
    resident = min(384 // (32 * _TAPS * tile.down * tile.across), shared // (total + 2048))
    sets = -(-rows // runs)
    splits = max(1, min(processors * max(resident, 1) // blocks(tile), sets))
    split = -(-sets // splits)
    if 4 * blocks(tile) * -(-sets // split) < processors:
        return None  # too few rows to share
    return Plan(tile, blocks(tile), rows, sets, split, slots, stage, total)


def gradient(g: Any, x: Any, gw: Any, last: bool, stride: int, padding: tuple, made: Plan) -> None:
    """Write the gradient for a weight (o, c, 3, 3) into `gw`, which is channels_last if `last`."""
    batch, outputs, out_height, out_width = g.shape
    channels, tile = gw.shape[1], made.tile
    gp, xp = by_pixels(g, 1, flat=True), by_pixels(x, 1)
    padded = packed_channels(channels, 16 // g.itemsize)
    record = np.array(
        (
            xp.image, made.rows, made.sets, made.split, outputs, gp.pitch, gp.packs, out_width,
            batch, *x.shape[2:], xp.pitch, xp.packs, *padding, made.slots, made.stage,
            -(-out_width // _COLUMNS), *divisor(out_height), *divisor(stride * out_height + 2),
        ),
        _ROWS,
    )  # fmt: skip
    splits = -(-made.sets // made.split)
    sums = cupy.empty(splits * outputs * _TAPS**2 * padded, np.float32)
    _weight[g.dtype, tile.outputs, tile.channels, tile.down, tile.across, _COLUMNS, stride](
        (made.blocks, splits), 32 * _TAPS * tile.down * tile.across, gp.array, xp.array, record,
        sums, shared=made.shared,
    )  # fmt: skip
    reduce(sums, splits, gw, padded, last)


def reduce(sums: Any, splits: int, gw: Any, padded: int, last: bool) -> None:
    """Write the sum over the splits of `sums` (split, output, tap, padded channel) into `gw`."""
    size, kernel = sums.size // splits, prod(gw.shape[2:])
    parts = 8 if size < 1 << 17 else 1
    blocks = gw.shape[0] * -(-padded // (128 // parts))
    _reduce[gw.dtype, kernel, parts](
        blocks, 32 * kernel, sums, splits, size, gw.shape[1], padded, last, gw
    )

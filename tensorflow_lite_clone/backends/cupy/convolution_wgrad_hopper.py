"""Launcher of the weight's gradient by 3x3, or 1x1 with a stride, on Hopper's tensor cores."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.convolution_layout import (
    Pixels,
    by_pixels,
    packed_channels,
)
from tensorflow_lite_clone.backends.cupy.convolution_weight import reduce
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.backends.cupy.tensor_maps import tensor_map

_weight = Kernel(
    "conv2d_weight_sm90.cu", "conv2d_weight_warpgroups", params=("T", "TAPS", "STRIDE")
)

_MOST_TAPS = 3
_PROBLEM = np.dtype(
    [(name, "i4") for name in ("steps", "across", "down", "by_images", "outputs", "padded")]
    + [(name, "i4") for name in ("out_height", "out_width", "height", "width")]
    + [(name, "i4") for name in ("padding_height", "padding_width", "box", "box_used", "boxes")]
    + [(name, "i4") for name in ("stage", "stages", "column", "piece")]
    + [("tap", "i4", _MOST_TAPS)],
    align=True,
)
_TILE = 64
_ROW = 128  # bytes of a pixel's channels in shared memory
_RUNS, _COLUMNS, _PIECES = 8, 4, 2  # of a piece; pieces of a stage
_MOST_STAGES = 8
_STATIC = 2048  # bytes of shared memory beside the stages
# memcheck counts a product's operand as if it were contiguous. That of three taps, which share
# columns, ends where its box does, but would then go on for 1,280 bytes after the last stage.
_COUNTED = 2048
_FIXED = 4  # stages that take as long as a block's beginning and end


class Plan(NamedTuple):
    """How a gradient is computed. A stage's tile of x is in boxes of (columns, rows) or, by images,
    (columns, rows, images) pixels."""

    blocks: int  # tiles of the gradient
    splits: int
    by_images: bool  # runs are images, not rows
    across: int  # stages of an image, or of 8 of them
    down: int
    steps: int  # stages of all images
    columns: int  # of x's tile
    rows: int
    halves: int  # boxes of every other row
    box_used: int  # bytes
    box: int
    boxes: int
    stage: int
    stages: int  # that a block holds


def skips(kernel: tuple, stride: tuple, padding: tuple) -> bool:
    """Whether a convolution is a product with every other pixel."""
    return (kernel, stride, padding) == ((1, 1), (2, 2), (0, 0))


def _share(blocks: int, steps: int, processors: int) -> int:
    """Splits of the steps, so that the rounds over the multiprocessors end soonest."""

    def cost(splits: int) -> int:
        return -(-blocks * splits // processors) * (-(-steps // splits) + _FIXED)

    return min(range(1, max(1, min(steps, 4 * processors // blocks)) + 1), key=cost)


@lru_cache(4096)
def plan(
    outputs: int, channels: int, batch: int, height: int, width: int, taps: int, stride: int,
    itemsize: int, processors: int, shared: int,
) -> Plan | None:  # fmt: skip
    """How the pixels are shared between blocks; None where another kernel would serve better.

    `height` and `width` are the output's; `shared` is what a block may have.
    """
    if min(outputs, channels) <= _TILE // 2:
        return None
    if taps == 1:  # of every so many pixels; two blocks to a multiprocessor
        stride, processors, shared = 1, 2 * processors, shared // 2
    beside = -(-width // (_PIECES * _COLUMNS)), -(-height // _RUNS), batch
    below = -(-width // _COLUMNS), -(-height // _PIECES), -(-batch // _RUNS)
    by_images = prod(below) < prod(beside)
    across, down, images = below if by_images else beside
    steps = across * down * images
    if by_images:
        columns, rows, halves = _COLUMNS * stride, _PIECES * stride, 1
        columns, rows = columns + taps - stride, rows + taps - stride
        pixels = columns * rows * _RUNS
    else:
        columns, halves = _PIECES * _COLUMNS * stride + taps - stride, stride
        rows = _RUNS + (taps - 1) // stride
        pixels = columns * rows
    panels = itemsize // 2
    used = pixels * _ROW
    box = -(-used // 1024) * 1024
    stage = panels * (_PIECES * _RUNS * _COLUMNS * _ROW + halves * box)
    stages = min(_MOST_STAGES, (shared - _STATIC - _COUNTED) // stage)
    blocks = -(-outputs // _TILE) * -(-channels // _TILE)
    splits = _share(blocks, steps, processors)
    if stages < 2 or 4 * blocks * splits < processors:
        return None  # no room, or too few pixels to share
    return Plan(
        blocks, splits, by_images, across, down, steps, columns, rows, halves, used, box,
        panels * halves, stage, stages,
    )  # fmt: skip


def _mapped(x: Any) -> Pixels:
    """x by pixels, at distances that a tensor map can have."""
    return by_pixels(cupy.ascontiguousarray(x) if 0 in x.strides else x, 1)


def _boxes(
    x: Pixels, batch: int, space: tuple, pitches: tuple, box: tuple, step: int, by_images: bool
) -> Any:
    """The map of boxes of x, `box` rows and columns (or, by images, those of 8 images).

    `space` and `pitches` are of rows and columns; a box has every `step`-th row.
    """
    item, (rows, columns) = x.array.itemsize, box
    axes = [
        (x.packs * 16 // item, 1, _ROW // item, 1),
        (space[0], pitches[0], (rows - 1) * step + 1, step),
        (space[1], pitches[1], columns, 1),
    ]
    axes.insert(1 if by_images else 3, (batch, x.image, _RUNS if by_images else 1, 1))
    sizes, distances, counts, steps = zip(*axes)
    tf32 = item == 4
    return tensor_map(x.array, sizes, distances[1:], counts, steps=steps, rounded=tf32)


def gradient(g: Any, x: Any, gw: Any, last: bool, stride: int, padding: tuple, made: Plan) -> None:
    """Write the gradient for a weight (o, c, k, k) into `gw`, which is channels_last if `last`."""
    batch, outputs, *count = g.shape
    size, taps = x.shape[2:], gw.shape[2]
    gp, xp = _mapped(g), _mapped(x)
    padded = packed_channels(gw.shape[1], 16 // g.itemsize)
    g_pitches, x_pitches = (count[1] * gp.pitch, gp.pitch), (size[1] * xp.pitch, xp.pitch)
    if taps == 1:  # x is every so many of its pixels
        x_pitches = (stride * x_pitches[0], stride * x_pitches[1])
        size, stride = count, 1
    runs = 1 if made.by_images else _RUNS
    maps = (
        _boxes(gp, batch, count, g_pitches, (runs, _COLUMNS), 1, made.by_images),
        _boxes(xp, batch, size, x_pitches, (made.rows, made.columns), made.halves, made.by_images),
    )
    if made.by_images:
        column, stride_bytes = made.rows * _RUNS * _ROW, stride * _RUNS * _ROW
        tap = [i * _RUNS * _ROW for i in range(_MOST_TAPS)]
    else:
        column = made.rows * _ROW
        stride_bytes = _COLUMNS * stride * column
        half = made.boxes // made.halves * made.box
        tap = [i % stride * half + i // stride * _ROW for i in range(_MOST_TAPS)]
    record = np.array(
        (
            made.steps, made.across, made.down, made.by_images, outputs, padded, *count, *size,
            *padding, made.box, made.box_used, made.boxes, made.stage, made.stages, column,
            stride_bytes, tap,
        ),
        _PROBLEM,
    )  # fmt: skip
    sums = cupy.empty(made.splits * outputs * taps**2 * padded, np.float32)
    _weight[g.dtype, taps, stride](
        (made.blocks, made.splits), 128 * (taps + 1), *maps, record, sums,
        shared=made.stages * made.stage + _COUNTED,
    )  # fmt: skip
    reduce(sums, made.splits, gw, padded, last)

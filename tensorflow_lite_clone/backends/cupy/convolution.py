"""Launchers of the convolutions: one and two spatial axes, any groups, stride and dilation.

The kernels read activations by pixels, channels padded to 16 bytes. A tensor that lies like that
(channels_last, channels a multiple of 4, or 8 for the 16-bit types) is read in place; others are
packed first, unless they have few channels and tensor cores serve. The result is channels_last
where one of the operands is, as in PyTorch, or where that suits the kernels (see `lies_last`).
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy import convolution_depthwise as depthwise
from tensorflow_lite_clone.backends.cupy import convolution_hopper as hopper
from tensorflow_lite_clone.backends.cupy import convolution_small_channels as few
from tensorflow_lite_clone.backends.cupy import convolution_weight as window
from tensorflow_lite_clone.backends.cupy import convolution_wgrad_hopper as hopper_window
from tensorflow_lite_clone.backends.cupy.convolution_layout import (
    Pixels,
    by_channels,
    by_pixels,
    contiguous_or_last,
    is_last,
    lies_last,
    new_array,
    pack,
    packed_channels,
    spatial,
    to_krsc,
)
from tensorflow_lite_clone.backends.cupy.device_facts import Facts, facts
from tensorflow_lite_clone.backends.cupy.fusion.deferred import aware, chain
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.backends.cupy.launch_cache import cached_launches
from tensorflow_lite_clone.backends.cupy.native import NATIVE
from tensorflow_lite_clone.backends.windows import windows_size
from tensorflow_lite_clone.core.dtypes import bfloat16
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.dispatch.table import override

_FILE = "conv2d.cu"
_forward = Kernel(
    _FILE, "conv2d_forward", params=("T", "BM", "BN", "WM", "WN", "TENSOR", "TRANSPOSED")
)
_weight = Kernel(
    _FILE, "conv2d_backward_weight", params=("T", "A", "BM", "BN", "WM", "WN", "TENSOR")
)
_reduce = Kernel(_FILE, "conv2d_backward_reduce", params=("T", "A", "PARTS"))

_AXES = ("stride", "padding", "dilation")
_GATHER = np.dtype(
    [(name, "i8") for name in ("image", "group", "out_image", "out_pixel", "out_channel")]
    + [(name, "i4") for name in ("batch", "height", "width", "pitch", "packs")]
    + [(name, "i4") for name in ("outputs", "out_height", "out_width", "kernel_h", "kernel_w")]
    + [(f"{name}_{axis}", "i4") for name in _AXES for axis in "hw"],
    align=True,
)
_WEIGHTS = np.dtype(
    [(name, "i8") for name in ("image", "group", "g_group")]
    + [(name, "i4") for name in ("pixels", "split", "outputs", "g_pitch", "g_packs")]
    + [(name, "i4") for name in ("height", "width", "pitch", "packs", "kernel_h", "kernel_w")]
    + [(f"{name}_{axis}", "i4") for name in _AXES for axis in "hw"]
    + [(f"{name}_{part}", "u4") for name in ("image", "row") for part in ("by", "times", "shift")],
    align=True,
)
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_HALVES = (np.dtype(np.float16), NATIVE[bfloat16])
_INT = 2**31 - 1


class _Tile(NamedTuple):
    """A tile of the product and its warps or threads; `worth` is its speed beside the largest."""

    rows: int
    columns: int
    down: int
    across: int
    worth: float


_TENSOR = (_Tile(128, 128, 2, 4, 1.0), _Tile(128, 64, 4, 2, 0.85), _Tile(64, 64, 2, 2, 0.7),
           _Tile(128, 32, 4, 1, 0.6))  # fmt: skip
_PLAIN = (_Tile(128, 128, 16, 16, 1.0), _Tile(128, 64, 16, 16, 0.85), _Tile(64, 64, 16, 16, 0.7),
          _Tile(128, 32, 16, 8, 0.6))  # fmt: skip
_DOUBLE = (_Tile(64, 64, 16, 16, 1.0), _Tile(64, 32, 16, 8, 0.8))
_WEIGHT_TENSOR = (_Tile(128, 128, 2, 4, 1.0), _Tile(64, 64, 2, 2, 0.7), _Tile(32, 128, 1, 4, 0.6))
_WEIGHT_PLAIN = (_Tile(128, 128, 16, 16, 1.0), _Tile(64, 64, 16, 16, 0.7),
                 _Tile(32, 128, 8, 16, 0.6))  # fmt: skip
_WEIGHT_DOUBLE = (_Tile(64, 64, 16, 16, 1.0), _Tile(32, 64, 8, 16, 0.8))


def _way(chip: Facts, x: Any, *others: Any) -> bool | None:
    """Whether tensor cores are used, or None where no kernel serves these arrays."""
    dtype = x.dtype
    for other in others:
        if other is not None and other.dtype != dtype:
            return None
    if dtype == _FLOAT32:
        return bool(flags.cudnn_allow_tf32) and chip.capability >= 80
    if dtype == _FLOAT64:
        return False
    return True if dtype in _HALVES and chip.capability >= 80 else None


def _shared(tile: _Tile, itemsize: int) -> int:
    """Bytes of shared memory of the forward's tile."""
    rows, columns = tile.rows, tile.columns
    staged = max(itemsize, 4) * max(rows * (columns + 8), columns * (rows + 4))
    return max(4 * 80 * (rows + columns), staged) + 8 * rows


def _weight_shared(tile: _Tile, itemsize: int) -> int:
    pitches = (tile.rows + tile.columns) * itemsize + (64 if itemsize == 4 else 32)
    staged = max(itemsize, 4) * tile.rows * (tile.columns + 8)
    return max(4 * 64 // itemsize * pitches, staged)


def _threads(tile: _Tile, tensor: bool) -> int:
    return tile.down * tile.across * (32 if tensor else 1)


@lru_cache(4096)
def _choose(rows: int, columns: int, count: int, chip: Facts, itemsize: int, tensor: bool) -> _Tile:
    """The tile that needs the least time for `count` products: rounds over the processors."""
    tiles = _TENSOR if tensor else _DOUBLE if itemsize == 8 else _PLAIN

    def cost(tile: _Tile) -> float:
        blocks = -(-rows // tile.rows) * -(-columns // tile.columns) * count
        return -(-blocks // chip.processors) * tile.rows * tile.columns / tile.worth

    return min([t for t in tiles if _shared(t, itemsize) <= chip.shared], key=cost)


def _gather(
    x: Pixels, w: Any, b: Any, shape: tuple, last: bool, space: tuple, groups: int,
    geometry: tuple, chip: Facts, tensor: bool, transposed: bool,
) -> Any:  # fmt: skip
    """The product of the gathered `x` and the rows of `w`: an array of `shape`, laid as `last`."""
    batch, channels, *size = shape
    kernel = w.shape[2:]
    height, width = (1, *size)[-2:]
    dtype = x.array.dtype
    fits = (channels, dtype.itemsize, groups, geometry[0], transposed)
    if tensor and chip.capability // 10 == 9 and hopper.is_supported(x, *fits):
        y = new_array((batch, channels, height, width), dtype, True)
        across = transposed and hopper.reads_across(x, w)
        rows = _rows(w, groups, transposed and not across)
        waits = last and not transposed
        hopper.gather(
            x, rows, b, y, space, kernel, geometry, transposed, across, chip.processors, waits
        )
        return y if last else by_channels(y).reshape(shape)
    w = _rows(w, groups, transposed)
    y = new_array(shape, dtype, last)
    last = is_last(y)
    stride = geometry[0]
    residues, rows = (1, 1), batch * height * width
    if transposed:
        residues = (min(stride[0], height), min(stride[1], width))
        rows = batch * -(-height // stride[0]) * -(-width // stride[1])
    outputs = channels // groups
    tile = _choose(rows, outputs, groups * prod(residues), chip, y.itemsize, tensor)
    record = np.array(
        (
            x.image, x.group, height * width * channels, channels if last else 1,
            1 if last else height * width, batch, *space, x.pitch, x.packs, outputs, height, width,
            *kernel, *stride, *geometry[1], *geometry[2],
        ),
        _GATHER,
    )  # fmt: skip
    blocks = -(-rows // tile.rows) * -(-outputs // tile.columns)
    _forward[y.dtype, tile.rows, tile.columns, tile.down, tile.across, tensor, transposed](
        (blocks, groups, prod(residues)), _threads(tile, tensor), x.array, w, b, record, y,
        shared=_shared(tile, y.itemsize),
    )  # fmt: skip
    return y


def _fits(groups: int, *counts: int) -> bool:
    """Whether the kernels' integers and the grid hold these numbers of pixels."""
    return groups <= 65535 and max(counts) <= _INT - 256 and min(counts) > 0


def _two(values: Any, first: int) -> tuple:
    """Settings of one axis as those of two."""
    return tuple(values) if len(values) == 2 else (first, *values)


def _is_depthwise(channels: int, each: int, groups: int) -> bool:
    """`each`: input channels of a group."""
    return groups > 1 and groups == channels and each == 1


@override("conv", backend="cupy")
@aware
@cached_launches
def conv(
    F: Any, x: Any, w: Any, b: Any, *, stride: tuple, padding: tuple, dilation: tuple, groups: int
) -> Any:
    chain.flush([value for value in (x, w, b) if value is not None])
    chip = facts(x.device.id)
    tensor = _way(chip, x, w, b)
    if tensor is None or x.ndim not in (3, 4):
        return NotImplemented
    count = windows_size(x.shape[2:], w.shape[2:], stride, padding, dilation)
    if min(count) <= 0 or 0 in (x.size, w.size):
        return NotImplemented
    geometry = _two(stride, 1), _two(padding, 0), _two(dilation, 1)
    pixels = x.shape[0] * prod(count)
    space = _two(x.shape[2:], 1)
    if not _fits(groups, pixels, *space):
        return NotImplemented
    b = None if b is None else cupy.ascontiguousarray(b)
    shape = x.shape[0], w.shape[0], *count
    last = lies_last(x, w, w.shape[0], groups, tensor)
    x, w = spatial(x), spatial(w)
    if _is_depthwise(x.shape[1], w.shape[1], groups):
        return depthwise.forward(x, w, b, new_array(shape, x.dtype, last), geometry)
    if tensor and last and few.is_supported(x, w, groups):
        return few.forward(x, w, b, new_array(shape, x.dtype, True), geometry, chip.processors)
    return _gather(
        by_pixels(x, groups), w, b, shape, last, space, groups, geometry, chip, tensor, False,
    )  # fmt: skip


@override("cast_weight", backend="cupy")
def cast_weight(F: Any, x: Any, *, dtype: Any) -> Any:
    half = NATIVE.get(dtype)
    if not flags.free_layouts or x.dtype != _FLOAT32 or half not in _HALVES:
        return NotImplemented
    if x.ndim != 4 or not x.size or prod(x.shape[2:]) == 1 or not x.flags.c_contiguous:
        return NotImplemented
    physical = to_krsc(x, half)
    return NotImplemented if physical is None else physical


@override("conv_backward_input", backend="cupy")
@cached_launches
def conv_backward_input(
    F: Any, g: Any, w: Any, *, size: tuple, stride: tuple, padding: tuple, dilation: tuple,
    groups: int,
) -> Any:  # fmt: skip
    chip = facts(g.device.id)
    tensor = _way(chip, g, w)
    if tensor is None or g.ndim not in (3, 4) or 0 in (g.size, w.size):
        return NotImplemented
    geometry = _two(stride, 1), _two(padding, 0), _two(dilation, 1)
    space = _two(g.shape[2:], 1)
    residues = prod([min(s, n) for s, n in zip(stride, size)])
    if not _fits(groups, g.shape[0] * prod(size), *space) or residues > 65535:
        return NotImplemented
    shape = g.shape[0], w.shape[1] * groups, *size
    last = lies_last(g, w, shape[1], groups, tensor)
    g, w = spatial(g), spatial(w)
    if _is_depthwise(shape[1], w.shape[1], groups):
        return depthwise.backward_input(g, w, new_array(shape, g.dtype, last), geometry)
    return _gather(
        by_pixels(g, groups), w, None, shape, last, space, groups, geometry, chip, tensor, True,
    )  # fmt: skip


@override("conv_backward_weight", backend="cupy")
@cached_launches
def conv_backward_weight(
    F: Any, g: Any, x: Any, *, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple,
    groups: int,
) -> Any:  # fmt: skip
    chip = facts(g.device.id)
    tensor = _way(chip, g, x)
    if tensor is None or g.ndim not in (3, 4) or 0 in (g.size, x.size, *kernel):
        return NotImplemented
    outputs, channels = g.shape[1], x.shape[1] // groups
    geometry = _two(stride, 1), _two(padding, 0), _two(dilation, 1)
    pixels = g.shape[0] * prod(g.shape[2:])
    widest = outputs * packed_channels(channels, 16 // g.itemsize) * prod(kernel)
    if not _fits(groups, pixels, *x.shape[2:], widest):
        return NotImplemented
    last = (is_last(g) or is_last(x)) and not flags.free_layouts
    gw = new_array((outputs, channels, *kernel), g.dtype, last)
    g, x = spatial(g), spatial(x)
    if _is_depthwise(x.shape[1], channels, groups):
        return depthwise.backward_weight(g, x, gw, geometry, chip.processors)
    kernel, (stride, padding, dilation) = _two(kernel, 1), geometry
    served = window.is_supported(kernel, stride, dilation) or hopper_window.skips(
        kernel, stride, padding
    )
    served = served and tensor and groups == 1
    if not served or not _window_gradient(g, x, gw, last, stride[0], padding, chip):
        _weight_gradient(g, x, gw, last, kernel, geometry, groups, chip, tensor)
    return gw


def _rows(w: Any, groups: int, transposed: bool) -> Any:
    """w as the rows the product reads: (o, taps, c), or transposed (c, taps, o), by groups.

    The last axis is padded with zeros to 16 bytes.
    """
    outputs, channels, *kernel = w.shape
    taps, width = prod(kernel), 16 // w.itemsize
    w, last = contiguous_or_last(w)
    if not transposed:
        inner = (1, channels) if last else (taps, 1)
        if (last or taps == 1) and channels % width == 0 and w.data.ptr % 16 == 0:
            return w
        found = None if last else to_krsc(w, w.dtype)
        if found is not None:
            return found
        padded = packed_channels(channels, width)
        return pack(
            w, outputs, 1, channels, taps, (taps * channels, 0, *inner), (taps * padded, 0, padded),
            outputs * taps * padded,
        )  # fmt: skip
    outputs //= groups
    padded, area = packed_channels(outputs, width), channels * taps
    size = groups * area * padded
    if last:
        return pack(
            w, groups, taps, outputs, channels, (outputs * area, channels, area, 1),
            (area * padded, padded, taps * padded), size,
        )  # fmt: skip
    return pack(
        w, groups, 1, outputs, area, (outputs * area, 0, area, 1), (area * padded, 0, padded), size
    )


class _Split(NamedTuple):
    tile: _Tile
    pixels: int  # of one split
    number: int


@lru_cache(4096)
def _choose_split(
    rows: int, columns: int, pixels: int, groups: int, chip: Facts, itemsize: int, tensor: bool
) -> _Split:
    """The tile with the least waste, and as many splits as fill the multiprocessors."""
    tiles = _WEIGHT_TENSOR if tensor else _WEIGHT_DOUBLE if itemsize == 8 else _WEIGHT_PLAIN

    def blocks(tile: _Tile) -> int:
        return -(-rows // tile.rows) * -(-columns // tile.columns)

    tile = min(
        [t for t in tiles if _weight_shared(t, itemsize) <= chip.shared],
        key=lambda t: blocks(t) * t.rows * t.columns / t.worth,
    )
    step = 64 // itemsize
    count = chip.processors * 512 // _threads(tile, tensor) // (blocks(tile) * groups)
    room = (1 << 24) // (rows * columns * groups)  # of the sums
    splits = max(1, min(count, pixels // (8 * step), room, 4096))
    each = -(-pixels // (splits * step)) * step
    return _Split(tile, each, -(-pixels // each))


def _window_gradient(
    g: Any, x: Any, gw: Any, last: bool, stride: int, padding: tuple, chip: Facts
) -> bool:
    """Whether a kernel for windows of 3x3, or of 1x1 with a stride, computed the gradient."""
    outputs, channels, taps, _ = gw.shape
    batch, _, height, width = g.shape
    sizes, given = (outputs, channels), (stride, g.itemsize, chip.processors, chip.shared)
    if chip.capability // 10 == 9:
        wide = hopper_window.plan(*sizes, batch, height, width, taps, *given)
        if wide is not None:
            hopper_window.gradient(g, x, gw, last, stride, padding, wide)
            return True
    made = window.plan(*sizes, batch * height, height, *given) if taps > 1 else None
    if made is not None:
        window.gradient(g, x, gw, last, stride, padding, made)
    return made is not None


def _weight_gradient(
    g: Any, x: Any, gw: Any, last: bool, kernel: tuple, geometry: tuple, groups: int, chip: Facts,
    tensor: bool,
) -> None:  # fmt: skip
    batch, outputs, *count = g.shape
    pixels, channels = batch * prod(count), gw.shape[1]
    gp, xp = by_pixels(g, groups, flat=True), by_pixels(x, groups)
    width, taps = 16 // g.itemsize, prod(kernel)
    padded = xp.packs * width
    rows, columns = outputs // groups, taps * padded
    split = _choose_split(rows, columns, pixels, groups, chip, g.itemsize, tensor)
    tile = split.tile
    record = np.array(
        (
            xp.image, xp.group, gp.group, pixels, split.pixels, rows, gp.pitch, gp.packs,
            *x.shape[2:], xp.pitch, xp.packs, *kernel, *geometry[0], *geometry[1], *geometry[2],
            *window.divisor(prod(count)), *window.divisor(count[1]),
        ),
        _WEIGHTS,
    )  # fmt: skip
    kind = np.dtype(np.float64 if g.itemsize == 8 else np.float32)
    sums = cupy.empty(split.number * outputs * columns, kind)
    blocks = -(-rows // tile.rows) * -(-columns // tile.columns)
    _weight[g.dtype, kind, tile.rows, tile.columns, tile.down, tile.across, tensor](
        (blocks, groups, split.number), _threads(tile, tensor), gp.array, xp.array, record, sums,
        shared=_weight_shared(tile, g.itemsize),
    )  # fmt: skip
    parts = 8 if split.number >= 8 else 1
    _reduce[g.dtype, kind, parts](
        -(-gw.size * parts // 256), 256, sums, split.number, gw.size, channels, padded, taps,
        int(last), gw,
    )  # fmt: skip

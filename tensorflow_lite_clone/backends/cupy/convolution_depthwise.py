"""Launchers of depthwise convolutions: as many groups as input channels."""

from __future__ import annotations

from math import prod
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.arrays import ceil_div, strides_of
from tensorflow_lite_clone.backends.cupy.convolution_layout import (
    is_last,
    pack,
    packed_channels,
    spatial,
)
from tensorflow_lite_clone.backends.cupy.kernel import Kernel, blocks_for

_FILE = "depthwise.cu"
_forward = Kernel(_FILE, "depthwise_forward", params=("T", "I", "KERNEL", "LAST"))
_input = Kernel(_FILE, "depthwise_backward_input", params=("T", "I", "KERNEL", "LAST"))
_same = Kernel(_FILE, "depthwise_same", params=("T", "VEC", "KERNEL", "ROWS", "FLIP"))
_same_channels = Kernel(
    _FILE, "depthwise_same_channels", params=("T", "VEC", "ROWS", "COLUMNS", "FLIP")
)
_weight = Kernel(_FILE, "depthwise_backward_weight", params=("T", "A", "LAST"))
_reduce = Kernel("conv2d.cu", "conv2d_backward_reduce", params=("T", "A", "PARTS"))

# Channels, rows and columns that a thread of `depthwise_same_channels` has, by bytes of an element.
_TILES = {2: (8, 1, 2), 4: (2, 4, 4), 8: (2, 4, 1)}
_AXES = ("stride", "padding", "dilation")
_RECORD = np.dtype(
    [(f"{name}_{part}", "i8") for name in "xg" for part in ("image", "channel", "row", "pixel")]
    + [("w_tap", "i8"), ("w_output", "i8")]
    + [(name, "i4") for name in ("batch", "channels", "multiplier", "height", "width")]
    + [(name, "i4") for name in ("out_height", "out_width", "kernel_height", "kernel_width")]
    + [(f"{name}_{axis}", "i4") for name in _AXES for axis in ("height", "width")],
    align=True,
)


def _record(x: Any, g: Any, w: tuple, kernel: tuple, geometry: tuple) -> Any:
    """The kernel's struct; x and g of four axes, w the distances of its taps and outputs."""
    batch, channels = x.shape[:2]
    return np.array(
        (
            *strides_of(x), *strides_of(g), *w, batch, channels, g.shape[1] // channels,
            *x.shape[2:], *g.shape[2:], *kernel, *geometry[0], *geometry[1], *geometry[2],
        ),
        _RECORD,
    )  # fmt: skip


def _weights(w: Any, last: bool) -> tuple[Any, tuple[int, int]]:
    """w with its taps next to each other, or its outputs if `last`; distances of both."""
    w = cupy.ascontiguousarray(w)
    outputs, taps = w.shape[0], prod(w.shape[2:])
    if not last or taps == 1:
        return w, (1, taps)
    padded = packed_channels(outputs, 16 // w.itemsize)
    packed = pack(w, 1, 1, outputs, taps, (0, 0, taps, 1), (0, 0, padded), taps * padded)
    return packed, (padded, 1)


def _variant(y: Any, kernel: tuple, last: bool) -> tuple:
    unrolled = kernel[0] if kernel in ((3, 3), (5, 5)) else 0
    return y.dtype, "int" if y.size < 2**31 - 2**21 else "int64_t", unrolled, last


def _fill_same(x: Any, w: Any, b: Any, y: Any, geometry: tuple, flip: bool) -> bool:
    """Fill y if the convolution keeps x's size and both lie densely alike; whether it did."""
    kernel = w.shape[2:]
    middle = kernel[0] // 2
    if (
        x.shape != y.shape
        or kernel not in ((3, 3), (5, 5))
        or geometry != ((1, 1), (middle, middle), (1, 1))
    ):
        return False
    batch, channels, height, width = x.shape
    w, last = cupy.ascontiguousarray(w), is_last(y)
    if last:
        dense = kernel == (3, 3) and x.transpose(0, 2, 3, 1).flags.c_contiguous
        most, rows, columns = _TILES[x.itemsize]
        vec = _vector(channels, most, x, w)
        strips = batch * ceil_div(height, rows) * ceil_div(width, columns) * (channels // vec)
        instance = _same_channels[x.dtype, vec, rows, columns, flip]
    else:
        dense = x.flags.c_contiguous
        vec = _vector(width, 16 // x.itemsize, x)
        rows = 4 if vec <= 4 else 2
        dense = dense and vec >= middle
        strips = batch * channels * ceil_div(height, rows) * (width // vec)
        instance = _same[x.dtype, vec, kernel[0], rows, flip]
    if not dense or not 0 < strips < 1 << 31:
        return False
    instance(ceil_div(strips, 256), 256, x, w, b, strips, channels, height, width, y)
    return True


def _vector(length: int, most: int, *arrays: Any) -> int:
    """Neighbours that are moved at once: at most `most`, which divide `length` and addresses."""
    while most > 1 and (length % most or any([a.data.ptr % (most * a.itemsize) for a in arrays])):
        most //= 2
    return most


def forward(x: Any, w: Any, b: Any, y: Any, geometry: tuple) -> Any:
    """Fill y (n, c m, ...) from x (n, c, h, w), w (c m, 1, kh, kw) and b (c m,) or None."""
    if _fill_same(x, w, b, y, geometry, False):
        return y
    last, kernel = is_last(y), w.shape[2:]
    w, steps = _weights(w, last)
    record = _record(x, spatial(y), steps, kernel, geometry)
    _forward[_variant(y, kernel, last)](blocks_for(y.size, 256), 256, x, w, b, record, y.size, y)
    return y


def backward_input(g: Any, w: Any, gx: Any, geometry: tuple) -> Any:
    """Fill gx (n, c, ...) from g (n, c m, h, w) and w (c m, 1, kh, kw)."""
    if _fill_same(g, w, None, gx, geometry, True):
        return gx
    last, kernel = is_last(gx), w.shape[2:]
    w, steps = _weights(w, last)
    record = _record(spatial(gx), g, steps, kernel, geometry)
    _input[_variant(gx, kernel, last)](blocks_for(gx.size, 256), 256, g, w, record, gx.size, gx)
    return gx


def backward_weight(g: Any, x: Any, gw: Any, geometry: tuple, processors: int) -> Any:
    """Fill gw (c m, 1, ...) from g (n, c m, h, w) and x (n, c, h, w)."""
    batch, outputs, height, width = g.shape
    kernel = gw.shape[2:] if gw.ndim == 4 else (1, gw.shape[2])
    taps, pixels, last = prod(kernel), batch * height * width, is_last(x)
    lanes = 32 if last else 1
    blocks, chunks = -(-outputs // lanes), -(-taps // 9)
    splits = max(1, min(8 * processors // (blocks * chunks), pixels * lanes // 2048, 4096))
    split = -(-pixels // splits)
    splits = -(-pixels // split)
    kind = np.dtype(np.float64 if g.itemsize == 8 else np.float32)
    sums = cupy.empty(splits * outputs * taps, kind)
    record = _record(x, g, (0, 0), kernel, geometry)
    _weight[g.dtype, kind, last]((blocks, chunks, splits), 256, g, x, record, pixels, split, sums)
    parts = 8 if splits >= 8 else 1
    _reduce[g.dtype, kind, parts](
        -(-gw.size * parts // 256), 256, sums, splits, gw.size, 1, 1, taps, 0, gw
    )
    return gw

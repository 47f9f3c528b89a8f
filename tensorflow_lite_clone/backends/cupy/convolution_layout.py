"""How convolutions' arrays lie: channels_last or not, by pixels or packed so."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import cupy

from tensorflow_lite_clone.backends.cupy.arrays import empty_last, strides_of
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.core.strides import is_channels_last, lies_channels_last
from tensorflow_lite_clone.dispatch.result_layout import conversions

_pack = Kernel("conv2d.cu", "conv2d_pack", params=("T", "PIXELS", "READ"))
_taps = Kernel("conv2d_taps.cu", "conv2d_taps", params=("T", "U"))
_TAPS_BLOCK = 256
_TAPS_SHARED = 48 * 1024  # bytes of a block


class Pixels(NamedTuple):
    """An activation by pixels: distances in elements of images, groups, pixels; packs a group."""

    array: Any
    image: int
    group: int
    pitch: int
    packs: int


def is_last(x: Any) -> bool:
    """Whether PyTorch takes an array for channels_last: contiguous where both would do."""
    return x.ndim == 4 and is_channels_last(x.shape, x.strides)


def new_array(shape: tuple, dtype: Any, last: bool) -> Any:
    """An uninitialised array, channels_last if `last`."""
    return empty_last(shape, dtype) if last else cupy.empty(shape, dtype)


def lies_last(x: Any, w: Any, channels: int, groups: int, tensor: bool) -> bool:
    """Whether the result of a convolution of x, with so many channels, is channels_last.

    It is where an operand is, as in PyTorch; and if results may lie as suits the kernels, where
    tensor cores made it and the next convolution can read it in place.
    """
    if is_last(x) or is_last(w):
        return True
    depthwise = groups > 1 and w.shape[1] == 1
    whole = channels * x.itemsize % 16 == 0
    return flags.free_layouts and tensor and whole and x.ndim == 4 and not depthwise


def spatial(x: Any) -> Any:
    """x (n, c, l) as (n, c, 1, l)."""
    return x[:, :, None] if x.ndim == 3 else x


def contiguous_or_last(w: Any) -> tuple[Any, bool]:
    """A dense array of four axes, copied if need be, and whether it is channels_last."""
    last = lies_channels_last(w.shape, w.strides, w.itemsize)
    return (cupy.ascontiguousarray(w), False) if last is None else (w, last)


def packed_channels(channels: int, width: int) -> int:
    """Channels padded to whole packs of `width`."""
    return -(-channels // width) * width


def by_pixels(x: Any, groups: int, flat: bool = False) -> Pixels:
    """x (n, c, h, w) by pixels: in place where it lies so, else packed.

    `flat`: images follow each other as pixels do. Distances are never negative.
    """
    batch, channels, height, width = x.shape
    image, channel, row, pixel = strides_of(x)
    if height == width == 1:
        pixel = image if batch > 1 else channels
    elif width == 1:
        pixel = row
    elif height > 1 and row != width * pixel:
        x = cupy.ascontiguousarray(x)
        image, channel, row, pixel = strides_of(x)
    area, each, lanes = height * width, channels // groups, 16 // x.itemsize
    if batch == 1:
        image = area * pixel
    if (
        channel == 1
        and not (each % lanes or pixel % lanes or image % lanes or x.data.ptr % 16)
        and 0 <= pixel < 2**31
        and image >= 0
        and (not flat or image == area * pixel)
    ):
        return Pixels(x, image, each, pixel, each // lanes)
    conversions["packed"] += 1
    padded = packed_channels(each, lanes)
    pitch = groups * padded
    packed = pack(
        x, batch, groups, each, area, (image, each * channel, channel, pixel),
        (area * pitch, padded, pitch), batch * area * pitch,
    )  # fmt: skip
    return Pixels(packed, area * pitch, padded, pitch, padded // lanes)


def by_channels(x: Any) -> Any:
    """A contiguous copy of x (n, c, h, w), which is channels_last."""
    batch, channels, height, width = x.shape
    area = height * width
    if area * x.itemsize % 16:
        return cupy.ascontiguousarray(x)
    copy = pack(
        x, batch, 1, area, channels, (area * channels, 0, channels, 1), (area * channels, 0, area),
        x.size,
    )  # fmt: skip
    return copy.reshape(x.shape)


@lru_cache(4096)
def _pack_tiles(pixels: int, padded: int) -> tuple[int, int]:
    """The fewest blocks for an image, and the pixels of each."""
    return min(
        [(-(-pixels // tile) * -(-padded // (2048 // tile)), tile) for tile in (64, 16, 256)]
    )


def pack(
    x: Any, images: int, groups: int, channels: int, pixels: int, steps: tuple, new: tuple,
    size: int,
) -> Any:  # fmt: skip
    """A new array with `x`'s channels next to each other, zeros where they fill up 16 bytes.

    `steps` are x's distances of image, group, channel and pixel, `new` the result's of image,
    group and pixel.
    """
    y = cupy.empty(size, x.dtype)
    padded = packed_channels(channels, 16 // x.itemsize)
    blocks, tile = _pack_tiles(pixels, padded)
    lanes = 16 // x.itemsize
    in_line = steps[3] == 1 and not any([n % lanes for n in (*steps[:3], pixels)])
    _pack[x.dtype, tile, lanes if in_line and x.data.ptr % 16 == 0 else 1](
        images * groups * blocks, 256, x, *steps, groups, channels, padded, pixels, *new, y
    )
    return y


def to_krsc(x: Any, dtype: Any) -> Any | None:
    """A channels_last copy, in a dtype, of contiguous weights (o, c, *taps); None if not served.

    What is served has whole packs of 16 bytes of channels.
    """
    if dtype.itemsize > 4:
        return None
    outputs, channels, *kernel = x.shape
    taps, each = prod(kernel), 4 // dtype.itemsize
    if (
        channels % (16 // dtype.itemsize)
        or x.data.ptr % 16
        or each * _TAPS_BLOCK * taps * x.itemsize > _TAPS_SHARED
        or x.size >= 2**31
    ):
        return None
    y = empty_last(x.shape, dtype)
    count = outputs * channels
    _taps[x.dtype, dtype](
        -(-count // (_TAPS_BLOCK * each)), _TAPS_BLOCK, x, count, channels, taps, y,
        shared=each * _TAPS_BLOCK * taps * x.itemsize,
    )  # fmt: skip
    return y

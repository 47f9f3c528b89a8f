"""Pools over windows: kernels for one and two spatial axes.

The maximum keeps a byte for each window, 16 row + column of who won (255: nobody), so that its
gradient reads neither x nor y.
"""

from __future__ import annotations

from math import prod
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.arrays import (
    ACCUMULATORS,
    ceil_div,
    empty_last,
    is_dense_last,
)
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.backends.cupy.launch_cache import cached_launches
from tensorflow_lite_clone.backends.windows import Ints, pooled_size
from tensorflow_lite_clone.dispatch.table import override

_FILE = "max_pool.cu"
_STRIPS = "max_pool_strips.cu"
_MEANS = "avg_pool.cu"
_max_planes = Kernel(_FILE, "max_pool_forward", params=("T", "KERNEL"))
_max_channels = Kernel(_FILE, "max_pool_forward_channels", params=("T", "VEC", "KERNEL"))
_max_planes_back = Kernel(_FILE, "max_pool_backward", params=("T", "VEC", "KERNEL", "STRIDE"))
_max_channels_back = Kernel(_FILE, "max_pool_backward_channels", params=("T", "VEC"))
_max_planes_strips = Kernel(
    _STRIPS, "max_pool_forward_strips", params=("T", "VEC", "KERNEL", "ROWS")
)
_max_channels_strips = Kernel(
    _STRIPS, "max_pool_forward_channels_strips", params=("T", "VEC", "KERNEL", "ROWS")
)
_max_planes_strips_back = Kernel(
    _STRIPS, "max_pool_backward_strips", params=("T", "VEC", "KERNEL", "ROWS")
)
_max_channels_strips_back = Kernel(
    _STRIPS, "max_pool_backward_channels_strips", params=("T", "VEC", "KERNEL")
)
_avg_planes = Kernel(_MEANS, "avg_pool_forward", params=("T", "KERNEL"))
_avg_rows = Kernel(_MEANS, "avg_pool_forward_rows", params=("T",))
_avg_channels = Kernel(_MEANS, "avg_pool_forward_channels", params=("T", "VEC"))
_avg_planes_back = Kernel(_MEANS, "avg_pool_backward", params=("T", "VEC"))
_avg_channels_back = Kernel(_MEANS, "avg_pool_backward_channels", params=("T", "VEC"))
_MOST_STRIPS = (1 << 31) - 1
_KNOWN: dict[Ints, int] = {(2, 2): 2, (3, 3): 3}  # kernels that the compiler knows


def _is_supported(x: Any, size: Ints, count: Ints) -> bool:
    """Whether the kernels take arrays of x's dtype with these spaces before and after."""
    return (
        x.dtype in ACCUMULATORS
        and len(size) <= 2
        and prod(x.shape) > 0
        and prod(count) > 0
        and max(prod(size), prod(count)) < 1 << 31
    )


def _channels_last(x: Any) -> bool:
    return x.ndim == 4 and not x.flags.c_contiguous and is_dense_last(x)


def _laid(x: Any, last: bool) -> Any:
    """x in one of the two layouts, copied if it is not."""
    if last and is_dense_last(x):
        return x
    if last:
        return cupy.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    return cupy.ascontiguousarray(x)


def _empty(shape: tuple, dtype: Any, last: bool) -> Any:
    return empty_last(shape, dtype) if last else cupy.empty(shape, dtype)


def _plane(size: Ints, filled: int) -> Ints:
    """A setting of one or two axes as one of two; `filled` is that of a first axis of length 1."""
    return size if len(size) == 2 else (filled, *size)


def _pack(length: int, itemsize: int, *arrays: Any) -> int:
    """How many neighbours of a row of `length` are moved at once."""
    count = 16 // itemsize
    while count > 1 and (
        length % count or any([a.data.ptr % (count * a.itemsize) for a in arrays])
    ):
        count //= 2
    return count


def _launch_planes(instance: Any, threads: int, planes: int, *arguments: Any) -> None:
    """`threads` threads for each of `planes`; small planes share a block."""
    across = 1
    while across < min(threads, 256):
        across *= 2
    down = 256 // across
    grid = (-(-threads // across), min(-(-planes // down), 65535))
    instance(grid, (across, down), *arguments)


def _launch_channels(instance: Any, packs: int, places: int, images: int, *arguments: Any) -> None:
    """A thread for each pack of channels at each place."""
    across = 1
    while across < min(packs, 256):
        across *= 2
    down = 256 // across
    instance((-(-places // down), min(images, 65535)), (across, down), *arguments)


def _known(kernel: Ints, dilation: Ints) -> int:
    return _KNOWN.get(kernel, 0) if dilation == (1, 1) else 0


def _halved(kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> int:
    """The kernel's length if its windows are those of `max_pool_strips.cu`, else 0."""
    length = _known(kernel, dilation)
    return length if stride == (2, 2) and padding == (length - 2,) * 2 else 0


def _maxima_by_strips(x: Any, y: Any, winners: Any, kernel: int, last: bool) -> bool:
    """Fill y and winners for windows that halve x; False, and nothing is done, if not served."""
    images, channels, height, width = x.shape
    down, across = y.shape[2:]
    vec = _pack(channels if last else width, x.itemsize, x)
    if last:
        rows = 2 if vec <= 4 else 1
        strips = images * ceil_div(down, rows) * across * (channels // vec)
        instance = _max_channels_strips[x.dtype, vec, kernel, rows]
        sizes: tuple = (channels, height, width, down, across)
    else:
        rows = 4 if vec <= 4 else 2
        strips = images * channels * ceil_div(down, rows) * (width // vec)
        if vec == 1 or 2 * across != width:
            return False
        instance = _max_planes_strips[x.dtype, vec, kernel, rows]
        sizes = (height, width, down)
    if strips > _MOST_STRIPS:
        return False
    instance(ceil_div(strips, 256), 256, x, strips, *sizes, y, winners)
    return True


def _gradient_by_strips(g: Any, winners: Any, gx: Any, kernel: int, last: bool) -> bool:
    """Fill gx for windows that halve it; False, and nothing is done, if not served."""
    images, channels, height, width = gx.shape
    down, across = g.shape[2:]
    vec = _pack(channels if last else width, g.itemsize, g, winners)
    if last:
        strips = images * ceil_div(height, 2) * ceil_div(width, 2) * (channels // vec)
        instance = _max_channels_strips_back[g.dtype, vec, kernel]
        sizes: tuple = (channels, height, width, down, across)
    else:
        rows = 4
        strips = images * channels * ceil_div(height, 2 * rows) * (width // vec)
        if vec == 1 or 2 * across != width:
            return False
        instance = _max_planes_strips_back[g.dtype, vec, kernel, rows]
        sizes = (height, width, down)
    if strips > _MOST_STRIPS:
        return False
    instance(ceil_div(strips, 256), 256, g, winners, strips, *sizes, gx)
    return True


@override("max_pool", backend="cupy")
@cached_launches
def max_pool(
    F: Any, x: Any, *, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> Any:
    size = x.shape[2:]
    count = pooled_size(size, kernel, stride, padding, dilation, ceil_mode)
    if not _is_supported(x, size, count) or not _coded(kernel):
        return NotImplemented
    return _maxima(x, count, kernel, stride, padding, dilation)


def _coded(kernel: Ints) -> bool:
    """Whether a byte tells who won."""
    return len(kernel) <= 2 and _plane(kernel, 1)[0] <= 15 and kernel[-1] <= 16


def _maxima(
    x: Any, count: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> tuple[Any, Any]:
    """The maxima, and the codes of who won."""
    last = _channels_last(x)
    x = _laid(x, last)
    y = _empty((*x.shape[:2], *count), x.dtype, last)
    winners = _empty(y.shape, np.dtype(np.uint8), last)
    halved = _halved(kernel, stride, padding, dilation)
    if halved and _maxima_by_strips(x, y, winners, halved, last):
        return y, winners
    kernel, stride, dilation = _plane(kernel, 1), _plane(stride, 1), _plane(dilation, 1)
    known = _known(kernel, dilation)
    images, channels = x.shape[:2]
    geometry = (
        *_plane(x.shape[2:], 1), *_plane(count, 1), *kernel, *stride, *_plane(padding, 0), *dilation
    )  # fmt: skip
    if last:
        vec = _pack(channels, x.itemsize, x)
        _launch_channels(
            _max_channels[x.dtype, vec, known], channels // vec, prod(count), images,
            x, images, channels, *geometry, y, winners,
        )  # fmt: skip
    else:
        planes = images * channels
        _launch_planes(
            _max_planes[x.dtype, known], prod(count), planes, x, planes, *geometry, y, winners
        )
    return y, winners


@override("max_pool_winners", backend="cupy")
def max_pool_winners(
    F: Any, x: Any, y: Any, *, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> Any:
    if not _is_supported(x, x.shape[2:], y.shape[2:]) or not _coded(kernel):
        return NotImplemented
    codes = _maxima(x, y.shape[2:], kernel, stride, padding, dilation)[1].astype(np.int32)
    places = (codes >> 4) * kernel[-1] + (codes & 15)
    return cupy.where(codes == 255, -1, places).astype(np.int32, copy=False)


@override("max_pool_backward", backend="cupy")
@cached_launches
def max_pool_backward(
    F: Any, g: Any, x: Any, y: Any, hint: Any, *, kernel: Ints, stride: Ints, padding: Ints,
    dilation: Ints,
) -> Any:  # fmt: skip
    size, count = x.shape[2:], y.shape[2:]
    if not _is_supported(x, size, count) or not _coded(kernel) or g.dtype != x.dtype:
        return NotImplemented
    if hint is None or not hint.size:
        hint = _maxima(x, count, kernel, stride, padding, dilation)[1]
    last = _channels_last(x)
    g, hint = _laid(g, last), _laid(hint, last)
    gx = _empty(x.shape, x.dtype, last)
    halved = _halved(kernel, stride, padding, dilation)
    if halved and _gradient_by_strips(g, hint, gx, halved, last):
        return gx
    kernel, stride, dilation = _plane(kernel, 1), _plane(stride, 1), _plane(dilation, 1)
    images, channels = x.shape[:2]
    height, width = _plane(size, 1)
    geometry = (
        height, width, *_plane(count, 1), *kernel, *stride, *_plane(padding, 0), *dilation
    )  # fmt: skip
    if last:
        vec = _pack(channels, x.itemsize, g, hint)
        _launch_channels(
            _max_channels_back[x.dtype, vec], channels // vec, height * width, images,
            g, hint, images, channels, *geometry, gx,
        )  # fmt: skip
    else:
        vec, planes = _pack(width, x.itemsize), images * channels
        known = _known(kernel, dilation) if stride == (2, 2) else 0
        _launch_planes(
            _max_planes_back[x.dtype, vec, known, 2 if known else 0], height * (width // vec),
            planes, g, hint, planes, *geometry, gx,
        )  # fmt: skip
    return gx


def _means(
    size: Ints, count: Ints, kernel: Ints, stride: Ints, padding: Ints, include: bool,
    divisor: int | None,
) -> tuple:  # fmt: skip
    """What the kernels of averages are told."""
    return (
        *_plane(size, 1), *_plane(count, 1), *_plane(kernel, 1), *_plane(stride, 1),
        *_plane(padding, 0), int(include), divisor or 0,
    )  # fmt: skip


@override("avg_pool", backend="cupy")
@cached_launches
def avg_pool(
    F: Any, x: Any, *, size: Ints, kernel: Ints, stride: Ints, padding: Ints, ceil_mode: bool,
    include: bool, divisor: int | None,
) -> Any:  # fmt: skip
    count = pooled_size(size, kernel, stride, padding, (1,) * len(size), ceil_mode)
    if not _is_supported(x, size, count) or not -1 << 31 <= (divisor or 0) < 1 << 31:
        return NotImplemented
    last = _channels_last(x)
    x = _laid(x, last)
    y = _empty((*x.shape[:2], *count), x.dtype, last)
    images, channels = x.shape[:2]
    planes = images * channels
    geometry = _means(size, count, kernel, stride, padding, include, divisor)
    if last:
        vec = _pack(channels, x.itemsize, x)
        _launch_channels(
            _avg_channels[x.dtype, vec], channels // vec, prod(count), images,
            x, images, channels, *geometry, y,
        )  # fmt: skip
    elif prod(count) == 1 and tuple(kernel) == tuple(size) and not any(padding):
        length = prod(size)
        blocks = min(-(-planes // 8), 1 << 20)
        _avg_rows[x.dtype](blocks, 256, x, planes, length, divisor or length, y)
    else:
        _launch_planes(
            _avg_planes[x.dtype, _KNOWN.get(_plane(kernel, 1), 0)], prod(count), planes,
            x, planes, *geometry, y,
        )  # fmt: skip
    return y


@override("avg_pool_backward", backend="cupy")
@cached_launches
def avg_pool_backward(
    F: Any, g: Any, *, size: Ints, kernel: Ints, stride: Ints, padding: Ints, ceil_mode: bool,
    include: bool, divisor: int | None,
) -> Any:  # fmt: skip
    count = g.shape[2:]
    if not _is_supported(g, size, count) or not -1 << 31 <= (divisor or 0) < 1 << 31:
        return NotImplemented
    last = _channels_last(g)
    g = _laid(g, last)
    gx = _empty((*g.shape[:2], *size), g.dtype, last)
    images, channels = g.shape[:2]
    planes = images * channels
    height, width = _plane(size, 1)
    geometry = _means(size, count, kernel, stride, padding, include, divisor)
    if last:
        vec = _pack(channels, g.itemsize, g)
        _launch_channels(
            _avg_channels_back[g.dtype, vec], channels // vec, height * width, images,
            g, images, channels, *geometry, gx,
        )  # fmt: skip
    else:
        vec = _pack(width, g.itemsize)
        _launch_planes(
            _avg_planes_back[g.dtype, vec], height * (width // vec), planes,
            g, planes, *geometry, gx,
        )  # fmt: skip
    return gx

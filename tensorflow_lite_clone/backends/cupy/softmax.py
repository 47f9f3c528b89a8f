"""Softmax and its logarithm along any axis, with their gradients: `kernels/softmax.cu`."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import cupy

from tensorflow_lite_clone.backends.cupy.arrays import (
    ACCUMULATORS,
    aligned,
    in_order,
    out_of_order,
    power_above,
    stored,
)
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.backends.cupy.launch_cache import cached_launches
from tensorflow_lite_clone.dispatch.table import override

MOST_BLOCKS = 2**31 - 1
_FILE = "softmax.cu"
_KERNELS = {
    (variant, backward): Kernel(
        _FILE, f"softmax_{'backward' if backward else 'forward'}_{variant}", params=params
    )
    for variant, params in {
        "rows": ("T", "VEC", "LOG", "WIDTH", "PACKS"),
        "long": ("T", "VEC", "LOG"),
        "finish": ("T", "A", "VEC", "LOG"),
        "strided": ("T", "VEC", "LOG", "X"),
    }.items()
    for backward in (False, True)
}
_FORWARD_PARTIAL = Kernel(_FILE, "softmax_forward_partial", params=("T", "A", "VEC"))
_BACKWARD_PARTIAL = Kernel(_FILE, "softmax_backward_partial", params=("T", "A", "VEC", "LOG"))


def tile(dtype: Any, n: int, outer: int, inner: int, packs: bool) -> tuple[int, int]:
    """VEC and X for the strided kernels: how many columns a thread has, and a block's row."""
    full = 16 // dtype.itemsize
    vec = full if packs and inner % full == 0 and inner >= 8 * full else 1
    columns = inner // vec
    if columns <= 16:
        return vec, 8
    return vec, 256 if n <= 32 and columns >= 512 and outer * columns >= 1 << 15 else 32


def row_shape(n: int, vec: int) -> tuple[int, int]:
    """WIDTH and PACKS: how many threads hold a row of n <= 16384, and packs in each."""
    packs = -(-n // vec)
    if packs <= 32:
        return power_above(packs), 1
    if n <= 1024:
        return 32, power_above(-(-packs // 32))
    values = 32 if n > (2048 if vec == 8 else 8192) else 16
    width = max(128, power_above(-(-n // values)))
    return width, values // vec


@lru_cache(4096)
def _plan(
    dtype: Any, shape: tuple, axis: int, packs: bool, log: bool, backward: bool
) -> tuple[Any, int, int, tuple, Any] | None:
    """The instance to launch, grid, block, its sizes; and, in parts, the instance before it."""
    n, outer, inner = shape[axis], prod(shape[:axis]), prod(shape[axis + 1 :])
    full = 16 // dtype.itemsize
    if inner > 1:
        vec, x = tile(dtype, n, outer, inner, packs)
        tiles = -(-inner // (x * vec))
        if outer * tiles > MOST_BLOCKS:
            return None
        strided = _KERNELS["strided", backward][dtype, vec, log, x]
        return strided, outer * tiles, 256, (n, inner, tiles), None
    if n <= (8192 if backward else 16384):
        vec = full if packs and n % full == 0 else 1
        width, each = row_shape(n, vec)
        block = max(128, width)
        grid = -(-outer * width // block)
        if grid > MOST_BLOCKS:
            return None
        rows = _KERNELS["rows", backward][dtype, vec, log, width, each]
        return rows, grid, block, (outer, n), None
    vec = full if packs else 1
    splits = min(512, -(-n // 4096), -(-1024 // outer)) if outer < 256 else 1
    if splits > 1:
        wide = ACCUMULATORS[dtype]
        partial = (
            _BACKWARD_PARTIAL[dtype, wide, vec, log]
            if backward
            else _FORWARD_PARTIAL[dtype, wide, vec]
        )
        finish = _KERNELS["finish", backward][dtype, wide, vec, log]
        return finish, outer * splits, 512, (n, splits), partial
    long = _KERNELS["long", backward][dtype, vec, log]
    return long, outer, 512 if dtype.itemsize == 8 else 1024, (n,), None


def _run(inputs: tuple, axis: int, log: bool, backward: bool) -> Any:
    like = inputs[-1]
    dtype = like.dtype
    if dtype not in ACCUMULATORS or not like.size or not like.ndim:
        return NotImplemented
    axis %= like.ndim
    last, order = stored(like)
    if backward:
        g = inputs[0]
        if g.dtype != dtype or g.shape != like.shape:
            return NotImplemented
        inputs = (in_order(g, order), last)
    else:
        inputs = (last,)
    if order is not None:
        axis = order.index(axis)
    plan = _plan(dtype, last.shape, axis, aligned(*inputs), log, backward)
    if plan is None:
        return NotImplemented
    instance, grid, block, sizes, partial = plan
    out = cupy.empty(last.shape, dtype)
    if partial is None:
        instance(grid, block, *inputs, *sizes, out)
    else:
        sums = cupy.empty((grid, 1 if backward else 2), ACCUMULATORS[dtype])
        partial(grid, block, *inputs, *sizes, sums)
        instance(grid, block, *inputs, sums, *sizes, out)
    return out_of_order(out, order)


@override("softmax", backend="cupy")
@cached_launches
def softmax(F: Any, x: Any, *, axis: int) -> Any:
    return _run((x,), axis, False, False)


@override("log_softmax", backend="cupy")
@cached_launches
def log_softmax(F: Any, x: Any, *, axis: int) -> Any:
    return _run((x,), axis, True, False)


@override("softmax_backward", backend="cupy")
@cached_launches
def softmax_backward(F: Any, g: Any, y: Any, *, axis: int) -> Any:
    return _run((g, y), axis, False, True)


@override("log_softmax_backward", backend="cupy")
@cached_launches
def log_softmax_backward(F: Any, g: Any, y: Any, *, axis: int) -> Any:
    return _run((g, y), axis, True, True)

"""Cross-entropy of class indices and its gradient: `kernels/cross_entropy.cu`."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy import device_asserts
from tensorflow_lite_clone.backends.cupy.arrays import ACCUMULATORS, aligned, ceil_div
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.backends.cupy.launch_cache import cached_launches
from tensorflow_lite_clone.backends.cupy.softmax import MOST_BLOCKS, tile
from tensorflow_lite_clone.dispatch.table import override

_FILE = "cross_entropy.cu"
_ROWS = Kernel(_FILE, "cross_entropy_forward_rows", params=("T", "A", "VEC", "WIDTH", "SMOOTH"))
_STRIDED = Kernel(_FILE, "cross_entropy_forward_strided", params=("T", "A", "VEC", "X", "SMOOTH"))
_FINISH = Kernel(_FILE, "cross_entropy_forward_finish", params=("T", "A"))
_WEIGHTS = Kernel(_FILE, "cross_entropy_backward_weights", params=("T", "A"))
_TOTAL = Kernel(_FILE, "cross_entropy_backward_total", params=("A",))
_ROWS_BACKWARD = Kernel(_FILE, "cross_entropy_backward_rows", params=("T", "A", "VEC", "SMOOTH"))
_LONG_BACKWARD = Kernel(_FILE, "cross_entropy_backward_long", params=("T", "A", "VEC", "SMOOTH"))
_STRIDED_BACKWARD = Kernel(
    _FILE, "cross_entropy_backward_strided", params=("T", "A", "VEC", "SMOOTH")
)
_MOST = 8192  # blocks of a forward pass, and so numbers that are left to add
_MOST_CLASSES = 2**31 - 1
_int64 = np.dtype(np.int64)


def _is_supported(x: Any, target: Any, weight: Any) -> bool:
    dtype = x.dtype
    return (
        dtype in ACCUMULATORS
        and x.size > 0
        and x.ndim > 0
        and target.dtype == _int64
        and (weight is None or weight.dtype == dtype)
    )


def _laid_out(x: Any, axis: int) -> tuple[Any, bool]:
    """`x` contiguous, and whether its classes lie last in memory (then they are the last axis)."""
    last = cupy.moveaxis(x, axis, -1)
    if last.flags.c_contiguous:
        return last, True
    return cupy.ascontiguousarray(x), False


def _sizes(x: Any, axis: int, last: bool) -> tuple[int, int, int]:
    shape = x.shape
    if last:
        return prod(shape[:-1]), shape[-1], 1
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


@lru_cache(4096)
def _forward_plan(
    dtype: Any, outer: int, classes: int, inner: int, packs: bool, smooth: bool
) -> tuple[Any, int, int, tuple]:
    """The instance to launch, grid, block, and its sizes."""
    wide = ACCUMULATORS[dtype]
    if inner > 1:
        vec, x = tile(dtype, classes, outer, inner, packs)
        tiles = -(-inner // (x * vec))
        instance = _STRIDED[dtype, wide, vec, x, smooth]
        return instance, min(_MOST, outer * tiles), 256, (classes, inner, tiles, outer * tiles)
    vec = 16 // dtype.itemsize if packs else 1
    width = 4 if classes <= 32 else 32 if classes <= 1024 else 128 if classes <= 4096 else 512
    block = max(128, width)
    grid = min(_MOST, -(-outer * width // block))
    return _ROWS[dtype, wide, vec, width, smooth], grid, block, (outer, classes)


@override("cross_entropy", backend="cupy")
@cached_launches
def cross_entropy(
    F: Any,
    x: Any,
    target: Any,
    weight: Any,
    *,
    axis: int,
    reduction: str,
    ignore_index: int,
    smoothing: float,
) -> Any:
    if not _is_supported(x, target, weight) or x.shape[axis] > _MOST_CLASSES:
        return NotImplemented
    dtype, shape = x.dtype, target.shape
    x, last = _laid_out(x, axis)
    target = cupy.ascontiguousarray(target)
    weight = None if weight is None else cupy.ascontiguousarray(weight)
    instance, grid, block, sizes = _forward_plan(
        dtype, *_sizes(x, axis, last), aligned(x), smoothing > 0
    )
    wide = ACCUMULATORS[dtype]
    each = reduction == "none"
    lse = cupy.empty(shape, wide)
    loss = cupy.empty(shape if each else (), dtype)
    partial = None if each else cupy.empty((grid, 2), wide)
    losses = loss if each else None
    instance(
        grid, block, x, target, weight, *sizes, ignore_index, smoothing, losses, partial, lse,
        device_asserts.report(),
    )  # fmt: skip
    if not each:
        _FINISH[dtype, wide](1, 1024, partial, grid, reduction == "mean", loss)
    return loss, lse


def _total_weight(target: Any, weight: Any, dtype: Any, classes: int, ignore_index: int) -> Any:
    """The sum of the targets' weights on the device; of the classes' weights without targets."""
    wide = ACCUMULATORS[dtype]
    count = classes if target is None else target.size
    blocks = 1 if count <= 1 << 14 else min(1024, -(-count // 4096))
    partial = cupy.empty(blocks, wide)
    _WEIGHTS[dtype, wide](blocks, 1024, target, weight, count, classes, ignore_index, partial)
    if blocks == 1:
        return partial
    total = cupy.empty((), wide)
    _TOTAL[(wide,)](1, 1024, partial, blocks, total)
    return total


@override("cross_entropy_backward", backend="cupy")
@cached_launches
def cross_entropy_backward(
    F: Any,
    g: Any,
    x: Any,
    lse: Any,
    target: Any,
    weight: Any,
    *,
    axis: int,
    reduction: str,
    ignore_index: int,
    smoothing: float,
) -> Any:
    dtype = x.dtype
    each = reduction == "none"
    if (
        not _is_supported(x, target, weight)
        or x.shape[axis] > _MOST_CLASSES
        or g.dtype != dtype
        or g.shape != (target.shape if each else ())
    ):
        return NotImplemented
    wide = ACCUMULATORS[dtype]
    x, last = _laid_out(x, axis)
    outer, classes, inner = _sizes(x, axis, last)
    vec = 16 // dtype.itemsize if aligned(x) and inner % (16 // dtype.itemsize) == 0 else 1
    grid = -(-outer * (inner // vec) // 256)
    if inner > 1 and grid > MOST_BLOCKS:
        return NotImplemented
    g, target = cupy.ascontiguousarray(g), cupy.ascontiguousarray(target)
    lse = cupy.ascontiguousarray(lse, wide)
    weight = None if weight is None else cupy.ascontiguousarray(weight)
    total = weights = None
    if reduction == "mean":
        total = _total_weight(target, weight, dtype, classes, ignore_index)
    if smoothing and weight is not None:
        weights = _total_weight(None, weight, dtype, classes, ignore_index)
    gx = cupy.empty(x.shape, dtype)
    given = (g, each, x, lse, target, weight, total, weights)
    if inner == 1:
        vec = 16 // dtype.itemsize if aligned(x) else 1
        long = classes >= 2048 * vec  # a block's logits lie in two rows at most
        kernel = _LONG_BACKWARD if long else _ROWS_BACKWARD
        kernel[dtype, wide, vec, smoothing > 0](
            ceil_div(x.size, (2048 if long else 1024) * vec), 256,
            *given, x.size, classes, ignore_index, smoothing, gx,
        )  # fmt: skip
    else:
        part = -(-classes // max(1, min(classes // 8, 1024 // grid, 65535)))
        _STRIDED_BACKWARD[dtype, wide, vec, smoothing > 0](
            (grid, -(-classes // part)), 256, *given, outer, classes, inner, part, ignore_index,
            smoothing, gx,
        )  # fmt: skip
    return cupy.moveaxis(gx, -1, axis) if last else gx

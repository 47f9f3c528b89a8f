"""Group norm, and so instance norm, by the kernels of `group_norm.cu`."""

from __future__ import annotations

from math import prod
from typing import Any

import cupy

from tensorflow_lite_clone.backends.cupy.arrays import ACCUMULATORS, ceil_div, power_above
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.backends.cupy.launch_cache import cached_launches
from tensorflow_lite_clone.backends.cupy.layer_norm import column_sums, forward_plan
from tensorflow_lite_clone.backends.cupy.norms import (
    statistics,
    vector,
    weights_of,
)
from tensorflow_lite_clone.dispatch.table import override

_FILE = "group_norm.cu"
_forward = Kernel(_FILE, "group_norm_forward", params=("T", "W", "A", "VEC", "LANES", "ITEMS"))
_forward_long = Kernel(_FILE, "group_norm_forward_long", params=("T", "W", "A", "VEC"))
_planes = Kernel(_FILE, "group_norm_backward_planes", params=("T", "A", "VEC", "LANES"))
_backward = Kernel(_FILE, "group_norm_backward", params=("T", "W", "A", "VEC", "LANES"))


@override("group_norm", backend="cupy")
@cached_launches
def group_norm(F: Any, x: Any, w: Any, b: Any, *, groups: int, eps: float) -> Any:
    kind: Any = ACCUMULATORS.get(x.dtype)
    weights = None if kind is None or not x.size else weights_of(x, w, b)
    rows, size = x.shape[0] * groups, x.shape[1] // groups
    plane = prod(x.shape[2:])
    if weights is None or size * plane >= 1 << 31:
        return NotImplemented
    w, b, weight_kind = weights
    x = cupy.ascontiguousarray(x)
    y = cupy.empty(x.shape, x.dtype)
    mean, rstd = cupy.empty((rows, 1), kind), cupy.empty((rows, 1), kind)
    width = vector(plane, x)
    length = plane // width
    plan = forward_plan(size * length, width, 32 if kind.itemsize == 4 else 16)
    if plan is None:
        kernel = _forward_long[x.dtype, weight_kind, kind, width]
        kernel(rows, 512, x, w, b, groups, size, length, eps, y, mean, rstd)
        return y, mean, rstd
    lanes, items = plan
    at_once, threads = (256 // lanes, 256) if lanes <= 32 else (1, lanes)
    kernel = _forward[x.dtype, weight_kind, kind, width, lanes, items]
    kernel(
        ceil_div(rows, at_once), threads, x, w, b, rows, groups, size, length, eps, y, mean, rstd
    )
    return y, mean, rstd


@override("group_norm_backward", backend="cupy")
@cached_launches
def group_norm_backward(
    F: Any,
    g: Any,
    x: Any,
    w: Any,
    mean: Any,
    rstd: Any,
    *,
    groups: int,
    eps: float,
    needs: Any,
) -> Any:
    kind: Any = ACCUMULATORS.get(x.dtype)
    if kind is None or not x.size or g.dtype != x.dtype or mean is None or rstd is None:
        return NotImplemented
    samples, channels = x.shape[:2]
    rows, size = samples * groups, channels // groups
    plane = prod(x.shape[2:])
    weights = weights_of(x, w, None)
    if weights is None or size * plane >= 1 << 31:
        return NotImplemented
    w, _, weight_kind = weights
    g, x = cupy.ascontiguousarray(g), cupy.ascontiguousarray(x)
    mean, rstd = statistics(mean, kind), statistics(rstd, kind)
    width = vector(plane, x, g)
    length = plane // width
    sums = cupy.empty((samples, 2, channels), kind)
    lanes = _lanes(length)
    kernel = _planes[x.dtype, kind, width, lanes]
    planes = samples * channels
    kernel(
        ceil_div(planes, 256 // lanes), 256,
        g, x, mean, rstd, planes, channels, size, length, sums,
    )  # fmt: skip
    gx = None
    if needs[0]:
        gx = cupy.empty(x.shape, x.dtype)
        lanes = _lanes(size * length)
        parts = ceil_div(size * length, 256 * 16) if lanes == 256 else 1
        blocks = rows * parts if lanes == 256 else ceil_div(rows, 256 // lanes)
        kernel = _backward[x.dtype, weight_kind, kind, width, lanes]
        kernel(blocks, 256, g, x, w, mean, rstd, sums, rows, groups, size, length, parts, gx)
    gw = cupy.empty(channels, weight_kind) if needs[1] else None
    gb = cupy.empty(channels, weight_kind) if needs[2] else None
    if gw is not None or gb is not None:
        column_sums(sums, gw, gb)
    return gx, gw, gb


def _lanes(packs: int) -> int:
    """Threads for a row or plane of so many packs."""
    return min(32, power_above(packs)) if packs <= 256 else 256

"""Layer norm and RMS norm by the kernels of `layer_norm.cu`."""

from __future__ import annotations

from math import prod
from typing import Any

import cupy

from tensorflow_lite_clone.backends.cupy.arrays import ACCUMULATORS, ceil_div, power_above
from tensorflow_lite_clone.backends.cupy.device_facts import here
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.backends.cupy.launch_cache import cached_launches
from tensorflow_lite_clone.backends.cupy.norms import (
    statistics,
    vector,
    weights_of,
)
from tensorflow_lite_clone.dispatch.table import override

_FILE = "layer_norm.cu"
_forward = Kernel(
    _FILE, "layer_norm_forward", params=("T", "W", "A", "VEC", "LANES", "ITEMS", "RMS")
)
_forward_long = Kernel(_FILE, "layer_norm_forward_long", params=("T", "W", "A", "VEC", "RMS"))
_backward = Kernel(
    _FILE,
    "layer_norm_backward",
    params=("T", "W", "A", "VEC", "LANES", "ITEMS", "RMS", "WEIGHTS"),
)
_backward_long = Kernel(_FILE, "layer_norm_backward_long", params=("T", "W", "A", "VEC", "RMS"))
_columns = Kernel(_FILE, "layer_norm_backward_columns", params=("T", "A", "VEC", "RMS"))
_weights = Kernel(_FILE, "layer_norm_backward_weights", params=("A", "O"))


@override("layer_norm", backend="cupy")
@cached_launches
def layer_norm(F: Any, x: Any, w: Any, b: Any, *, ndim: int, eps: float) -> Any:
    rows, columns = _rows(x, ndim)
    return _normalize(x, w, b, rows, columns, (rows, 1), eps, False)


@override("rms_norm", backend="cupy")
@cached_launches
def rms_norm(F: Any, x: Any, w: Any, *, ndim: int, eps: float) -> Any:
    shape = (*x.shape[: x.ndim - ndim], *[1] * ndim)
    result = _normalize(x, w, None, *_rows(x, ndim), shape, eps, True)
    return result if result is NotImplemented else (result[0], result[2])


@override("layer_norm_backward", backend="cupy")
@cached_launches
def layer_norm_backward(
    F: Any, g: Any, x: Any, w: Any, mean: Any, rstd: Any, *, ndim: int, eps: float, needs: Any
) -> Any:
    return _gradients(g, x, w, mean, rstd, ndim, (*needs, False), False)


@override("rms_norm_backward", backend="cupy")
@cached_launches
def rms_norm_backward(
    F: Any, g: Any, x: Any, w: Any, scale: Any, *, ndim: int, eps: float, needs: Any
) -> Any:
    result = _gradients(g, x, w, scale, scale, ndim, (*needs, False), True)
    return result if result is NotImplemented else result[:2]


def _rows(x: Any, ndim: int) -> tuple[int, int]:
    split = x.ndim - ndim
    return prod(x.shape[:split]), prod(x.shape[split:])


def _normalize(
    x: Any, w: Any, b: Any, rows: int, columns: int, shape: tuple, eps: float, rms: bool
) -> Any:
    """y, mean (None for RMS) and rstd, the latter in `shape`."""
    kind: Any = ACCUMULATORS.get(x.dtype)
    weights = None if kind is None or not x.size else weights_of(x, w, b)
    if weights is None:
        return NotImplemented
    w, b, weight_kind = weights
    x = cupy.ascontiguousarray(x)
    y = cupy.empty(x.shape, x.dtype)
    mean = None if rms else cupy.empty(shape, kind)
    rstd = cupy.empty(shape, kind)
    width = vector(columns, x, w, b)
    plan = forward_plan(columns // width, width, 32 if kind.itemsize == 4 else 16)
    if plan is None:
        kernel = _forward_long[x.dtype, weight_kind, kind, width, rms]
        kernel(rows, 512, x, w, b, columns, eps, y, mean, rstd)
        return y, mean, rstd
    lanes, items = plan
    at_once, threads = _shape(lanes)
    kernel = _forward[x.dtype, weight_kind, kind, width, lanes, items, rms]
    kernel(ceil_div(rows, at_once), threads, x, w, b, rows, columns, eps, y, mean, rstd)
    return y, mean, rstd


def _shape(lanes: int) -> tuple[int, int]:
    """Rows a block works on at once, and its threads."""
    return (256 // lanes, 256) if lanes <= 32 else (1, lanes)


def forward_plan(packs: int, width: int, most: int) -> tuple[int, int] | None:
    """Threads for a row and packs for a thread, of `most` values; None: the row is too long."""
    if packs <= 32:
        return power_above(packs), 1
    for lanes in (32, 64, 128, 256, 512):
        items = ceil_div(packs, lanes)
        if items <= 4:
            return lanes, items
    if items > 8:
        items = ceil_div(items, 4) * 4
    return (lanes, items) if items * width <= most else None


def backward_plan(packs: int, width: int, most: int) -> tuple[int, int] | None:
    """Threads for a row and packs for a thread, of `most` values; None: the row is too long."""
    if packs <= 32:
        return power_above(packs), 1
    for limit in (256, 512):
        for items in (1, 2, 4, 8):
            lanes = ceil_div(ceil_div(packs, items), 32) * 32
            if lanes <= limit and items * width <= most:
                return lanes, items
    return None


def _gradients(
    g: Any, x: Any, w: Any, mean: Any, rstd: Any, ndim: int, needs: Any, rms: bool
) -> Any:
    """gx, gw and gb, those that `needs` asks for."""
    kind = ACCUMULATORS.get(x.dtype)
    if kind is None or not x.size or g.dtype != x.dtype or mean is None or rstd is None:
        return NotImplemented
    weights = weights_of(x, w, None)
    if weights is None:
        return NotImplemented
    w, _, weight_kind = weights
    rows, columns = _rows(x, ndim)
    shape = x.shape[x.ndim - ndim :]
    g, x = cupy.ascontiguousarray(g), cupy.ascontiguousarray(x)
    mean = None if rms else statistics(mean, kind)
    rstd = statistics(rstd, kind)
    gx = cupy.empty(x.shape, x.dtype) if needs[0] else None
    kinds = 1 if rms else 2
    has_gradients = bool(needs[1] or needs[2])
    width = vector(columns, x, g, w)
    plan = backward_plan(columns // width, width, 8 if kind.itemsize == 4 else 4)
    if plan is None:
        if gx is not None:
            kernel = _backward_long[x.dtype, weight_kind, kind, width, rms]
            kernel(rows, 512, g, x, w, mean, rstd, columns, gx)
        if has_gradients:
            tiles = ceil_div(columns, 32 * width)
            parts = min(ceil_div(rows, 8), max(1, ceil_div(8 * here().processors, tiles)))
            partials = cupy.empty((parts, kinds, columns), kind)
            kernel = _columns[x.dtype, kind, width, rms]
            kernel(tiles * parts, (32, 8), g, x, mean, rstd, rows, columns, parts, partials)
    elif gx is not None or has_gradients:
        lanes, items = plan
        at_once, threads = _shape(lanes)
        parts = min(ceil_div(rows, at_once), here().processors * max(1, 1024 // threads))
        if not has_gradients:  # nothing to be kept from row to row
            parts = min(ceil_div(rows, at_once), 16 * parts)
        partials = cupy.empty((parts, kinds, columns), kind) if has_gradients else None
        shared = at_once * kinds * columns * kind.itemsize if has_gradients and at_once > 1 else 0
        kernel = _backward[x.dtype, weight_kind, kind, width, lanes, items, rms, has_gradients]
        kernel(parts, threads, g, x, w, mean, rstd, rows, columns, gx, partials, shared=shared)
    if not has_gradients:
        return gx, None, None
    gw = cupy.empty(shape, weight_kind) if needs[1] else None
    gb = cupy.empty(shape, weight_kind) if needs[2] else None
    column_sums(partials, gw, gb)
    return gx, gw, gb


def column_sums(partials: Any, gw: Any, gb: Any) -> None:
    """Sum `partials`, (parts, kinds, columns), over the parts into gw and gb, or one of them."""
    parts, kinds, columns = partials.shape
    out = (gb if gw is None else gw).dtype
    kernel = _weights[partials.dtype, out]
    kernel(ceil_div(kinds * columns, 32), (32, 32), partials, parts, kinds, columns, gw, gb)

"""Batch norm by the kernels of `batch_norm.cu`."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.arrays import (
    ACCUMULATORS,
    ceil_div,
    empty_last,
    is_dense_last,
    power_above,
)
from tensorflow_lite_clone.backends.cupy.device_facts import here
from tensorflow_lite_clone.backends.cupy.fusion.deferred import aware, chain, deferring
from tensorflow_lite_clone.backends.cupy.fusion.formula import formula
from tensorflow_lite_clone.backends.cupy.kernel import Kernel, unknown
from tensorflow_lite_clone.backends.cupy.launch_cache import cached_launches
from tensorflow_lite_clone.backends.cupy.norms import (
    statistics,
    vector,
    weights_of,
)
from tensorflow_lite_clone.dispatch.table import override

_FILE = "batch_norm.cu"
_FLOAT32 = np.dtype(np.float32)
_moments = Kernel(_FILE, "batch_norm_forward_moments", params=("T", "R", "A", "VEC", "LAST"))
_finish = Kernel(_FILE, "batch_norm_forward_finish", params=("R", "A"))
_forward = Kernel(_FILE, "batch_norm_forward", params=("T", "W", "M", "A", "VEC", "LAST"))
_sums = Kernel(_FILE, "batch_norm_backward_sums", params=("T", "W", "A", "VEC", "LAST"))
_finish_sums = Kernel(_FILE, "batch_norm_backward_finish", params=("W", "A"))
_backward = Kernel(_FILE, "batch_norm_backward", params=("T", "W", "A", "VEC", "LAST", "TRAINING"))


class _Walk:
    """How threads walk over an (N, C, ...) array in memory; one for arrays that are alike."""

    def __init__(self, shape: tuple[int, ...], last: bool, width: int) -> None:
        self.channels = channels = shape[1]
        plane = prod(shape[2:])
        self.width, self.last = width, last  # elements of a pack; whether channels are adjacent
        if last:
            packs = channels // width
            across = min(32, power_above(packs))
            self.packs, self.length = shape[0] * plane, 1  # rows; packs of a plane
            self.tiles = ceil_div(packs, across)  # blocks side by side, for one part of all values
            self.block = (across, 256 // across)
        else:
            self.length = plane // width
            self.packs = shape[0] * self.length  # of a channel
            self.tiles, self.block = channels, (256, 1)
        self._parts: dict[tuple[int, int, int], tuple[int, int]] = {}

    def parts(self, blocks: int, least: int = 8) -> tuple[int, int]:
        """Into how many parts to cut for `blocks` per multiprocessor, and the packs of each.

        A thread gets `least` packs or more.
        """
        key = here().processors, blocks, least
        try:
            return self._parts[key]
        except KeyError:
            steps = ceil_div(self.packs, least * (self.block[1] if self.last else 256))
            parts = max(1, min(blocks * key[0] // self.tiles, steps))
            chunk = ceil_div(self.packs, parts)
            made = self._parts[key] = ceil_div(self.packs, chunk), chunk
            return made


_walk = lru_cache(maxsize=1024)(_Walk)


def _is_last(x: Any) -> bool:
    """Whether channels lie next to each other; other layouts are served as contiguous ones."""
    return x.size == x.shape[0] * x.shape[1] or (not x.flags.c_contiguous and is_dense_last(x))


def _laid(x: Any, last: bool) -> Any:
    """`x` in the layout the kernels read, copied if need be."""
    if last and is_dense_last(x):
        return x
    return cupy.ascontiguousarray(cupy.moveaxis(x, 1, -1) if last else x)


def _by_channel(value: Any, axes: int) -> Any:
    """Per-channel values as an array that broadcasts over (N, C, ...)."""
    return value.reshape((1, -1) + (1,) * (axes - 2))


def _normal_form(F: Any, x: Any, mean: Any, variance: Any, w: Any, b: Any, *, eps: float) -> Any:
    scale = F.rsqrt(variance + eps)
    y = (x - mean) * (scale if w is None else scale * w)
    return y if b is None else y + b


def _gradient_form(
    F: Any, g: Any, x: Any, w: Any, mean: Any, variance: Any, sums: Any, products: Any, *,
    eps: float, share: float,
) -> Any:  # fmt: skip
    r = F.rsqrt(variance + eps)
    gx = (g - sums * share - (x - mean) * (r * r * products * share)) * r
    return gx if w is None else gx * w


def _slopes(F: Any, g: Any, x: Any, mean: Any) -> Any:
    return g, g * (x - mean)


_normalized = deferring(formula("batch_norm", _normal_form, None, like=0))
_input_gradient = deferring(formula("batch_norm_backward", _gradient_form, None, like=0))


def _empty_like(x: Any, last: bool) -> Any:
    return empty_last(x.shape, x.dtype) if last else cupy.empty(x.shape, x.dtype)


def _rows(x: Any, last: bool, *arrays: Any) -> _Walk | None:
    """The walk over `x` and the laid out `arrays`; None when there are too many values."""
    shape = x.shape
    channels = shape[1]
    if x.size // channels >= 1 << 31 or channels >= 1 << 31:
        return None
    return _walk(shape, last, vector(channels if last else prod(shape[2:]), *arrays))


def _kind(x: Any, values: Any) -> Any:
    """The common dtype of statistics that the kernels serve beside `x`, else None."""
    kinds = {value.dtype for value in values if value is not None}
    if not kinds:
        return ACCUMULATORS[x.dtype]
    kind = kinds.pop()
    return kind if not kinds and kind in (x.dtype, ACCUMULATORS[x.dtype]) else None


@override("batch_norm", backend="cupy")
@aware
@cached_launches
def batch_norm(
    F: Any,
    x: Any,
    w: Any,
    b: Any,
    running_mean: Any,
    running_var: Any,
    *,
    momentum: float,
    eps: float,
) -> Any:
    kind = ACCUMULATORS.get(x.dtype)
    if kind is None or not x.size:
        return NotImplemented
    moments = chain.moments(x)
    touched = [value for value in (x, w, b, running_mean, running_var) if value is not None]
    chain.flush(touched if kind == _FLOAT32 else None)
    weights, running_kind = weights_of(x, w, b), _kind(x, (running_mean, running_var))
    last = _is_last(x)
    physical = _laid(x, last)
    rows = _rows(x, last, physical)
    if weights is None or running_kind is None or rows is None:
        return NotImplemented
    running = [
        None if value is None else cupy.ascontiguousarray(value)
        for value in (running_mean, running_var)
    ]
    for value in running:
        if value is not None:
            chain.wrote(value)
    channels, count = x.shape[1], x.size // x.shape[1]
    mean, variance = cupy.empty(channels, kind), cupy.empty(channels, kind)
    unbiased = count / max(count - 1, 1)
    results = (unbiased, momentum, *running, mean, variance)
    if moments is None:
        parts, chunk = rows.parts(3 if last else 4)
        moments = cupy.empty((3, parts, channels), kind) if parts > 1 else None
        _moments[x.dtype, running_kind, kind, rows.width, last](
            rows.tiles * parts, rows.block,
            physical, channels, rows.packs, rows.length, parts, chunk, *results, moments,
        )  # fmt: skip
    if moments is not None:
        finish = _finish[running_kind, kind]
        finish(ceil_div(channels, 4), 512, moments, channels, moments.shape[1], *results)
    y = _normalize(x, physical, weights, mean, variance, eps, rows, kind)
    if running[0] is running_mean and running[1] is running_var:
        return y, mean, variance  # what was given is written
    unknown()  # CuPy has copied into memory that the kernels read and write
    return y, mean, variance, *[value for value in running if value is not None]


@override("batch_norm_eval", backend="cupy")
@cached_launches
def batch_norm_eval(F: Any, x: Any, w: Any, b: Any, mean: Any, variance: Any, *, eps: float) -> Any:
    kind = ACCUMULATORS.get(x.dtype)
    if kind is None or not x.size or _kind(x, (mean, variance)) is None:
        return NotImplemented
    weights = weights_of(x, w, b)
    last = _is_last(x)
    physical = _laid(x, last)
    rows = _rows(x, last, physical)
    if weights is None or rows is None:
        return NotImplemented
    mean, variance = cupy.ascontiguousarray(mean), cupy.ascontiguousarray(variance)
    return _normalize(x, physical, weights, mean, variance, eps, rows, kind)


def _normalize(
    x: Any,
    physical: Any,
    weights: Any,
    mean: Any,
    variance: Any,
    eps: float,
    rows: _Walk,
    kind: Any,
) -> Any:
    w, b, weight_kind = weights
    if chain.on and kind == _FLOAT32:
        channels = [None if v is None else _by_channel(v, x.ndim) for v in (mean, variance, w, b)]
        return _normalized(x, *channels, eps=eps)
    y = _empty_like(x, rows.last)
    parts, chunk = rows.parts(16, 4)
    kernel = _forward[x.dtype, weight_kind, mean.dtype, kind, rows.width, rows.last]
    kernel(
        rows.tiles * parts, rows.block,
        physical, w, b, mean, variance, eps, rows.channels, rows.packs, rows.length, parts, chunk,
        y,
    )  # fmt: skip
    return y


@override("batch_norm_backward", backend="cupy")
@aware
@cached_launches
def batch_norm_backward(
    F: Any, g: Any, x: Any, w: Any, mean: Any, variance: Any, *, eps: float, needs: Any
) -> Any:
    if mean is None or variance is None:
        return NotImplemented
    return _gradients(g, x, w, mean, variance, eps, needs, True)


@override("batch_norm_eval_backward", backend="cupy")
@cached_launches
def batch_norm_eval_backward(
    F: Any, g: Any, x: Any, w: Any, mean: Any, variance: Any, *, eps: float, needs: Any
) -> Any:
    return _gradients(g, x, w, mean, variance, eps, needs, False)


def _partial_sums(g: Any, x: Any, mean: Any, w: Any, variance: Any) -> Any:
    """The sums as `batch_norm_backward_sums` gives them, g as it is computed; None if it cannot."""
    others = [value for value in (w, mean, variance) if value is not None]
    supported = all([value.dtype == _FLOAT32 and value.flags.c_contiguous for value in others])
    if not chain.on or not supported:
        return None
    arrays = g, x, _by_channel(mean, x.ndim)
    return chain.sums("batch_norm_sums", _slopes, arrays, (w, variance))


def _gradients(
    g: Any, x: Any, w: Any, mean: Any, variance: Any, eps: float, needs: Any, training: bool
) -> Any:
    """gx, gw and gb, those that `needs` asks for."""
    kind = ACCUMULATORS.get(x.dtype)
    if kind is None or not x.size or g.dtype != x.dtype:
        return NotImplemented
    last, partials = _is_last(x), None
    if training and any(needs) and last and is_dense_last(x) and is_dense_last(g):
        partials = _partial_sums(g, x, mean, w, variance)
    if partials is None:
        chain.flush()
    weights = weights_of(x, w, None)
    laid_g, laid_x = _laid(g, last), _laid(x, last)
    rows = _rows(x, last, laid_g, laid_x)
    if weights is None or rows is None:
        return NotImplemented
    w, _, weight_kind = weights
    mean, variance = statistics(mean, kind), statistics(variance, kind)
    channels = x.shape[1]
    sums = cupy.empty((2, channels), kind) if training and needs[0] else None
    gw = cupy.empty(channels, weight_kind) if needs[1] else None
    gb = cupy.empty(channels, weight_kind) if needs[2] else None
    walk = (channels, rows.packs, rows.length)
    if partials is not None:
        with chain.beside():
            _finish_sums[weight_kind, kind](
                channels, 128, partials, variance, eps, channels, partials.shape[1], sums, gw, gb
            )
    elif sums is not None or gw is not None or gb is not None:
        parts, chunk = rows.parts(2 if last else 3)
        partials = cupy.empty((channels, parts, 2), kind) if parts > 1 else None
        kernel = _sums[x.dtype, weight_kind, kind, rows.width, last]
        kernel(
            rows.tiles * parts, rows.block,
            laid_g, laid_x, mean, variance, eps, *walk, parts, chunk, sums, gw, gb, partials,
        )  # fmt: skip
        if parts > 1:
            kernel = _finish_sums[weight_kind, kind]
            kernel(channels, 128, partials, variance, eps, channels, parts, sums, gw, gb)
    gx = None
    if sums is not None and chain.on and kind == _FLOAT32:
        channels_of = [
            None if v is None else _by_channel(v, x.ndim) for v in (w, mean, variance, *sums)
        ]
        gx = _input_gradient(g, x, *channels_of, eps=eps, share=channels / x.size)
    elif needs[0]:
        gx = _empty_like(x, last)
        parts, chunk = rows.parts(16, 4)
        kernel = _backward[x.dtype, weight_kind, kind, rows.width, last, training]
        kernel(
            rows.tiles * parts, rows.block,
            laid_g, laid_x, w, mean, variance, sums, eps, channels / x.size,
            *walk, parts, chunk, gx,
        )  # fmt: skip
    return gx, gw, gb

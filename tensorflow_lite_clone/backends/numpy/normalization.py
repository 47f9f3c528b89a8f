"""Layer, group and RMS norm on the CPU, a block of rows at a time."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy import small_inputs
from tensorflow_lite_clone.backends.numpy.blocks import ROW, broadcast_row, row_blocks
from tensorflow_lite_clone.backends.numpy.statistics import (
    combined,
    is_plain,
    row_dots,
    row_moments,
    row_sums,
    scaled,
)
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.backends.numpy.workspace import workspace
from tensorflow_lite_clone.dispatch.table import override


def _outer(column: Any, row: Any, out: Any) -> Any:
    """The products of a column's and a row's elements: BLAS writes them faster than loops.

    It is given a zero beside each, as NumPy calls no BLAS for a single column.
    """
    left = np.zeros((len(column), 2), out.dtype)
    left[:, :1] = column
    right = np.zeros((2, len(row)), out.dtype)
    right[0] = row
    return np.matmul(left, right, out)


def _plane(x: Any, ndim: int) -> Any:
    """x as a matrix whose rows are the last `ndim` dimensions."""
    return x.reshape(-1, prod(x.shape[x.ndim - ndim :]))


def _normalized(x: Any, mean: Any, rstd: Any, w: Any, b: Any, out: Any, buffer: Any) -> None:
    """((x - mean) * rstd) * w + b of rows: x * (rstd w) + (b - mean rstd w) of short ones.

    The latter only where the mean is no larger than a few deviations: else the sum cancels.
    """
    shift = mean * rstd
    size = x.shape[1]
    if size >= ROW or w is None or not np.all(np.abs(shift) <= 4):
        np.subtract(x, mean, out)
        np.multiply(out, rstd, out)
        if w is not None:
            broadcast_row(np.multiply, out, w, out)
        if b is not None:
            broadcast_row(np.add, out, b, out)
        return
    left = np.empty((len(x), 2), x.dtype)
    left[:, :1] = shift
    left[:, 1] = -1
    right = np.empty((2, size), x.dtype)
    right[0] = w
    right[1] = 0 if b is None else b
    np.matmul(left, right, out)
    np.multiply(x, _outer(rstd, w, buffer), buffer)
    np.subtract(buffer, out, out)


@override("layer_norm", backend="numpy")
def layer_norm(F: Any, x: Any, w: Any, b: Any, *, ndim: int, eps: float) -> Any:
    if x.size < tuning.small_normalization:
        return small_inputs.layer_norm(x, w, b, ndim, eps)
    if not is_plain(x, w, b):
        return NotImplemented
    rows = _plane(x, ndim)
    count, size = rows.shape
    out = np.empty(x.shape, x.dtype)
    results = out.reshape(count, size)
    means, rstds = np.empty((count, 1), x.dtype), np.empty((count, 1), x.dtype)
    w = None if w is None else w.reshape(size)
    b = None if b is None else b.reshape(size)

    def work(start: int, stop: int) -> None:
        part, y = rows[start:stop], results[start:stop]
        with workspace(part.size, x.dtype) as memory:
            buffer = memory.reshape(part.shape)
            mean, rstd = row_moments(part, eps, buffer)
            _normalized(part, mean, rstd, w, b, y, buffer)
        means[start:stop], rstds[start:stop] = mean, rstd

    row_blocks(work, count, size, products=True)
    return out, means, rstds


class _Sums:
    """Sums over rows, a block at a time: added up in the blocks' order, whoever did which."""

    def __init__(self) -> None:
        self.parts: dict[int, Any] = {}

    def total(self) -> Any:
        parts = [part for _, part in sorted(self.parts.items())]
        return parts[0] if len(parts) == 1 else np.add.reduce(parts, 0)


def _means_in_deviations(g: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
    """Means over standard deviations; None where a gradient is left to the generic form."""
    if x.size < tuning.small_normalization or mean is None or not is_plain(x, g, w):
        return None
    means = mean * rstd
    # Far from zero, sums of g x would lose too much, see `statistics`.
    return means if np.all(np.abs(means) <= 4) else None


@override("layer_norm_backward", backend="numpy")
def layer_norm_backward(
    F: Any, g: Any, x: Any, w: Any, mean: Any, rstd: Any, *, ndim: int, eps: float, needs: tuple
) -> Any:
    means = _means_in_deviations(g, x, w, mean, rstd)
    if means is None:
        return NotImplemented
    rows, gs = _plane(x, ndim), _plane(g, ndim)
    count, size = rows.shape
    gx = np.empty(x.shape, x.dtype) if needs[0] else None
    factor = np.ones(size, x.dtype) if w is None else w.reshape(size)
    sums = _Sums()

    def work(start: int, stop: int) -> None:
        x, g, r, m = rows[start:stop], gs[start:stop], rstd[start:stop], means[start:stop]
        with workspace(x.size, x.dtype) as memory:
            product = np.multiply(g, x, memory.reshape(x.shape))
            if needs[1] or needs[2]:
                part = sums.parts[start] = np.empty((2, size), x.dtype)
                np.subtract(np.dot(r[:, 0], product), np.dot(m[:, 0], g), part[0])
                np.dot(np.ones(len(x), x.dtype), g, part[1])
            if gx is None:
                return
            shift = np.dot(g, factor)[:, None] / size
            slope = r * (np.dot(product, factor)[:, None] / size) - m * shift
            y = gx.reshape(rows.shape)[start:stop]
            np.multiply(x, -(r * r * slope), y)
            np.add(y, r * (m * slope - shift), y)
            if size < ROW and w is not None:
                np.multiply(g, _outer(r, factor, product), product)
            else:
                np.multiply(g, r, product)
                if w is not None:
                    broadcast_row(np.multiply, product, factor, product)
            np.add(y, product, y)

    row_blocks(work, count, size, products=True)
    gw = gb = None
    if needs[1] or needs[2]:
        total = sums.total()
        shape = x.shape[x.ndim - ndim :]
        gw = total[0].reshape(shape).copy() if needs[1] else None
        gb = total[1].reshape(shape).copy() if needs[2] else None
    return gx, gw, gb


@override("rms_norm", backend="numpy")
def rms_norm(F: Any, x: Any, w: Any, *, ndim: int, eps: float) -> Any:
    if x.size < tuning.small_normalization or not is_plain(x, w):
        return NotImplemented
    rows = _plane(x, ndim)
    count, size = rows.shape
    out = np.empty(x.shape, x.dtype)
    results = out.reshape(count, size)
    scales = np.empty((count, 1), x.dtype)
    w = None if w is None else w.reshape(size)

    def work(start: int, stop: int) -> None:
        part, y, scale = rows[start:stop], results[start:stop], scales[start:stop]
        np.divide(row_dots(part, part, y)[:, None], size, scale)
        np.add(scale, eps, scale)
        np.sqrt(scale, scale)
        np.divide(1, scale, scale)
        if size < ROW and w is not None:
            np.multiply(part, _outer(scale, w, y), y)
            return
        np.multiply(part, scale, y)
        if w is not None:
            broadcast_row(np.multiply, y, w, y)

    row_blocks(work, count, size, products=True)
    return out, scales.reshape(*x.shape[: x.ndim - ndim], *(1,) * ndim)


@override("rms_norm_backward", backend="numpy")
def rms_norm_backward(
    F: Any, g: Any, x: Any, w: Any, scale: Any, *, ndim: int, eps: float, needs: tuple
) -> Any:
    if x.size < tuning.small_normalization or scale is None or not is_plain(x, g, w):
        return NotImplemented
    rows, gs = _plane(x, ndim), _plane(g, ndim)
    count, size = rows.shape
    scales = scale.reshape(count, 1)
    gx = np.empty(x.shape, x.dtype) if needs[0] else None
    factor = np.ones(size, x.dtype) if w is None else w.reshape(size)
    sums = _Sums()

    def work(start: int, stop: int) -> None:
        x, g, s = rows[start:stop], gs[start:stop], scales[start:stop]
        with workspace(x.size, x.dtype) as memory:
            product = np.multiply(g, x, memory.reshape(x.shape))
            if needs[1]:
                sums.parts[start] = np.dot(s[:, 0], product)
            if gx is None:
                return
            slope = np.dot(product, factor)[:, None] / size
            y = gx.reshape(rows.shape)[start:stop]
            np.multiply(x, -(s * s * s * slope), y)
            if size < ROW and w is not None:
                np.multiply(g, _outer(s, factor, product), product)
            else:
                np.multiply(g, s, product)
                if w is not None:
                    broadcast_row(np.multiply, product, factor, product)
            np.add(y, product, y)

    row_blocks(work, count, size, products=True)
    return gx, sums.total().reshape(w.shape) if needs[1] else None


def _samples(x: Any) -> Any:
    return x.reshape(x.shape[0], x.shape[1], prod(x.shape[2:]))


@override("group_norm", backend="numpy")
def group_norm(F: Any, x: Any, w: Any, b: Any, *, groups: int, eps: float) -> Any:
    if x.size < tuning.small_normalization or not is_plain(x, w, b):
        return NotImplemented
    n, channels = x.shape[:2]
    rows = x.reshape(n * groups, -1)
    count, size = rows.shape
    means, rstds = np.empty((count, 1), x.dtype), np.empty((count, 1), x.dtype)

    def work(start: int, stop: int) -> None:
        part = rows[start:stop]
        with workspace(part.size, x.dtype) as memory:
            means[start:stop], rstds[start:stop] = row_moments(
                part, eps, memory.reshape(part.shape)
            )

    row_blocks(work, count, size, products=True)
    each = channels // groups
    scale = np.repeat(rstds.reshape(n, groups), each, 1)
    shift = np.repeat((means * rstds).reshape(n, groups), each, 1)
    if w is not None:
        scale, shift = scale * w, shift * w
    shift = -shift if b is None else b - shift
    return scaled(_samples(x), scale, shift, x.shape), means, rstds


@override("group_norm_backward", backend="numpy")
def group_norm_backward(
    F: Any, g: Any, x: Any, w: Any, mean: Any, rstd: Any, *, groups: int, eps: float, needs: tuple
) -> Any:
    means = _means_in_deviations(g, x, w, mean, rstd)
    if means is None:
        return NotImplemented
    n, channels = x.shape[:2]
    xs, gs = _samples(x), _samples(g)
    size = xs.shape[2]
    plane = (n * channels, size)
    sums, dots = np.empty(plane[0], x.dtype), np.empty(plane[0], x.dtype)
    x_rows, g_rows = xs.reshape(plane), gs.reshape(plane)

    def work(start: int, stop: int) -> None:
        x, g = x_rows[start:stop], g_rows[start:stop]
        sums[start:stop] = row_sums(g)
        with workspace(x.size, x.dtype) as memory:
            dots[start:stop] = row_dots(g, x, memory.reshape(x.shape))

    row_blocks(work, *plane, products=True)
    each = channels // groups
    r = np.repeat(rstd.reshape(n, groups), each, 1)
    m = np.repeat(means.reshape(n, groups), each, 1)
    gb = sums.reshape(n, channels)
    gw = r * dots.reshape(n, channels) - m * gb
    gx = None
    if needs[0]:
        shift, slope = (gb, gw) if w is None else (gb * w, gw * w)
        shift, slope = [
            np.repeat(np.add.reduce(a.reshape(n, groups, each), 2), each, 1) / (each * size)
            for a in (shift, slope)
        ]
        a = r if w is None else r * w
        gx = combined(gs, xs, a, -(r * r * slope), r * (m * slope - shift), x.shape)
    return (
        gx,
        np.add.reduce(gw, 0) if needs[1] else None,
        np.add.reduce(gb, 0) if needs[2] else None,
    )

"""Convolutions on the CPU: windows are copied into columns, and BLAS multiplies them.

The columns of a few samples at a time stay in the cache, where the copy costs a fifth of the
product; those of a whole batch would not fit. With many windows per sample there is one product
per sample, which leaves its result in place ("apart"); with few the samples of a block share one
product, which is then worth a transposed copy of its result ("merged"). Where every channel is
its own group there is nothing to multiply as matrices: places of the window are summed one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.kit_index import as_strided
from tensorflow_lite_clone.core.shape import contiguous_strides
from tensorflow_lite_clone.core.windows import Ints, padded_size, window_slices, windows_size
from tensorflow_lite_clone.dispatch.table import override

_MERGE_BELOW = 256  # windows per sample
_APART_BYTES, _MERGED_BYTES, _DEPTHWISE_BYTES = 1 << 20, 1 << 22, 1 << 19
_f32 = np.dtype(np.float32)


def _serves_blas(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute two-byte floats in float32; leave integers to the generic op."""

    def wide(F: Any, *arrays: Any, **parameters: Any) -> Any:
        dtype = arrays[0].dtype
        if dtype.char in "fdFD":
            return function(*arrays, **parameters)
        if dtype.itemsize != 2 or dtype.kind in "iu":
            return NotImplemented
        arrays = tuple([None if array is None else array.astype(_f32) for array in arrays])
        return function(*arrays, **parameters).astype(dtype)

    return wide


def _blocks(samples: int, sample_bytes: int, budget: int) -> Iterator[slice]:
    """Divide samples into blocks of about `budget` bytes."""
    step = max(1, min(samples, budget // max(sample_bytes, 1)))
    for start in range(0, samples, step):
        yield slice(start, min(start + step, samples))


class _Padded:
    """Blocks of `x` inside zeros, in one buffer whose rim stays zero."""

    def __init__(self, x: np.ndarray, padding: Ints, total: Ints) -> None:
        self.x = x
        self.needed = any(padding)
        self.padding, self.total = padding, total
        self.buffer: np.ndarray | None = None

    def __getitem__(self, block: slice) -> np.ndarray:
        x = self.x[block]
        if not self.needed:
            return x
        if self.buffer is None:
            self.buffer = np.zeros((*x.shape[:2], *self.total), x.dtype)
        result = self.buffer[: len(x)]
        inside = tuple([slice(p, p + n) for p, n in zip(self.padding, x.shape[2:])])
        result[(..., *inside)] = x
        return result


def _columns(
    x: np.ndarray,
    count: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
    merged: bool,
) -> Iterator[tuple[slice, np.ndarray]]:
    """Per block of samples (m of them) its columns, in a buffer that the next block reuses.

    Apart: (m, groups, rows, windows); merged: (groups, rows, m * windows).
    """
    channels, windows = x.shape[1], math.prod(count)
    rows = channels // groups * math.prod(kernel)
    if math.prod(kernel) == 1 and not any(padding) and max(stride) == 1 and not merged:
        yield slice(0, len(x)), x.reshape(len(x), groups, rows, windows)
        return
    padded = _Padded(x, padding, tuple([n + 2 * p for n, p in zip(x.shape[2:], padding)]))
    ndim = len(count)
    order = (1, *range(2, 2 + ndim), 0, *range(2 + ndim, 2 + 2 * ndim))
    work = None
    budget = _MERGED_BYTES if merged else _APART_BYTES
    for block in _blocks(len(x), channels * math.prod(kernel) * windows * x.itemsize, budget):
        part = padded[block]
        m = len(part)
        steps = [step // x.itemsize for step in part.strides]
        inner = [step * d for step, d in zip(steps[2:], dilation)]
        outer = [step * s for step, s in zip(steps[2:], stride)]
        view = as_strided(part, (m, channels, *kernel, *count), (*steps[:2], *inner, *outer))
        if work is None:
            work = np.empty(view.size, x.dtype)
        flat = work[: view.size]
        if merged:
            view = view.transpose(order)
            np.copyto(flat.reshape(view.shape), view)
            yield block, flat.reshape(groups, rows, m * windows)
        else:
            np.copyto(flat.reshape(view.shape), view)
            yield block, flat.reshape(m, groups, rows, windows)


def _merged_samples(g: np.ndarray, groups: int) -> np.ndarray:
    """(m, o, *count) as (groups, o / groups, m * windows)."""
    m, o = g.shape[:2]
    return g.swapaxes(0, 1).reshape(groups, o // groups, m * math.prod(g.shape[2:]))


def _is_depthwise(w: np.ndarray, groups: int) -> bool:
    return groups > 1 and w.shape[0] == groups and w.shape[1] == 1


@override("conv", backend="numpy")
@_serves_blas
def conv(
    x: np.ndarray,
    w: np.ndarray,
    b: np.ndarray | None,
    *,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> np.ndarray:
    n, o, kernel = len(x), w.shape[0], w.shape[2:]
    count = windows_size(x.shape[2:], kernel, stride, padding, dilation)
    y = np.empty((n, o, *count), x.dtype)
    if not y.size:
        return y
    if _is_depthwise(w, groups):
        _depthwise(y, x, w, stride, padding, dilation)
        if b is not None:
            y += b.reshape(-1, *(1,) * len(count))
        return y
    windows = math.prod(count)
    weight = w.reshape(groups, o // groups, w.shape[1] * math.prod(kernel))
    bias = None if b is None else b.reshape(groups, o // groups, 1)
    merged = windows < _MERGE_BELOW
    for block, columns in _columns(x, count, kernel, stride, padding, dilation, groups, merged):
        part = y[block]
        if merged:
            product = np.matmul(weight, columns)
            if bias is not None:
                product += bias
            part[...] = product.reshape(o, len(part), *count).swapaxes(0, 1)
        else:
            product = part.reshape(len(part), groups, o // groups, windows)
            np.matmul(weight, columns, out=product)
            if bias is not None:
                product += bias
    return y


@override("conv_backward_weight", backend="numpy")
@_serves_blas
def conv_backward_weight(
    g: np.ndarray,
    x: np.ndarray,
    *,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> np.ndarray:
    o, count = g.shape[1], g.shape[2:]
    channels = x.shape[1] // groups
    if groups > 1 and channels == 1 and o == groups:
        return _depthwise_weight(g, x, kernel, stride, padding, dilation)
    windows = math.prod(count)
    gw = np.zeros((groups, o // groups, channels * math.prod(kernel)), x.dtype)
    merged = windows < _MERGE_BELOW
    for block, columns in _columns(x, count, kernel, stride, padding, dilation, groups, merged):
        part = g[block]
        if merged:
            gw += np.matmul(_merged_samples(part, groups), columns.swapaxes(-1, -2))
        else:
            rows = part.reshape(len(part), groups, o // groups, windows)
            gw += _summed_products(rows, columns.swapaxes(-1, -2))
    return gw.reshape(o, channels, *kernel)


def _summed_products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The sum of ``x[i] @ y[i]``."""
    if len(x) == 1:
        return np.matmul(x[0], y[0])
    return np.add.reduce(np.matmul(x, y), 0)


@override("conv_backward_input", backend="numpy")
@_serves_blas
def conv_backward_input(
    g: np.ndarray,
    w: np.ndarray,
    *,
    size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> np.ndarray:
    n, o, kernel, count = len(g), g.shape[1], w.shape[2:], g.shape[2:]
    channels = w.shape[1] * groups
    gx = np.empty((n, channels, *size), g.dtype)
    if not gx.size:
        return gx
    if not g.size:
        gx.fill(0)
        return gx
    if _is_depthwise(w, groups):
        _depthwise_input(gx, g, w, stride, padding, dilation)
        return gx
    margins = tuple([d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding)])
    if max(stride) == 1 and min(margins) >= 0 and o < 2 * channels and max(kernel) > 1:
        # A convolution with the mirrored kernel copies o columns where adding up windows, which
        # is slower by the element, writes c of them.
        mirror = (slice(None),) * 3 + (slice(None, None, -1),) * len(kernel)
        flipped = w.reshape(groups, o // groups, w.shape[1], *kernel)[mirror].swapaxes(1, 2)
        flipped = flipped.reshape(channels, o // groups, *kernel)
        room = tuple([c + 2 * m - d * (k - 1) for c, m, d, k in
                      zip(count, margins, dilation, kernel)])  # fmt: skip
        if room == size:
            return conv(None, g, flipped, None, stride=stride, padding=margins, dilation=dilation,
                        groups=groups)  # fmt: skip
    windows = math.prod(count)
    rows = w.shape[1] * math.prod(kernel)
    weight = w.reshape(groups, o // groups, rows).swapaxes(1, 2)
    if math.prod(kernel) == 1 and not any(padding) and max(stride) == 1:
        grouped = g.reshape(n, groups, o // groups, windows)
        np.matmul(weight, grouped, out=gx.reshape(n, groups, rows, windows))
        return gx
    merged = windows < _MERGE_BELOW
    fold = _Folder(gx, count, kernel, stride, padding, dilation)
    budget = _MERGED_BYTES if merged else _APART_BYTES
    for block in _blocks(n, groups * rows * windows * g.itemsize, budget):
        part = g[block]
        m = len(part)
        if merged:
            columns = np.matmul(weight, _merged_samples(part, groups))
            view = columns.reshape(channels, *kernel, m, *count)
            fold(block, lambda place, view=view: view[(slice(None), *place)].swapaxes(0, 1))
        else:
            columns = np.matmul(weight, part.reshape(m, groups, o // groups, windows))
            view = columns.reshape(m, channels, *kernel, *count)
            fold(block, lambda place, view=view: view[(slice(None), slice(None), *place)])
    return gx


class _Folder:
    """Adds windows up into `gx`, block by block."""

    def __init__(
        self, gx: np.ndarray, count: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
    ) -> None:
        size = gx.shape[2:]
        covered = padded_size(count, kernel, stride, dilation)
        self.gx = gx
        self.total = tuple([max(c, n + 2 * p) for c, n, p in zip(covered, size, padding)])
        self.inside = tuple([slice(p, p + n) for p, n in zip(padding, size)])
        self.direct = self.total == size
        self.places = list(window_slices(kernel, count, stride, dilation))
        self.buffer: np.ndarray | None = None

    def __call__(self, block: slice, windows_at: Callable[[Ints], np.ndarray]) -> None:
        part = self.gx[block]
        if self.direct:
            total = part
        else:
            if self.buffer is None:
                self.buffer = np.empty((*part.shape[:2], *self.total), part.dtype)
            total = self.buffer[: len(part)]
        total.fill(0)
        for place, slices in self.places:
            total[(..., *slices)] += windows_at(place)
        if not self.direct:
            part[...] = total[(..., *self.inside)]


def _depthwise(
    y: np.ndarray, x: np.ndarray, w: np.ndarray, stride: Ints, padding: Ints, dilation: Ints
) -> None:
    padded = _Padded(x, padding, tuple([n + 2 * p for n, p in zip(x.shape[2:], padding)]))
    places = list(_factors(w, y.shape[2:], stride, dilation))
    terms = None
    for block in _blocks(len(x), y[0].nbytes, _DEPTHWISE_BYTES):
        part, total = padded[block], y[block]
        if terms is None:
            terms = np.empty_like(total)
        term = terms[: len(total)]
        total.fill(0)
        for slices, factor in places:
            np.multiply(part[(..., *slices)], factor, out=term)
            total += term


def _factors(
    w: np.ndarray, count: Ints, stride: Ints, dilation: Ints
) -> Iterator[tuple[tuple[slice, ...], np.ndarray]]:
    """Per place in a depthwise window: what it sees of the input, and a factor per channel."""
    for place, slices in window_slices(w.shape[2:], count, stride, dilation):
        yield slices, w[(slice(None), 0, *place)].reshape(-1, *(1,) * len(count))


def _depthwise_input(
    gx: np.ndarray, g: np.ndarray, w: np.ndarray, stride: Ints, padding: Ints, dilation: Ints
) -> None:
    count, kernel = g.shape[2:], w.shape[2:]
    fold = _Folder(gx, count, kernel, stride, padding, dilation)
    factors = {
        place: w[(slice(None), 0, *place)].reshape(-1, *(1,) * len(count))
        for place in np.ndindex(*kernel)
    }
    terms = None
    for block in _blocks(len(g), g[0].nbytes, _DEPTHWISE_BYTES):
        part = g[block]
        if terms is None:
            terms = np.empty_like(part)
        term = terms[: len(part)]
        fold(
            block,
            lambda place, part=part, term=term: np.multiply(part, factors[place], out=term),
        )


def _depthwise_weight(
    g: np.ndarray, x: np.ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> np.ndarray:
    count = g.shape[2:]
    gw = np.zeros((g.shape[1], 1, *kernel), g.dtype)
    blocks = _blocks(len(g), max(g[:1].nbytes, 1), _DEPTHWISE_BYTES)
    total = tuple([n + 2 * p for n, p in zip(x.shape[2:], padding)])
    padded = _Padded(x, padding, total)
    if max(stride) == 1 and g.size:
        # Between lines of the padded width, a place of the window sees the whole image shifted:
        # its gradient is one scalar product, for which what is too much of g is zero.
        steps = contiguous_strides(total)
        length = sum([(c - 1) * step for c, step in zip(count, steps)]) + 1
        wide = None
        for block in blocks:
            part = np.ascontiguousarray(padded[block])
            rows = part.reshape(*part.shape[:2], -1)
            if wide is None:
                wide = np.zeros_like(part)
            upstream = wide[: len(part)]
            upstream[(..., *[slice(0, c) for c in count])] = g[block]
            inner = upstream.reshape(rows.shape)[..., :length]
            if g.dtype.kind == "c":
                inner = inner.conj()  # vecdot conjugates its first argument
            for place in np.ndindex(*kernel):
                start = sum([i * d * step for i, d, step in zip(place, dilation, steps)])
                sums = np.vecdot(inner, rows[..., start : start + length])
                gw[(slice(None), 0, *place)] += sums.sum(0)
        return gw
    places = list(window_slices(kernel, count, stride, dilation))
    axes = (0, *range(2, g.ndim))
    for block in blocks:
        part, upstream = padded[block], g[block]
        for place, slices in places:
            gw[(slice(None), 0, *place)] += (part[(..., *slices)] * upstream).sum(axes)
    return gw

"""Convolutions on the CPU: windows are copied into columns, and BLAS multiplies them.

Which way depends on the shapes: columns of a cacheful at a time (`convolution_im2col`), stacked
lines where there are few channels (`convolution_kn2row`), a quarter of the products where windows
are 3 x 3 and channels many (`convolution_winograd`), sums of products where every channel is its
own group (`convolution_depthwise`). The gradient of the input is a convolution of g again, one
for each remainder of places by the stride; or products are added up (`convolution_col2im`).
Threads share the samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.convolution_col2im import col2im_products
from tensorflow_lite_clone.backends.numpy.convolution_depthwise import (
    depthwise,
    depthwise_input,
    depthwise_weight,
)
from tensorflow_lite_clone.backends.numpy.convolution_im2col import (
    Windows,
    im2col,
    long_lines,
    pad_lines,
)
from tensorflow_lite_clone.backends.numpy.convolution_kn2row import (
    is_kn2row,
    kn2row,
    kn2row_weight,
)
from tensorflow_lite_clone.backends.numpy.convolution_winograd import (
    is_winograd,
    winograd,
    winograd_weight,
)
from tensorflow_lite_clone.backends.numpy.threads import parallel_for
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.backends.numpy.workspace import workspace
from tensorflow_lite_clone.backends.windows import Ints, windows_size
from tensorflow_lite_clone.dispatch.table import override

_all = slice(None)
_f32 = np.dtype(np.float32)
# Of how many windows per sample those of several samples make one product: where a product would
# be too small for its weight, and where its result, to be added up, would be large.
_MERGE_BELOW, _MERGE_SUMS_BELOW = 64, 512
_MANY_TIMES = 4  # as many channels
_LONG = 3  # times as many numbers in a window as there are results


def _with_blas_dtypes(function: Callable[..., Any]) -> Callable[..., Any]:
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


def _is_depthwise(w: Ints, groups: int) -> bool:
    return groups > 1 and w[0] == groups and w[1] == 1


def _is_long(w: Ints, groups: int) -> bool:
    return math.prod(w[1:]) * groups > _LONG * w[0]


def _least(w: Ints, windows: int) -> int:
    """How many samples are worth a thread: about 0.02 ns a multiplication, 0.3 ns a copy."""
    a_sample = windows * math.prod(w[1:]) * (w[0] * 0.02 + 0.3)
    return math.ceil(tuning.convolution_thread_ns / max(a_sample, 1))


def _share_samples(work: Callable[[slice], None], n: int, w: Ints, windows: int) -> None:
    parallel_for(lambda a, b: work(slice(a, b)), n, _least(w, windows), products=True)


@override("conv", backend="numpy")
@_with_blas_dtypes
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
    count = windows_size(x.shape[2:], w.shape[2:], stride, padding, dilation)
    if is_winograd(x.dtype, w.shape, len(x), count, padding, stride + dilation, groups):
        return winograd(x, w.swapaxes(0, 1), b, count, padding)
    long = _is_long(w.shape, groups)
    windows = Windows(count, w.shape[2:], stride, padding, dilation, long)
    y = np.empty((len(x), w.shape[0], *windows.counts), x.dtype)
    if not y.size:
        return y
    bias = None if b is None else b.reshape(-1, *(1,) * len(stride))

    def work(part: slice) -> None:
        if _is_depthwise(w.shape, groups):
            depthwise(y[part], x[part], w, stride, padding, dilation)
            if bias is not None:
                y[part] += bias
        else:
            _correlate(y[part], x[part], w, windows, groups, bias)

    _share_samples(work, len(x), w.shape, math.prod(windows.counts))
    return y


def _correlate(
    y: np.ndarray,
    x: np.ndarray,
    w: np.ndarray,
    windows: Windows,
    groups: int,
    bias: np.ndarray | None = None,
) -> None:
    """Write to y (n, o, *count) what w (o, c / groups, *kernel) makes of x (n, c, *space).

    `bias` (o, 1, ...) is added while the cache holds a block.
    """
    if groups == 1 and is_kn2row(len(w), x.shape[2:], windows):
        kn2row(y, x, w, windows, bias)
        return
    o, rows = len(w) // groups, math.prod(w.shape[1:])
    weight = w.reshape(groups, o, rows)
    sizes = long_lines(x.shape[2:], windows)
    merge = len(x) > 1 and math.prod(windows.counts) < _MERGE_BELOW
    direct = y.flags.c_contiguous and sizes == y.shape[3:] and not merge
    line = math.prod(sizes)
    valid = [slice(0, count) for count in y.shape[3:]]
    for block, part, matrix in im2col(x, windows, merge):
        m, length = len(matrix), matrix.shape[-1]
        lines = slice(part.start * line, part.stop * line)
        if direct:
            target = y[block].reshape(m, groups, o, -1)[..., lines]
            np.matmul(weight, matrix.reshape(m, groups, rows, length), out=target)
        else:
            with workspace(groups * o * m * length, y.dtype) as memory:
                if merge:
                    products = memory.reshape(groups, o, m * length)
                    np.matmul(weight, _merged(matrix, groups), out=products)
                    result = products.reshape(groups * o, m, -1, *sizes).swapaxes(0, 1)
                else:
                    separate = memory.reshape(m, groups, o, length)
                    np.matmul(weight, matrix.reshape(m, groups, rows, length), out=separate)
                    result = separate.reshape(m, groups * o, -1, *sizes)
                y[block, :, part] = result[(..., _all, *valid)]
        if bias is not None:
            y[block, :, part] += bias


def _merged(block: np.ndarray, groups: int) -> np.ndarray:
    """(m, c, places, windows) that lies as (c, places, m, windows): (groups, rows, m * windows)."""
    m, channels, places, windows = block.shape
    return block.transpose(1, 2, 0, 3).reshape(groups, channels // groups * places, m * windows)


@override("conv_backward_weight", backend="numpy")
@_with_blas_dtypes
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
    shape = (g.shape[1], x.shape[1] // groups, *kernel)
    count = g.shape[2:]
    if is_winograd(g.dtype, shape, len(g), count, padding, stride + dilation, groups, True):
        return winograd_weight(g, x, padding)
    long = _is_long(shape, groups)
    windows = Windows(g.shape[2:], kernel, stride, padding, dilation, long)
    sums: dict[int, np.ndarray] = {}  # by the first sample

    def work(part: slice) -> None:
        if _is_depthwise(shape, groups):
            result = depthwise_weight(g[part], x[part], kernel, stride, padding, dilation)
        elif groups == 1 and is_kn2row(g.shape[1], x.shape[2:], windows):
            result = kn2row_weight(g[part], x[part], windows)
        else:
            result = _summed(g[part], x[part], windows, groups)
        sums[part.start] = result

    _share_samples(work, len(g), shape, math.prod(windows.counts))
    first, *others = [sums[start] for start in sorted(sums)]
    for other in others:
        first += other
    return first.reshape(shape)


def _summed(g: np.ndarray, x: np.ndarray, windows: Windows, groups: int) -> np.ndarray:
    """The sum (groups, o / groups, rows) of the products of g (n, o, *count) with columns."""
    o, rows = g.shape[1] // groups, x.shape[1] // groups * math.prod(windows.kernel)
    sizes = long_lines(x.shape[2:], windows)
    merge = len(x) > 1 and math.prod(windows.counts) < _MERGE_SUMS_BELOW
    total = np.zeros((groups, o, rows), g.dtype)
    for block, part, matrix in im2col(x, windows, merge):
        m, length = len(matrix), matrix.shape[-1]
        upstream, images = g[block, :, part], (part.stop - part.start, *sizes)
        if merge:
            upstream = upstream.swapaxes(0, 1)
        with workspace(groups * o * m * length, g.dtype) as memory:
            if merge:
                upstream = pad_lines(upstream, images, memory)
                total += np.matmul(
                    upstream.reshape(groups, o, m * length), _merged(matrix, groups).swapaxes(1, 2)
                )
                continue
            upstream = pad_lines(upstream, images, memory).reshape(m, groups, o, length)
            for one in np.matmul(upstream, matrix.reshape(m, groups, rows, length).swapaxes(2, 3)):
                total += one
    return total


@override("conv_backward_input", backend="numpy")
@_with_blas_dtypes
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
    n, count = len(g), g.shape[2:]
    channels = w.shape[1] * groups
    gx = np.empty((n, channels, *size), g.dtype)
    if not gx.size:
        return gx
    if not g.size:
        gx.fill(0)
        return gx
    o, c = w.shape[:2]
    before = tuple([2 - p for p in padding])
    if is_winograd(g.dtype, w.shape, n, size, before, stride + dilation, groups):
        return winograd(g, w, None, size, before, mirrored=True)
    taken = _by_remainders(size, count, w.shape[2:], stride, padding, dilation)
    if max(w.shape[2:]) > 1 and (o > _MANY_TIMES * channels or n * math.prod(count) < o):
        taken = ()  # g has many more channels than the input, or w has many elements
    if taken:
        swapped = w.reshape(groups, o // groups, *w.shape[1:]).swapaxes(1, 2)
        swapped = swapped.reshape(channels, o // groups, *w.shape[2:])
    phases = []
    for targets, places, windows in taken:
        weight = np.ascontiguousarray(swapped[(..., *places)])
        phases.append((targets, weight, windows._replace(long=_is_long(weight.shape, groups))))

    def work(part: slice) -> None:
        if _is_depthwise(w.shape, groups):
            depthwise_input(gx[part], g[part], w, stride, padding, dilation)
            return
        if not phases:
            col2im_products(gx[part], g[part], w, stride, padding, dilation, groups)
        for targets, weight, windows in phases:
            target = gx[(part, _all, *targets)]
            if weight.size:
                _correlate(target, g[part], weight, windows, groups)
            else:
                target.fill(0)

    _share_samples(work, n, w.shape, math.prod(count))
    return gx


Slices = tuple[slice, ...]


@lru_cache(1024)
def _by_remainders(
    size: Ints, count: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> tuple[tuple[Slices, Slices, Windows], ...]:
    """For each remainder by the stride: places of the input, places of the kernel, windows of g.

    Such places of the input see the same places of windows, so that their gradient is a convolution
    of g with stride 1. Empty where that would need a crop of g: `col2im_products` serve there.
    """
    axes = [
        [_seen(*setting) for setting in zip(range(s), (s,) * s, (k,) * s, (p,) * s, (d,) * s)]
        for s, k, p, d in zip(stride, kernel, padding, dilation)
    ]
    if any([before < 0 for axis in axes for _, _, before, _ in axis]):
        return ()
    result = []
    for remainder in product(*map(range, stride)):
        places, numbers, before, spread = zip(*[axis[r] for axis, r in zip(axes, remainder)])
        targets = tuple([slice(r, None, s) for r, s in zip(remainder, stride)])
        counts = tuple([len(range(r, n, s)) for r, n, s in zip(remainder, size, stride)])
        windows = Windows(counts, numbers, (1,) * len(stride), before, spread)
        if math.prod(counts):
            result.append((targets, places, windows))
    return tuple(result)


def _seen(r: int, s: int, k: int, p: int, d: int) -> tuple[slice, int, int, int]:
    """Along one axis: the places of a kernel that meet remainder `r` by the stride, last first.

    Their number; how far before, and how far from each other, those of g lie that they meet.
    """
    step = s // math.gcd(s, d)
    found = [i for i in range(k) if (r + p - i * d) % s == 0]
    if not found:
        return slice(0, 0), 0, 0, 1
    before = (found[-1] * d - r - p) // s
    places = slice(found[-1], found[0] - 1 if found[0] else None, -step)
    return places, len(found), before, step * d // s

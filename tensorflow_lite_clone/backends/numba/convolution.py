"""Convolutions of two axes, depthwise ones and those of all channels, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numba.implicit_gemm import (
    Axis,
    backward,
    forward,
    plan,
)
from tensorflow_lite_clone.backends.numba.layer import (
    Kernels,
    compiled,
    row_major,
    run,
)
from tensorflow_lite_clone.backends.numba.winograd import compilation
from tensorflow_lite_clone.backends.numpy.convolution_winograd import is_winograd
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.backends.windows import Ints, windows_size
from tensorflow_lite_clone.core.flags import flags

_depthwise, _direct = Kernels("depthwise"), Kernels("direct")
_LEAST = 1 << 10
_LINE = 1 << 11  # pixels side by side
_A_TURN = 64  # products of a direct convolution, which take as long as an element of a softmax
_SUM = 1 << 10  # pixels of a part of a sum over images
_PARTS = 8  # of such a sum, if they have no more numbers in all than
_SUMS = 1 << 20
_MANY_PIXELS = 1 << 9  # of all images


def _is_depthwise(w_shape: tuple, groups: int) -> bool:
    return len(w_shape) == 4 and groups > 1 and w_shape[:2] == (groups, 1)


def _is_direct(w_shape: tuple, images: int, count: Ints, stride: Ints, groups: int) -> bool:
    """Whether windows, `count` of them in an image, are no matrix product or too large a one."""
    if groups != 1 or len(w_shape) != 4 or min(count) < 2 or not images:
        return False
    if w_shape[2:] == (1, 1) and max(stride) == 1:
        return False
    many = images * prod(count) >= _MANY_PIXELS
    limit = tuning.compiled_weights if many else tuning.compiled_weights_of_few_pixels
    return 0 < prod(w_shape) <= limit


def _axes(kind: Callable[..., Axis], *settings: Ints) -> list[Axis]:
    return [kind(*setting) for setting in zip(*settings)]


def _planes(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, *x.shape[2:])


def _depthwise_conv(
    x: np.ndarray, w: np.ndarray, b: Any, count: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> np.ndarray:
    y = np.empty((*x.shape[:2], *count), x.dtype)
    bias = np.zeros(len(w), x.dtype) if b is None else b
    planes, target = _planes(x), _planes(y)
    each = target[0].size * w[0].size // 4
    run(_depthwise.conv, len(planes), each, planes, w.reshape(-1, *w.shape[2:]), bias, target,
        (*stride, *padding, *dilation))  # fmt: skip
    return y


def _correlate(
    x: np.ndarray, w: np.ndarray, swapped: bool, b: Any, y: np.ndarray, rows: Axis, columns: Axis
) -> np.ndarray:
    """Write to y what w (outputs, channels, *kernel) makes of x.

    A `swapped` w is (channels, outputs, *kernel).
    """
    (n, channels), outputs, tile = x.shape[:2], y.shape[1], _direct.ROWS
    missing = -outputs % tile
    if missing:
        shape = (missing, *w.shape[1:]) if not swapped else (len(w), missing, *w.shape[2:])
        w = np.concatenate((w, np.zeros(shape, w.dtype)), int(swapped))
    bias = np.zeros(outputs + missing, x.dtype)
    if b is not None:
        bias[:outputs] = b
    steps = w[0].size, w[0, 0].size
    step, channel_step = steps[::-1] if swapped else steps
    layout = plan(rows, columns, (n, channels, outputs), (channel_step, w.shape[3]),
                 _direct.TILE, (tuning.compiled_lines, _LINE, flags.threads))  # fmt: skip
    items = layout.groups * layout.bands
    each = max(1, y.size * channels * w[0, 0].size // (_A_TURN * items))
    split = (
        layout.groups,
        layout.bands,
        layout.rows,
        layout.line_length,
        rows.step,
        columns.step,
        step,
    )
    run(_direct.conv, items, each, x, w.reshape(-1), bias, y, layout.weights, layout.places,
        layout.remainders, layout.phases, split, layout.geometry)  # fmt: skip
    return y


def _weight(g: np.ndarray, x: np.ndarray, shape: Ints, rows: Axis, columns: Axis) -> np.ndarray:
    """The sum over images of what g makes of x: the gradient, of this shape, of the weight."""
    (n, outputs), (slopes, places) = g.shape[:2], (_direct.GRADIENT_ROWS, _direct.GRADIENT_COLUMNS)
    layout = plan(rows, columns, (n, x.shape[1], 1), (shape[2] * shape[3], shape[3]),
                 _direct.LANES, (tuning.compiled_lines, _LINE, 1))  # fmt: skip
    numbers = layout.places.size
    padded = -(-outputs // slopes) * slopes, -(-numbers // places) * places
    long = n * g[0, 0].size // _SUM
    parts = max(1, min(_PARTS, n, long, _SUMS // (padded[0] * padded[1])))
    shares = min(-(-flags.threads // parts), padded[0] // slopes)
    gw = np.zeros((parts, *padded), x.dtype)
    begins = np.zeros(padded[1], np.int64)
    begins[:numbers] = layout.places
    each = max(1, g.size * numbers // (_A_TURN * parts * shares))
    group = -(-n // layout.groups)
    split = group, layout.bands, layout.rows, layout.line_length
    run(_direct.conv_backward_weight, parts * shares, each, g, x, gw, begins, layout.remainders,
        shares, split, layout.geometry)  # fmt: skip
    return np.ascontiguousarray(np.add.reduce(gw, 0)[:outputs, :numbers]).reshape(shape)


@compiled("conv", least=_LEAST, compilation=compilation)
def conv(
    x: np.ndarray,
    w: np.ndarray,
    b: Any,
    *,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Any:
    if not row_major(w, b):
        return NotImplemented
    count = windows_size(x.shape[2:], w.shape[2:], stride, padding, dilation)
    if _is_depthwise(w.shape, groups):
        return _depthwise_conv(x, w, b, count, stride, padding, dilation)
    if not _is_direct(w.shape, len(x), count, stride, groups) or is_winograd(
        x.dtype, w.shape, len(x), count, padding, stride + dilation, groups
    ):
        return NotImplemented
    axes = _axes(forward, x.shape[2:], count, w.shape[2:], stride, padding, dilation)
    return _correlate(x, w, False, b, np.empty((len(x), len(w), *count), x.dtype), *axes)


@compiled("conv_backward_input", least=_LEAST, compilation=compilation)
def conv_backward_input(
    g: np.ndarray,
    w: np.ndarray,
    *,
    size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Any:
    """A convolution with the mirrored kernel, or with parts of it where there is a stride."""
    if not row_major(w):
        return NotImplemented
    if _is_depthwise(w.shape, groups) and max(stride) == 1:
        margins = tuple([d * (k - 1) - p for d, k, p in zip(dilation, w.shape[2:], padding)])
        seen = windows_size(g.shape[2:], w.shape[2:], stride, margins, dilation)
        if min(margins) < 0 or seen != tuple(size):
            return NotImplemented
        mirrored = np.ascontiguousarray(w[:, :, ::-1, ::-1])
        return _depthwise_conv(g, mirrored, None, size, stride, margins, dilation)
    before = tuple([2 - p for p in padding])
    if not _is_direct(w.shape, len(g), g.shape[2:], stride, groups) or is_winograd(
        g.dtype, w.shape, len(g), size, before, stride + dilation, groups
    ):
        return NotImplemented
    axes = _axes(backward, size, g.shape[2:], w.shape[2:], stride, padding, dilation)
    return _correlate(g, w, True, None, np.empty((len(g), w.shape[1], *size), g.dtype), *axes)


@compiled("conv_backward_weight", least=_LEAST, compilation=compilation)
def conv_backward_weight(
    g: np.ndarray,
    x: np.ndarray,
    *,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Any:
    shape = g.shape[1], x.shape[1] // groups, *kernel
    if not row_major(x):
        return NotImplemented
    if _is_depthwise(shape, groups) and max(stride) == 1:
        gw = np.empty(shape, x.dtype)
        run(_depthwise.conv_backward_weight, groups, g[:, 0].size * gw[0].size // 4, g, x,
            gw[:, 0], (*padding, *dilation))  # fmt: skip
        return gw
    if not _is_direct(shape, len(g), g.shape[2:], stride, groups) or is_winograd(
        g.dtype, shape, len(g), g.shape[2:], padding, stride + dilation, groups, of_gradient=True
    ):
        return NotImplemented
    axes = _axes(forward, x.shape[2:], g.shape[2:], kernel, stride, padding, dilation)
    return _weight(g, x, shape, *axes)

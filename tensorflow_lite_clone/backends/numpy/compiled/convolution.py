"""Depthwise convolutions of two axes, those with windows of 3 x 3, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.compiled.layer import (
    Kernels,
    compiled,
    row_major,
    run,
)
from tensorflow_lite_clone.backends.numpy.convolution_winograd import is_winograd
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.core.windows import Ints, windows_size

_f32 = np.dtype(np.float32)
_depthwise, _direct = Kernels("depthwise"), Kernels("direct")
_LEAST = 1 << 10
_LINE = 1 << 12  # pixels side by side
_A_TURN = 16  # products of a direct convolution, which take as long as an element of a softmax
# Up to where NumPy's matrix products are as fast, measured with 2 threads: channels times outputs
# (64 x 64 of 32 x 32 pixels: forward 8.6 ms, NumPy 7.7, weight 9.6 and 14.8; 128 x 128 of
# 16 x 16 forward 8.0 and 5.7), and numbers in the padded channels of an image, past which lines
# leave the cache (64 of 128 x 128 took 86 ms, NumPy 75; 16 of them a third).
_MOST_PAIRS, _MOST_NUMBERS = 1 << 12, 1 << 19
_ONE_THREAD = 1 << 26  # products, a millisecond of one thread


def _is_depthwise(w_shape: tuple, groups: int) -> bool:
    return len(w_shape) == 4 and groups > 1 and w_shape[:2] == (groups, 1)


def _is_direct(
    w_shape: tuple, samples: int, count: Ints, padding: Ints, steps: Ints, groups: int,
    of_gradient: bool = False,
) -> bool:  # fmt: skip
    """Whether windows are 3 x 3, side by side, and of so few channels that it pays."""
    return (
        groups == 1
        and w_shape[2:] == (3, 3)
        and max(steps) == 1
        and max(padding) <= 2
        and 0 < w_shape[0] * w_shape[1] <= _MOST_PAIRS
        and not is_winograd(_f32, w_shape, samples, count, padding, steps, groups, of_gradient)
    )


def _planes(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, *x.shape[2:])


def _pixels(x: np.ndarray, padding: Ints) -> int:
    return (x.shape[2] + padding[0]) * (x.shape[3] + padding[1])


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


def _direct_conv(x: np.ndarray, w: np.ndarray, b: Any, count: Ints, padding: Ints) -> Any:
    pixels, products = _pixels(x, padding), count[0] * count[1] * w.size
    alone = len(x) < flags.threads and len(x) * products > _ONE_THREAD  # threads share images
    if alone or x.shape[1] * pixels > _MOST_NUMBERS:
        return NotImplemented
    y = np.empty((len(x), len(w), *count), x.dtype)
    bias = np.zeros(len(w), x.dtype) if b is None else b
    group = max(1, min(_LINE // pixels, len(x) // flags.threads))
    run(_direct.conv, -(-len(x) // group), group * products // _A_TURN, x, w, bias, y, group,
        padding)  # fmt: skip
    return y


@compiled("conv", least=_LEAST)
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
    depthwise, steps = _is_depthwise(w.shape, groups), stride + dilation
    count = windows_size(x.shape[2:], w.shape[2:], stride, padding, dilation)
    if not depthwise and not _is_direct(w.shape, len(x), count, padding, steps, groups):
        return NotImplemented
    if depthwise:
        return _depthwise_conv(x, w, b, count, stride, padding, dilation)
    return _direct_conv(x, w, b, count, padding)


@compiled("conv_backward_input", least=_LEAST)
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
    """A convolution with the mirrored kernel, if all of the padded input was seen."""
    depthwise, steps = _is_depthwise(w.shape, groups) and max(stride) == 1, stride + dilation
    margins = tuple([d * (k - 1) - p for d, k, p in zip(dilation, w.shape[2:], padding)])
    if not depthwise and not _is_direct(w.shape, len(g), size, margins, steps, groups):
        return NotImplemented
    seen = windows_size(g.shape[2:], w.shape[2:], stride, margins, dilation)
    if min(margins) < 0 or seen != tuple(size):
        return NotImplemented
    mirrored = w[:, :, ::-1, ::-1]
    if depthwise:
        mirrored = np.ascontiguousarray(mirrored)
        return _depthwise_conv(g, mirrored, None, size, stride, margins, dilation)
    return _direct_conv(g, np.ascontiguousarray(mirrored.swapaxes(0, 1)), None, size, margins)


@compiled("conv_backward_weight", least=_LEAST)
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
    if not _is_direct(shape, len(g), g.shape[2:], padding, stride + dilation, groups, True):
        return NotImplemented
    gw = np.empty(shape, x.dtype)
    group = max(1, min(_LINE // _pixels(x, padding), len(x)))
    each = 2 * g[:, 0].size * gw[0].size // _A_TURN
    run(_direct.conv_backward_weight, -(-len(gw) // 2), each, g, x, gw, group, padding)
    return gw

"""Depthwise convolutions of two axes and, for a stride of 1, their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.compiled.layer import (
    Kernels,
    compiled,
    row_major,
    run,
)
from tensorflow_lite_clone.core.windows import Ints, windows_size

_kernels = Kernels("depthwise")
_LEAST = 1 << 10


def _is_depthwise(w_shape: tuple, groups: int) -> bool:
    return len(w_shape) == 4 and groups > 1 and w_shape[:2] == (groups, 1)


def _planes(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, *x.shape[2:])


def _convolved(
    x: np.ndarray, w: np.ndarray, b: Any, count: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> np.ndarray:
    y = np.empty((*x.shape[:2], *count), x.dtype)
    bias = np.zeros(len(w), x.dtype) if b is None else b
    planes, target = _planes(x), _planes(y)
    each = target[0].size * w[0].size // 4
    run(_kernels.conv, len(planes), each, planes, w.reshape(-1, *w.shape[2:]), bias, target,
        (*stride, *padding, *dilation))  # fmt: skip
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
    if not _is_depthwise(w.shape, groups) or not row_major(w, b):
        return NotImplemented
    count = windows_size(x.shape[2:], w.shape[2:], stride, padding, dilation)
    return _convolved(x, w, b, count, stride, padding, dilation)


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
    if not _is_depthwise(w.shape, groups) or max(stride) > 1:
        return NotImplemented
    # It is a convolution with the mirrored kernel, if all of the padded input was seen.
    margins = tuple([d * (k - 1) - p for d, k, p in zip(dilation, w.shape[2:], padding)])
    seen = windows_size(g.shape[2:], w.shape[2:], stride, margins, dilation)
    if min(margins) < 0 or seen != tuple(size):
        return NotImplemented
    mirrored = np.ascontiguousarray(w[:, :, ::-1, ::-1])
    return _convolved(g, mirrored, None, size, stride, margins, dilation)


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
    if not _is_depthwise(shape, groups) or max(stride) > 1 or not row_major(x):
        return NotImplemented
    gw = np.empty(shape, x.dtype)
    run(_kernels.conv_backward_weight, groups, g[:, 0].size * gw[0].size // 4, g, x, gw[:, 0],
        (*padding, *dilation))  # fmt: skip
    return gw

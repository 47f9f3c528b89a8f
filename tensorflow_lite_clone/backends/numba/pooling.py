"""The maximum over windows of two axes, and its gradient."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numba.layer import (
    Kernels,
    compiled,
    row_major,
    run,
)
from tensorflow_lite_clone.backends.windows import Ints, pooled_size

_kernels = Kernels("pooling")
_LEAST = 1 << 10


@compiled("max_pool", least=_LEAST)
def max_pool(
    x: np.ndarray, *, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> Any:
    if len(kernel) != 2:
        return NotImplemented
    count = pooled_size(x.shape[2:], kernel, stride, padding, dilation, ceil_mode)
    y = np.empty((*x.shape[:2], *count), x.dtype)
    planes, size = x.shape[0] * x.shape[1], x.shape[2:]
    run(_kernels.max_pool, planes, prod(size), x.reshape(-1), y.reshape(-1), size, count,
        (*kernel, *stride, *padding, *dilation))  # fmt: skip
    return y, np.zeros(0, np.uint8)


@compiled("max_pool_backward", least=_LEAST >> 2)
def max_pool_backward(
    g: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    hint: Any,
    *,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
) -> Any:
    if len(kernel) != 2 or not row_major(x, y):
        return NotImplemented
    gx = np.empty_like(x)
    planes, size = x.shape[0] * x.shape[1], x.shape[2:]
    run(_kernels.max_pool_backward, planes, 2 * prod(size), g.reshape(-1), x.reshape(-1),
        y.reshape(-1), gx.reshape(-1), size, y.shape[2:],
        (*kernel, *stride, *padding, *dilation))  # fmt: skip
    return gx

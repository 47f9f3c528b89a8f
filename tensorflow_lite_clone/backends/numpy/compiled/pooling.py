"""The maximum over windows of two axes, and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.compiled.layer import (
    Kernels,
    compiled,
    row_major,
    run,
)
from tensorflow_lite_clone.core.windows import Ints, pooled_size

_kernels = Kernels("pooling")
_LEAST = 1 << 10


def _planes(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, *x.shape[2:])


@compiled("max_pool", least=_LEAST)
def max_pool(
    x: np.ndarray, *, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> Any:
    if len(kernel) != 2:
        return NotImplemented
    count = pooled_size(x.shape[2:], kernel, stride, padding, dilation, ceil_mode)
    y = np.empty((*x.shape[:2], *count), x.dtype)
    planes = _planes(x)
    run(
        _kernels.max_pool, len(planes), planes[0].size, planes, _planes(y),
        (*kernel, *stride, *padding, *dilation),
    )  # fmt: skip
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
    planes = _planes(x)
    run(
        _kernels.max_pool_backward, len(planes), 2 * planes[0].size, _planes(g), planes, _planes(y),
        _planes(gx), (*kernel, *stride, *padding, *dilation),
    )  # fmt: skip
    return gx

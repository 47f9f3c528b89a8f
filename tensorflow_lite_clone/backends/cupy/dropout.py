"""Dropout by counter: the gradient draws what was kept again, from a ticket of 16 bytes."""

from __future__ import annotations

import math
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.arrays import ACCUMULATORS, empty_laid, is_dense_last
from tensorflow_lite_clone.backends.cupy.kernel import Kernel, blocks_for
from tensorflow_lite_clone.backends.cupy.random import threshold
from tensorflow_lite_clone.dispatch.table import override

_flat = Kernel("dropout.cu", "dropout_forward", params=("T", "A", "VEC"))
_channels = Kernel("dropout.cu", "dropout_forward_channels", params=("T", "A"))


@override("dropout", backend="cupy")
def dropout(F: Any, x: Any, *, p: float) -> Any:
    if x.dtype not in ACCUMULATORS or not x.size:
        return NotImplemented
    ticket = F.backend.generator.ticket(-(-x.size // 4))
    return _dropped(x, ticket, p), ticket


@override("dropout_backward", backend="cupy")
def dropout_backward(F: Any, g: Any, noise: Any, *, p: float) -> Any:
    if noise.dtype != np.uint64 or g.dtype not in ACCUMULATORS:
        return NotImplemented  # the forward was generic
    return _dropped(g, noise, p)


def _dropped(x: Any, ticket: Any, p: float) -> Any:
    keep = threshold(1 - p)
    factor = 1 / (1 - p)
    accumulator = "double" if x.dtype.itemsize == 8 else "float"
    if x.ndim > 2 and not x.flags.c_contiguous and is_dense_last(x):
        y = empty_laid(x, x.dtype)
        _channels[x.dtype, accumulator](
            blocks_for(x.size, 256), 256, ticket, x, keep, factor, x.shape[1],
            math.prod(x.shape[2:]), x.size, y,
        )  # fmt: skip
        return y
    if not x.flags.c_contiguous:  # `ascontiguousarray` would give a zero-dim array an axis
        x = cupy.ascontiguousarray(x)
    y = cupy.empty(x.shape, x.dtype)
    whole = x.data.ptr % 16 == 0
    each = 8 if x.dtype.itemsize == 2 else 4
    _flat[x.dtype, accumulator, 16 // x.dtype.itemsize if whole else 1](
        blocks_for(-(-x.size // each), 256), 256, ticket, x, keep, factor, x.size, y
    )
    return y

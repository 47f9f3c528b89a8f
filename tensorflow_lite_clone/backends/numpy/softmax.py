"""Gradients of softmax along the last axis, and largest elements with their places."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.kit_reduce import pick_last
from tensorflow_lite_clone.dispatch.table import override


@override("softmax_backward", backend="numpy")
def softmax_backward(F: Any, g: Any, y: Any, *, axis: int) -> Any:
    if axis != y.ndim - 1 or y.dtype.kind != "f" or y.itemsize == 2:
        return NotImplemented
    gx = g - np.vecdot(g, y)[..., None]
    gx *= y
    return gx


@override("log_softmax_backward", backend="numpy")
def log_softmax_backward(F: Any, g: Any, y: Any, *, axis: int) -> Any:
    if y.dtype.kind != "f" or y.itemsize == 2:
        return NotImplemented
    gx = np.exp(y)
    gx *= np.add.reduce(g, axis, None, None, True)
    return np.subtract(g, gx, gx)


def _extreme(argument: Any, x: Any, axis: int, keepdims: bool) -> Any:
    if axis != x.ndim - 1 or not x.flags.c_contiguous:
        return NotImplemented
    index = argument(x, axis)
    values = pick_last(x, index)
    if keepdims:
        return values[..., None], index[..., None]
    return values, index


@override("max_with_indices", backend="numpy")
def max_with_indices(F: Any, x: Any, *, axis: int, keepdims: bool, size: int) -> Any:
    return _extreme(np.ndarray.argmax, x, axis, keepdims)


@override("min_with_indices", backend="numpy")
def min_with_indices(F: Any, x: Any, *, axis: int, keepdims: bool, size: int) -> Any:
    return _extreme(np.ndarray.argmin, x, axis, keepdims)

"""The standard's statistical functions."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.array_api._register import word
from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.ops.reduce import Sum, axes_of
from tensorflow_lite_clone.tensor import Tensor


@word
def sum(
    x: Tensor, /, *, axis: Any = None, dtype: DType | None = None, keepdims: bool = False
) -> Tensor:
    """The sum over `axis`."""
    shape = x._storage.array.shape
    return apply(Sum, x, axis=axes_of(axis, len(shape)), keepdims=keepdims, shape=shape)

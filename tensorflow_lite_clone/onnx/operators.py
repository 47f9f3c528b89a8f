"""Shapes as tensors."""

from __future__ import annotations

from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.ops.create.constructors import tensor
from tensorflow_lite_clone.ops.shape.views import reshape
from tensorflow_lite_clone.tensor import Tensor


def shape_as_tensor(x: Tensor) -> Tensor:
    """The shape of `x` as a line of int64; an exported model has the example's."""
    return tensor(list(x.shape), dtype=int64)


def reshape_from_tensor_shape(x: Tensor, shape: Tensor) -> Tensor:
    """`x` in the shape that a line of integers tells."""
    return reshape(x, tuple(shape.tolist()))

"""`nn.parameter`: the tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

from tensorflow_lite_clone.tensor.parameter import Buffer, Parameter
from tensorflow_lite_clone.tensor.uninitialized import (
    UninitializedBuffer,
    UninitializedParameter,
    UninitializedTensorMixin,
    is_lazy,
)

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]

"""Tensor: a storage, its place in the graph, and how it prints."""

from __future__ import annotations

from tensorflow_lite_clone.core.signature import classes
from tensorflow_lite_clone.tensor.parameter import Buffer, Parameter
from tensorflow_lite_clone.tensor.tensor import Tensor, View, new_tensor

__all__ = ["Buffer", "Parameter", "Tensor", "View", "new_tensor"]

classes["Tensor"] = Tensor

"""`nn.parameter`: the tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

from tensorflow_lite_clone.tensor.parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter"]

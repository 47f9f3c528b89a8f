"""``torch.autograd.variable``: a Variable has been a Tensor since PyTorch 0.4."""

from __future__ import annotations

from tensorflow_lite_clone.tensor import Tensor as Variable

__all__ = ["Variable"]

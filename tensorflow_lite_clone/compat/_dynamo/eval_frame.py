"""PyTorch's place of the class of compiled modules."""

from __future__ import annotations

from tensorflow_lite_clone.compiler import OptimizedModule

__all__ = ["OptimizedModule"]

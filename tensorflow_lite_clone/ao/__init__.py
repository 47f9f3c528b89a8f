"""PyTorch's room for architecture optimization: here, dynamic quantization of models."""

from __future__ import annotations

from tensorflow_lite_clone.ao import nn, quantization

__all__ = ["nn", "quantization"]

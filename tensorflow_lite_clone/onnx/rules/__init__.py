"""What each op is in ONNX: a function per op, entered by importing its module."""

from __future__ import annotations

from tensorflow_lite_clone.onnx.rules import (
    activations,
    indexing,
    losses,
    networks,
    pointwise,
    products,
    recurrent,
    reductions,
    shapes,
)

__all__ = [
    "activations",
    "indexing",
    "losses",
    "networks",
    "pointwise",
    "products",
    "recurrent",
    "reductions",
    "shapes",
]

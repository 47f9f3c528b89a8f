"""Modules with quantized weights."""

from __future__ import annotations

from tensorflow_lite_clone.ao.nn import quantized

__all__ = ["quantized"]

"""Quantized modules: those of `dynamic`, whose inputs and outputs are ordinary tensors."""

from __future__ import annotations

from tensorflow_lite_clone.ao.nn.quantized import dynamic, modules
from tensorflow_lite_clone.ao.nn.quantized.modules import FloatFunctional

__all__ = ["FloatFunctional", "dynamic", "modules"]

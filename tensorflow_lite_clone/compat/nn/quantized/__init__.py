"""The older name of `ao.nn.quantized`."""

from __future__ import annotations

from tensorflow_lite_clone.ao.nn.quantized import FloatFunctional

__all__ = ["FloatFunctional"]

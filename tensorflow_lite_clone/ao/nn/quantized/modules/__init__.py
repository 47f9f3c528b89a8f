"""What quantized modules keep their weights in."""

from __future__ import annotations

from tensorflow_lite_clone.ao.nn.quantized.modules.functional_modules import FloatFunctional
from tensorflow_lite_clone.ao.nn.quantized.modules.linear import LinearPackedParams

__all__ = ["FloatFunctional", "LinearPackedParams"]

"""Quantized tensors, and what computes with them: linear maps and recurrent layers.

Names of the face are entered here, under which it finds them; `ao` has the modules.
"""

from __future__ import annotations

from tensorflow_lite_clone.core.qscheme import QScheme as qscheme
from tensorflow_lite_clone.core.qscheme import (
    per_channel_affine,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)
from tensorflow_lite_clone.quantized.linear import ScriptObject
from tensorflow_lite_clone.quantized.quantize import (
    choose_qparams_per_tensor as _choose_qparams_per_tensor,
)
from tensorflow_lite_clone.quantized.quantize import (
    empty_affine_quantized as _empty_affine_quantized,
)
from tensorflow_lite_clone.quantized.quantize import (
    make_per_channel_quantized_tensor as _make_per_channel_quantized_tensor,
)
from tensorflow_lite_clone.quantized.quantize import (
    make_per_tensor_quantized_tensor as _make_per_tensor_quantized_tensor,
)
from tensorflow_lite_clone.quantized.quantize import (
    quantize_per_channel,
    quantize_per_tensor,
    quantize_per_tensor_dynamic,
)

__all__ = [
    "ScriptObject",
    "_choose_qparams_per_tensor",
    "_empty_affine_quantized",
    "_make_per_channel_quantized_tensor",
    "_make_per_tensor_quantized_tensor",
    "per_channel_affine",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
    "qscheme",
    "quantize_per_channel",
    "quantize_per_tensor",
    "quantize_per_tensor_dynamic",
]

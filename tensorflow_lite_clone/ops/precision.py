"""How precisely products of float32 matrices are computed."""

from __future__ import annotations

from tensorflow_lite_clone.backends import float32_precision
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.core.public import public


@public("torch")
def set_float32_matmul_precision(precision: str) -> None:
    """``"highest"``: in float32; ``"high"``, ``"medium"``: operands may be rounded to TF32 on CUDA.

    RuntimeError for another word. On the CPU products are always computed in float32.
    """
    float32_precision.put_matmul(precision)


@public("torch")
def get_float32_matmul_precision() -> str:
    """The word last given to `set_float32_matmul_precision`."""
    return flags.float32_matmul_precision

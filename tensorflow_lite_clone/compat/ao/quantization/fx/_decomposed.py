"""``torch.ops.quantized_decomposed``: transformers' ONNX exporter has a rule for one of them."""

from __future__ import annotations

from tensorflow_lite_clone.core.dtypes import DType, float32
from tensorflow_lite_clone.ops.namespaces import OpOverloadPacket, namespace
from tensorflow_lite_clone.tensor import Tensor


def dequantize_per_channel(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: DType,
    *,
    out_dtype: DType | None = None,
) -> Tensor:
    """``(input - zero_points) * scales`` in `out_dtype`, of which there is one each along `axis`.

    Raises AssertionError for an input that has another dtype than `dtype`, or no such axis.
    """
    if input.dtype is not dtype:
        raise AssertionError(
            f"Expecting input to have dtype: {dtype}, but got dtype: {input.dtype}"
        )
    if axis >= input.ndim:
        raise AssertionError(f"Expecting axis to be < {input.ndim}")
    out_dtype = out_dtype or float32
    shape = [1] * input.ndim
    shape[axis] = -1
    centred = input if zero_points is None else input - zero_points.reshape(shape)
    return centred.to(out_dtype) * scales.reshape(shape).to(out_dtype)


_name = "dequantize_per_channel"
namespace("quantized_decomposed")[_name] = OpOverloadPacket(
    f"quantized_decomposed::{_name}", dequantize_per_channel
)

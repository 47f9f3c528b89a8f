"""From a module's weights to quantized ones, as its `qconfig` says."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from tensorflow_lite_clone.core.dtypes import DType, float16, qint8
from tensorflow_lite_clone.core.qscheme import per_channel_affine, per_channel_symmetric
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.quantized.linear import PackedLinear
from tensorflow_lite_clone.quantized.quantize import quantize_per_channel, quantize_per_tensor
from tensorflow_lite_clone.tensor import Tensor

#: A weight and a bias give what the module multiplies with.
Pack = Callable[[Tensor, Tensor | None], PackedLinear]


def weight_packing(module: Module, expected: Collection[type[Module]]) -> tuple[DType, Pack]:
    """The dtype to which the weights of `module` are quantized, and the function that does it.

    Raises AssertionError for modules that are not of a class in `expected`, whose `qconfig` has no
    observer of weights, and for other dtypes than qint8 and float16.
    """
    if type(module) not in expected:
        names = [kind.__name__ for kind in expected]
        raise AssertionError(f"from_float only works for one of {names}, got {type(module)}")
    make_observer: Any = getattr(getattr(module, "qconfig", None), "weight", None)
    if make_observer is None:
        raise AssertionError("Input float module must have qconfig defined")
    dtype = make_observer().dtype
    if dtype not in (qint8, float16):
        raise AssertionError(
            "The only supported dtypes for dynamic quantization are torch.qint8 and "
            f"torch.float16, got: {dtype}"
        )

    def pack(weight: Tensor, bias: Tensor | None) -> PackedLinear:
        numbers = weight.detach().float()
        if dtype is float16:
            return PackedLinear(numbers, bias)
        observer = make_observer()
        observer(numbers)
        return PackedLinear(quantize_weight(numbers, observer), bias)

    return dtype, pack


def quantize_weight(weight: Tensor, observer: Any) -> Tensor:
    """`weight` as qint8 with the scale and zero point, or those of channels, of an observer."""
    scale, zero_point = observer.calculate_qparams()
    if observer.qscheme in (per_channel_affine, per_channel_symmetric):
        return quantize_per_channel(weight, scale, zero_point, observer.ch_axis, qint8)
    result: Any = quantize_per_tensor(weight, scale, zero_point, qint8)
    return result


def expect_biases(module: Any) -> None:
    """AssertionError for a recurrent module without biases, as in PyTorch."""
    if not module.bias:
        raise AssertionError("mod.bias must be True")

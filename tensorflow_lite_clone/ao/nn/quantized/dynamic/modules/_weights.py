"""From a module's weights to quantized ones, as its `qconfig` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.ao.quantization.observer import PlaceholderObserver
from tensorflow_lite_clone.ao.quantization.qconfig import default_dynamic_qconfig
from tensorflow_lite_clone.core.dtypes import DType, float16, qint8
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.quantized.linear import PackedLinear
from tensorflow_lite_clone.tensor import Tensor

#: A weight and a bias give what the module multiplies with.
Pack = Callable[[Tensor, Tensor | None], PackedLinear]


def weight_packer(module: Module, expected: dict[type[Module], Any]) -> tuple[DType, Pack]:
    """The dtype to which the weights of `module` are quantized, and the function that does it.

    Raises AssertionError for modules that are not of a class in `expected`, that have no `qconfig`,
    and for other dtypes than qint8 and float16.
    """
    if type(module) not in expected:
        names = [kind.__name__ for kind in expected]
        raise AssertionError(f"from_float only works for one of {names}, got {type(module)}")
    if not hasattr(module, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    observer: Any = (module.qconfig or default_dynamic_qconfig).weight
    observer = observer or default_dynamic_qconfig.weight
    dtype = observer().dtype
    if dtype not in (qint8, float16):
        raise AssertionError(
            "The only supported dtypes for dynamic quantization are torch.qint8 and "
            f"torch.float16, got: {dtype}"
        )

    def pack(weight: Tensor, bias: Tensor | None) -> PackedLinear:
        watching = observer()
        if dtype is float16 or isinstance(watching, PlaceholderObserver):
            return PackedLinear(weight.detach().float(), bias)
        watching(weight)
        return PackedLinear(watching.quantize(weight.detach().float()), bias)

    return dtype, pack


def expect_biases(module: Any) -> None:
    """AssertionError for a recurrent module without biases, as in PyTorch."""
    if not module.bias:
        raise AssertionError("mod.bias must be True")

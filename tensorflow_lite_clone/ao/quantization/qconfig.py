"""How modules are to be quantized: observers for what comes out of them, and for their weights."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorflow_lite_clone.ao.quantization.observer import (
    PlaceholderObserver,
    default_dynamic_quant_observer,
    default_per_channel_weight_observer,
    default_weight_observer,
)
from tensorflow_lite_clone.core.dtypes import float16
from tensorflow_lite_clone.nn.modules.module import Module


class _Observers(NamedTuple):
    activation: Any
    weight: Any


class QConfig(_Observers):
    """Constructors of the observers of activations and weights.

    ValueError for observers in place of constructors.
    """

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        if isinstance(activation, Module) or isinstance(weight, Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. Use "
                "MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


#: Weights of qint8 with one scale a tensor, inputs quantized at every call.
default_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_weight_observer)
#: The same with a scale for each output.
per_channel_dynamic_qconfig = QConfig(
    default_dynamic_quant_observer, default_per_channel_weight_observer
)
#: Weights rounded to float16.
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=float16, is_dynamic=True),
    PlaceholderObserver.with_args(dtype=float16),
)

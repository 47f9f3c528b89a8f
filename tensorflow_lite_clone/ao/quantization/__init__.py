"""Dynamic quantization, as ``torch.ao.quantization``; static quantization and training for it,
which observe activations, are not here: their functions raise NotImplementedError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from tensorflow_lite_clone import _absent
from tensorflow_lite_clone.ao.quantization.observer import (
    MinMaxObserver,
    ObserverBase,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    default_dynamic_quant_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_weight_observer,
)
from tensorflow_lite_clone.ao.quantization.qconfig import (
    QConfig,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    per_channel_dynamic_qconfig,
)
from tensorflow_lite_clone.ao.quantization.quantization_mappings import (
    get_default_dynamic_quant_module_mappings,
)
from tensorflow_lite_clone.ao.quantization.quantize import quantize_dynamic
from tensorflow_lite_clone.core.compat_path import mount_compat

mount_compat(__path__, __name__)

__all__ = [
    "MinMaxObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "PlaceholderObserver",
    "QConfig",
    "default_dynamic_qconfig",
    "default_dynamic_quant_observer",
    "default_per_channel_weight_observer",
    "default_placeholder_observer",
    "default_weight_observer",
    "float16_dynamic_qconfig",
    "get_default_dynamic_quant_module_mappings",
    "per_channel_dynamic_qconfig",
    "quantize_dynamic",
]

#: Static quantization, and training for it.
_STATIC = tuple(
    "DeQuantStub QuantStub convert fuse_modules get_default_qat_qconfig get_default_qconfig "
    "prepare prepare_qat quantize quantize_qat".split()
)


def _static(name: str) -> Callable[..., NoReturn]:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"torch.ao.quantization.{name} is of static quantization, which is not here: see "
            "torch.ao.quantization.quantize_dynamic"
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Always NotImplementedError: static quantization is not here."
    return function


globals().update({name: _static(name) for name in _STATIC})
__all__ += _STATIC


def __getattr__(name: str) -> Any:
    raise _absent.error("module 'torch.ao.quantization'", "torch.ao.quantization", name)

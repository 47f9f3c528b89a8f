"""Dynamic quantization of a model: some of its modules are replaced by quantized ones."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from tensorflow_lite_clone.ao.quantization.qconfig import (
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
)
from tensorflow_lite_clone.ao.quantization.quantization_mappings import (
    get_default_dynamic_quant_module_mappings,
)
from tensorflow_lite_clone.core.dtypes import DType, float16, qint8
from tensorflow_lite_clone.nn.modules import linear, rnn
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.utils.parametrize import type_before_parametrizations

_CONFIGS = {qint8: default_dynamic_qconfig, float16: float16_dynamic_qconfig}
#: What is quantized unless it is said.
_DEFAULT = linear.Linear, rnn.LSTM, rnn.GRU, rnn.LSTMCell, rnn.RNNCell, rnn.GRUCell


def quantize_dynamic(
    model: Module,
    qconfig_spec: Any = None,
    dtype: DType = qint8,
    mapping: Mapping[type[Module], Any] | None = None,
    inplace: bool = False,
) -> Module:
    """A copy of `model`, in evaluation mode, in which modules are replaced by quantized ones.

    Their weights are of `dtype`, qint8 (a quarter of the memory in files) or float16. Of qint8 the
    inputs are quantized, too, at every call.

    Args:
        model: its children at any depth are replaced, not it itself.
        qconfig_spec: which of them: a set of classes and of names of children, the default being
            linear and recurrent modules; or a dictionary from these to `QConfig`, in which `dtype`
            does not matter. A name stands for all that is inside.
        mapping: class -> class of quantized modules, with a `from_float`; by default that of
            `get_default_dynamic_quant_module_mappings`.
        inplace: replace the modules of `model` itself, which is then the result.

    Raises ValueError or RuntimeError for other dtypes, and what `from_float` raises for modules
    that cannot be quantized.

    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    Sequential(
      (0): DynamicQuantizedLinear(in_features=2, out_features=3, dtype=torch.qint8, \
qscheme=torch.per_tensor_affine)
      (1): ReLU()
    )
    """
    if qconfig_spec is None and dtype not in _CONFIGS:
        raise ValueError(
            f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig "
            "please"
        )
    if not isinstance(qconfig_spec, dict):
        if dtype not in _CONFIGS:
            raise RuntimeError(
                "Unknown dtype specified for quantize_dynamic: expected torch.qint8 or "
                f"torch.float16, got {dtype}"
            )
        qconfig_spec = dict.fromkeys(qconfig_spec or _DEFAULT, _CONFIGS[dtype])
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    classes = get_default_dynamic_quant_module_mappings() if mapping is None else mapping
    config = _config(model, "", qconfig_spec, None)
    _replace(model, "", qconfig_spec, config, classes)
    return model


def _config(module: Module, name: str, spec: Mapping[Any, Any], default: Any) -> Any:
    """The `QConfig` of a module: its own attribute, or what `spec` has for its name, its class, or
    for the module around it; None if it is to stay."""
    of_class = spec.get(type_before_parametrizations(module), default)
    config = getattr(module, "qconfig", spec.get(name, of_class))
    if config is not None and not hasattr(config, "weight"):
        raise AttributeError(f"expected a QConfig for {name or 'the model'}, got {config!r}")
    return config


def _replace(
    module: Module, name: str, spec: Mapping[Any, Any], config: Any, classes: Mapping[Any, Any]
) -> None:
    """Replace the children of `module`, whose name in the model is `name`."""
    for key, child in list(module.named_children()):
        path = f"{name}.{key}" if name else key
        own = _config(child, path, spec, config)
        quantized = classes.get(type_before_parametrizations(child))
        if own is None or quantized is None:
            _replace(child, path, spec, own, classes)
            continue
        child.qconfig = own  # where `from_float` looks
        new = quantized.from_float(child)
        del child.qconfig
        new._forward_pre_hooks.update(child._forward_pre_hooks)
        new._forward_hooks.update(child._forward_hooks)
        setattr(module, key, new)

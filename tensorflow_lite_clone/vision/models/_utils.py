"""What several models share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import _ovewrite_named_param

__all__ = [
    "IntermediateLayerGetter",
    "_make_divisible",
    "_ovewrite_named_param",
    "initialize",
    "stage_indices",
    "start_norm",
    "zero_bias",
]


def zero_bias(layer: Any) -> None:
    """Lets a bias, if there is one, start with zeros."""
    if layer.bias is not None:
        init.zeros_(layer.bias)


def start_norm(norm: Any) -> None:
    """Lets a norm start as the identity."""
    init.ones_(norm.weight)
    init.zeros_(norm.bias)


NARROW = partial(init.normal_, std=0.01)


def initialize(model: nn.Module, linear: Callable[[Tensor], Any] | None = NARROW) -> None:
    """The first values of most models: those of convolutions by fan-out as He et al., 2015.

    `linear` draws those of linear layers; None leaves these as they are.
    """
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Conv3d):
            init.kaiming_normal_(module.weight, mode="fan_out")
            zero_bias(module)
        elif isinstance(module, nn.BatchNorm2d | nn.BatchNorm3d | nn.GroupNorm):
            start_norm(module)
        elif linear is not None and isinstance(module, nn.Linear):
            linear(module.weight)
            zero_bias(module)


def _make_divisible(v: float, divisor: int, min_value: int | None = None) -> int:
    """The multiple of `divisor` nearest to `v` that is not below `min_value` nor 0.9 `v`.

    So widths stay friendly to hardware (Sandler et al., MobileNetV2, 2018).
    """
    rounded = max(min_value or divisor, int(v + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * v else rounded


def stage_indices(features: nn.Sequential) -> list[int]:
    """Where the stages of a MobileNet begin: the first and last layers, and those that stride."""
    strided = [index for index, block in enumerate(features) if getattr(block, "_is_cn", False)]
    return [0, *strided, len(features) - 1]


class IntermediateLayerGetter(nn.ModuleDict):
    """Runs a model's children in order and returns what some of them give.

    `return_layers` maps names of children to names in the result, an OrderedDict. Children behind
    the last of them are left out. The model must call its children in their order, each once.
    Raises ValueError for a name that is no child.
    """

    return_layers: dict[str, str]

    def __init__(self, model: nn.Module, return_layers: dict[str, str]) -> None:
        children = dict(model.named_children())
        if not set(return_layers) <= set(children):
            raise ValueError("return_layers are not present in model")
        last = max(list(children).index(name) for name in return_layers)
        super().__init__(OrderedDict(list(children.items())[: last + 1]))
        self.return_layers = {str(name): str(new) for name, new in return_layers.items()}

    def forward(self, x: Tensor) -> OrderedDict[str, Any]:
        result: OrderedDict[str, Any] = OrderedDict()
        for name, module in self.items():
            x = module(x)
            if name in self.return_layers:
                result[self.return_layers[name]] = x
        return result

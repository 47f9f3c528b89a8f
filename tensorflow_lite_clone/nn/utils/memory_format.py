"""The order in memory of convolutions' weights, as ``torch.nn.utils.memory_format``."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.nn.modules.conv import (
    Conv2d,
    Conv3d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from tensorflow_lite_clone.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Module, classes: tuple[Any, ...], memory_format: Any) -> Module:
    for part in module.modules():
        if isinstance(part, classes):
            part.weight.data = part.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Give the weights of all 2-D convolutions in `module` that layout; returns `module`."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Give the weights of all 3-D convolutions in `module` that layout; returns `module`."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)

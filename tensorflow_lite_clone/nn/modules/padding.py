"""Padding of the last one, two or three dimensions; see `functional.pad`.

`padding` is a number, or two numbers per dimension, the last dimension's first.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.modules.utils import _ntuple
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """Keeps `padding` as a tuple with two numbers per dimension."""

    dimensions: ClassVar[int]
    mode: ClassVar[str]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self.dimensions)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    """Pads with `value`."""

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with `value`."""

    dimensions = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with `value`."""

    dimensions = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with `value`."""

    dimensions = 3


class _Zeros(_ConstantPadNd):
    """Pads with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _Pad.extra_repr


class ZeroPad1d(_Zeros, ConstantPad1d):
    """Pads the last dimension with zeros."""


class ZeroPad2d(_Zeros, ConstantPad2d):
    """Pads the last two dimensions with zeros."""


class ZeroPad3d(_Zeros, ConstantPad3d):
    """Pads the last three dimensions with zeros."""


class _ReflectionPadNd(_Pad):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last dimension with its reflection."""

    dimensions = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads the last two dimensions with their reflection."""

    dimensions = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last three dimensions with their reflection."""

    dimensions = 3


class _ReplicationPadNd(_Pad):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last dimension by repeating its ends."""

    dimensions = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads the last two dimensions by repeating their ends."""

    dimensions = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last three dimensions by repeating their ends."""

    dimensions = 3


class _CircularPadNd(_Pad):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        low = self.dimensions + 1
        if input.ndim not in (low, low + 1):
            raise ValueError(f"expected {low}D or {low + 1}D input (got {input.ndim}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension with its other end."""

    dimensions = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last two dimensions with their other ends."""

    dimensions = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions with their other ends."""

    dimensions = 3

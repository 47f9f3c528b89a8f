"""Convolutions and transposed convolutions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.parameter import Parameter
from tensorflow_lite_clone.ops.create import empty
from tensorflow_lite_clone.tensor import Tensor


def tuple_of(value: Any, count: int) -> tuple:
    """A number for every dimension: ``3`` becomes ``(3, 3)``."""
    return (value,) * count if isinstance(value, int) else tuple(value)


class _ConvNd(Module):
    """What all convolutions share; a subclass says how many dimensions slide."""

    dimensions: ClassVar[int]
    transposed: ClassVar[bool] = False
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        count = self.dimensions
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = tuple_of(kernel_size, count)
        self.stride = tuple_of(stride, count)
        self.padding = padding if isinstance(padding, str) else tuple_of(padding, count)
        self.dilation = tuple_of(dilation, count)
        self.output_padding = tuple_of(output_padding, count)
        self.groups = groups
        self.padding_mode = padding_mode
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string '{padding}', should be one of {{'valid', 'same'}}"
                )
            if padding == "same" and any(step != 1 for step in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        modes = ("zeros", "reflect", "replicate", "circular")
        if padding_mode not in modes:
            raise ValueError(f"padding_mode must be one of {set(modes)}, but got '{padding_mode}'")
        first, second = out_channels, in_channels // groups
        if self.transposed:
            first, second = in_channels, out_channels // groups
        shape = (first, second, *self.kernel_size)
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight, then bias, from U(-1/sqrt(fan_in), 1/sqrt(fan_in))."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        count = self.dimensions
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        if self.padding != (0,) * count:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * count:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * count:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    """A convolution; `functional` is the function behind it."""

    functional: ClassVar[Any]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._pads(), mode=self.padding_mode)
            padding = (0,) * self.dimensions
        return type(self).functional(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )

    def _saved_state(self) -> dict[str, Any]:
        return {**super()._saved_state(), "_reversed_padding_repeated_twice": self._pads()}

    def _pads(self) -> list[int]:
        """The amounts for `functional.pad`: last dimension first, before and after."""
        pads: list[int] = []
        for axis in reversed(range(self.dimensions)):
            if isinstance(self.padding, str):
                total = self.dilation[axis] * (self.kernel_size[axis] - 1)
                total = total if self.padding == "same" else 0
                pads += [total // 2, total - total // 2]
            else:
                pads += [self.padding[axis]] * 2
        return pads


class Conv1d(_Conv):
    """Cross-correlation of (N, C, L) with (out, C / groups, k): see `functional.conv1d`."""

    dimensions = 1
    functional = staticmethod(F.conv1d)


class Conv2d(_Conv):
    """Cross-correlation of (N, C, H, W) with (out, C / groups, kh, kw): `functional.conv2d`."""

    dimensions = 2
    functional = staticmethod(F.conv2d)


class Conv3d(_Conv):
    """Cross-correlation of (N, C, D, H, W): see `functional.conv3d`."""

    dimensions = 3
    functional = staticmethod(F.conv3d)


class _ConvTranspose(_ConvNd):
    """The gradient of a convolution with respect to its input, as a layer."""

    transposed = True
    functional: ClassVar[Any]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding,
            groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        padding = self.output_padding
        if output_size is not None:
            padding = self._output_padding(input, tuple(output_size))
        return type(self).functional(
            input, self.weight, self.bias, self.stride, self.padding, padding, self.groups,
            self.dilation,
        )  # fmt: skip

    def _output_padding(self, input: Tensor, size: tuple) -> tuple:
        """What has to be added on one side to reach the wanted size."""
        count = self.dimensions
        if len(size) == input.ndim:
            size = size[-count:]
        if len(size) != count:
            raise ValueError(
                f"{type(self).__name__}: for {input.ndim}D input, output_size must have {count} "
                f"or {input.ndim} elements (got {len(size)})"
            )
        result = []
        for axis in range(count):
            smallest = (
                (input.shape[axis - count] - 1) * self.stride[axis]
                - 2 * self.padding[axis]
                + self.dilation[axis] * (self.kernel_size[axis] - 1)
                + 1
            )
            extra = size[axis] - smallest
            if not 0 <= extra < self.stride[axis]:
                raise ValueError(
                    f"requested an output size of {size}, but valid sizes along dimension {axis} "
                    f"range from {smallest} to {smallest + self.stride[axis] - 1} (for an input of "
                    f"{tuple(input.shape)})"
                )
            result.append(extra)
        return tuple(result)


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution of (N, C, L): see `functional.conv_transpose1d`."""

    dimensions = 1
    functional = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution of (N, C, H, W): see `functional.conv_transpose2d`."""

    dimensions = 2
    functional = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution of (N, C, D, H, W): see `functional.conv_transpose3d`."""

    dimensions = 3
    functional = staticmethod(F.conv_transpose3d)

"""Convolutions and transposed convolutions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.nn.modules.lazy import LazyModuleMixin
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.modules.utils import _ntuple, _reverse_repeat_tuple
from tensorflow_lite_clone.nn.parameter import Parameter, UninitializedParameter
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]


class _ConvNd(Module):
    """What all convolutions share; the sizes are tuples with a number per sliding dimension."""

    weight: Tensor
    bias: Tensor | None
    dimensions: ClassVar[int]
    functional: ClassVar[Any]  # the function behind it

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: tuple[int, ...] | str,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if transposed and padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string '{padding}', should be one of {{'valid', 'same'}}"
                )
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        modes = ("zeros", "reflect", "replicate", "circular")
        if padding_mode not in modes:
            raise ValueError(f"padding_mode must be one of {set(modes)}, but got '{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._pads()
        self.weight = Parameter(empty(self._weight_shape(), device=device, dtype=dtype))
        self._register_empty("bias", out_channels if bias else None, device, dtype)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return first, second // self.groups, *self.kernel_size

    def _pads(self) -> list[int]:
        """The amounts for `functional.pad`: last dimension first, before and after."""
        if not isinstance(self.padding, str):
            return list(_reverse_repeat_tuple(self.padding, 2))
        pads: list[int] = []
        for length, step in zip(reversed(self.kernel_size), reversed(self.dilation)):
            total = step * (length - 1) if self.padding == "same" else 0
            pads += [total // 2, total - total // 2]
        return pads

    def reset_parameters(self) -> None:
        """Draw weight, then bias, from U(-1/sqrt(fan_in), 1/sqrt(fan_in))."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        count = len(self.kernel_size)
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
    """A convolution."""

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
        per_axis = _ntuple(self.dimensions)
        super().__init__(
            in_channels,
            out_channels,
            per_axis(kernel_size),
            per_axis(stride),
            padding if isinstance(padding, str) else per_axis(padding),
            per_axis(dilation),
            False,
            per_axis(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution with another weight and bias."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * len(self.kernel_size)
        return type(self).functional(
            input, weight, bias, self.stride, padding, self.dilation, self.groups
        )

    def forward(self, input: Tensor) -> Tensor:
        weight, bias = self._pair(self._parameters, "weight", "bias")
        return self._conv_forward(input, weight, bias)


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


class _ConvTransposeNd(_ConvNd):
    """What transposed convolutions share; only zeros can be padded with."""

    def _output_padding(
        self,
        input: Tensor,
        output_size: Any,
        stride: Any,
        padding: Any,
        kernel_size: Any,
        num_spatial_dims: int,
        dilation: Any = None,
    ) -> Any:
        """What has to be added on one side to reach the wanted size.

        ValueError if `stride` does not leave that size open.
        """
        count = num_spatial_dims
        if output_size is None:
            return _ntuple(1)(self.output_padding)
        size = output_size
        batched = input.ndim == count + 2
        if len(size) == count + (2 if batched else 1):
            size = size[-count:]
        if len(size) != count:
            raise ValueError(
                f"ConvTranspose{count}D: for {input.ndim}D input, output_size must have {count} "
                f"or {input.ndim} elements (got {len(size)})"
            )
        steps = (1,) * count if dilation is None else dilation
        smallest = [
            (input.shape[axis - count] - 1) * stride[axis]
            - 2 * padding[axis]
            + steps[axis] * (kernel_size[axis] - 1)
            + 1
            for axis in range(count)
        ]
        largest = [low + step - 1 for low, step in zip(smallest, stride)]
        if any(not low <= n <= high for low, n, high in zip(smallest, size, largest)):
            raise ValueError(
                f"requested an output size of {size}, but valid sizes range from {smallest} to "
                f"{largest} (for an input of {input.shape[2:]})"
            )
        return [n - low for n, low in zip(size, smallest)]


class _ConvTranspose(_ConvTransposeNd):
    """The gradient of a convolution with respect to its input, as a layer."""

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
        per_axis = _ntuple(self.dimensions)
        super().__init__(
            in_channels,
            out_channels,
            per_axis(kernel_size),
            per_axis(stride),
            per_axis(padding),
            per_axis(dilation),
            True,
            per_axis(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        padding = self._output_padding(
            input,
            output_size,
            self.stride,
            self.padding,
            self.kernel_size,
            self.dimensions,
            self.dilation,
        )
        weight, bias = self._pair(self._parameters, "weight", "bias")
        return type(self).functional(
            input, weight, bias, self.stride, self.padding, padding, self.groups, self.dilation
        )


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


class _LazyConvXdMixin(LazyModuleMixin):
    """A convolution that takes `in_channels` from its first input."""

    def _make_lazy(self: Any, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self: Any) -> None:
        """Draw weight and bias, once they have shapes."""
        if not self.has_uninitialized_params() and self.in_channels:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self: Any, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take the shapes from the first input, and draw; ValueError if `groups` do not fit."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        with no_grad():
            self.weight.materialize(self._weight_shape())
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()

    def _get_in_channels(self: Any, input: Tensor) -> int:
        single = len(self.kernel_size) + 1
        if input.ndim not in (single, single + 1):
            raise RuntimeError(
                f"Expected {single}D (unbatched) or {single + 1}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        return input.shape[input.ndim - single]


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self,
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
        # Without channels and bias: the real ones follow, uninitialized.
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):  # type: ignore[misc]
    """A `Conv1d` that takes `in_channels` from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):  # type: ignore[misc]
    """A `Conv2d` that takes `in_channels` from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):  # type: ignore[misc]
    """A `Conv3d` that takes `in_channels` from its first input."""

    cls_to_become = Conv3d


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self,
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
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation,
            padding_mode,
        )  # fmt: skip
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):  # type: ignore[misc]
    """A `ConvTranspose1d` that takes `in_channels` from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):  # type: ignore[misc]
    """A `ConvTranspose2d` that takes `in_channels` from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):  # type: ignore[misc]
    """A `ConvTranspose3d` that takes `in_channels` from its first input."""

    cls_to_become = ConvTranspose3d

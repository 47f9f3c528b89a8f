"""Layers that many vision models are built of, with torchvision's names."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.nn.functional import interpolate
from tensorflow_lite_clone.ops.create.constructors import ones, zeros
from tensorflow_lite_clone.ops.shape.views import permute
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "MLP",
    "Conv2dNormActivation",
    "Conv3dNormActivation",
    "ConvNormActivation",
    "FrozenBatchNorm2d",
    "Permute",
    "SqueezeExcitation",
    "interpolate",
]

Layer = Callable[..., nn.Module]


class FrozenBatchNorm2d(nn.Module):
    """Batch norm whose statistics and affine parameters are fixed buffers.

    `y = weight (x - running_mean) / sqrt(running_var + eps) + bias`, for x (N, C, H, W).
    """

    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", ones(num_features))
        self.register_buffer("bias", zeros(num_features))
        self.register_buffer("running_mean", zeros(num_features))
        self.register_buffer("running_var", ones(num_features))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        # A BatchNorm2d's counter has no meaning here.
        state_dict.pop(f"{prefix}num_batches_tracked", None)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def forward(self, x: Tensor) -> Tensor:
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        shift = self.bias - self.running_mean * scale
        return x * scale.view(1, -1, 1, 1) + shift.view(1, -1, 1, 1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.weight.shape[0]}, eps={self.eps})"


def _same_padding(kernel_size: Any, dilation: Any) -> Any:
    """The padding that keeps the size at stride 1, for odd kernels."""
    if isinstance(kernel_size, int) and isinstance(dilation, int):
        return (kernel_size - 1) // 2 * dilation
    count = len(dilation if isinstance(kernel_size, int) else kernel_size)
    kernels = (kernel_size,) * count if isinstance(kernel_size, int) else kernel_size
    dilations = (dilation,) * count if isinstance(dilation, int) else dilation
    return tuple((k - 1) // 2 * d for k, d in zip(kernels, dilations))


class ConvNormActivation(nn.Sequential):
    """A convolution, a norm and an activation; either of the latter may be None.

    `padding=None` keeps the size at stride 1; `bias=None` has one only without a norm.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any = 3,
        stride: Any = 1,
        padding: Any = None,
        groups: int = 1,
        norm_layer: Layer | None = nn.BatchNorm2d,
        activation_layer: Layer | None = nn.ReLU,
        dilation: Any = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
        conv_layer: Layer = nn.Conv2d,
    ) -> None:
        convolution = conv_layer(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            _same_padding(kernel_size, dilation) if padding is None else padding,
            dilation=dilation,
            groups=groups,
            bias=norm_layer is None if bias is None else bias,
        )
        layers = [convolution]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(**_inplace(inplace)))
        super().__init__(*layers)
        self.out_channels = out_channels
        if type(self) is ConvNormActivation:
            warnings.warn(
                "Don't use ConvNormActivation directly, please use Conv2dNormActivation and "
                "Conv3dNormActivation instead.",
                stacklevel=level_outside(),
            )


def _inplace(inplace: bool | None) -> dict[str, bool]:
    """The argument, for activations that have it; None for those that have not."""
    return {} if inplace is None else {"inplace": inplace}


class Conv2dNormActivation(ConvNormActivation):
    """`Conv2d`, norm, activation: see `ConvNormActivation`."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int] = 3,
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] | str | None = None,
        groups: int = 1,
        norm_layer: Layer | None = nn.BatchNorm2d,
        activation_layer: Layer | None = nn.ReLU,
        dilation: int | tuple[int, int] = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, groups, norm_layer,
            activation_layer, dilation, inplace, bias, nn.Conv2d,
        )  # fmt: skip


class Conv3dNormActivation(ConvNormActivation):
    """`Conv3d`, norm, activation: see `ConvNormActivation`."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int, int] = 3,
        stride: int | tuple[int, int, int] = 1,
        padding: int | tuple[int, int, int] | str | None = None,
        groups: int = 1,
        norm_layer: Layer | None = nn.BatchNorm3d,
        activation_layer: Layer | None = nn.ReLU,
        dilation: int | tuple[int, int, int] = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, groups, norm_layer,
            activation_layer, dilation, inplace, bias, nn.Conv3d,
        )  # fmt: skip


class SqueezeExcitation(nn.Module):
    """Scales each channel by what a small network says of all channels' means.

    `y = x * scale_activation(fc2(activation(fc1(mean(x)))))`, x (N, C, H, W); Hu et al.,
    Squeeze-and-Excitation Networks, 2018.
    """

    def __init__(
        self,
        input_channels: int,
        squeeze_channels: int,
        activation: Layer = nn.ReLU,
        scale_activation: Layer = nn.Sigmoid,
    ) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def forward(self, input: Tensor) -> Tensor:
        squeezed = self.activation(self.fc1(self.avgpool(input)))
        return self.scale_activation(self.fc2(squeezed)) * input


class MLP(nn.Sequential):
    """Linear layers, each but the last followed by norm and activation, all by dropout."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: Sequence[int],
        norm_layer: Layer | None = None,
        activation_layer: Layer | None = nn.ReLU,
        inplace: bool | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        given = _inplace(inplace)
        layers: list[nn.Module] = []
        for index, width in enumerate(hidden_channels):
            layers.append(nn.Linear(in_channels, width, bias=bias))
            if index < len(hidden_channels) - 1:
                if norm_layer is not None:
                    layers.append(norm_layer(width))
                if activation_layer is not None:
                    layers.append(activation_layer(**given))
            layers.append(nn.Dropout(dropout, **given))
            in_channels = width
        super().__init__(*layers)


class Permute(nn.Module):
    """Returns its input with the dimensions in another order."""

    def __init__(self, dims: list[int]) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, x: Tensor) -> Tensor:
        return permute(x, self.dims)

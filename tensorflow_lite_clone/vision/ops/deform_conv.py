"""Deformable convolutions: Dai et al., 2017, and with a mask Zhu et al., Deformable ConvNets v2."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.tensor import Tensor


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)


def deform_conv2d(
    input: Tensor,
    offset: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | tuple[int, int] = (1, 1),
    padding: int | tuple[int, int] = (0, 0),
    dilation: int | tuple[int, int] = (1, 1),
    mask: Tensor | None = None,
) -> Tensor:
    """A convolution of x (N, C, H, W) each of whose taps is read at an offset, and weighed.

    `weight` is (out, C / groups, kh, kw); `offset` (N, 2 G kh kw, oh, ow) holds y and x for each
    tap, `mask` (N, G kh kw, oh, ow) its weight, for G groups of channels. Taps between pixels are
    interpolated linearly, taps outside are 0. Raises RuntimeError for an offset that fits not.
    """
    count, channels, height, width = input.shape
    kernel_height, kernel_width = weight.shape[-2:]
    taps = kernel_height * kernel_width
    groups = offset.shape[1] // (2 * taps)
    if groups == 0 or offset.shape[1] != 2 * taps * groups:
        raise RuntimeError(
            "the shape of the offset tensor at dimension 1 is not valid. It should be a multiple "
            f"of 2 * weight.size[2] * weight.size[3]. Got offset.shape[1]={offset.shape[1]}, while "
            f"2 * weight.size[2] * weight.size[3]={2 * taps}"
        )
    sizes = []
    for side, kernel, by, around, spacing in zip(
        (height, width), weight.shape[-2:], _pair(stride), _pair(padding), _pair(dilation)
    ):
        sizes.append((side + 2 * around - spacing * (kernel - 1) - 1) // by + 1)
    if list(offset.shape[2:]) != sizes:
        raise RuntimeError(
            f"offset output dims: ({offset.shape[2]}, {offset.shape[3]}) - computed output dims: "
            f"({sizes[0]}, {sizes[1]})"
        )
    rows, columns = sizes
    options = {"dtype": input.dtype, "device": input.device}
    # Where each tap of each output lies without an offset: (kh, oh) and (kw, ow).
    y, x = (
        arange(kernel, **options)[:, None] * spacing + arange(size, **options) * by - around
        for kernel, size, by, around, spacing in zip(
            weight.shape[-2:], sizes, _pair(stride), _pair(padding), _pair(dilation)
        )
    )
    shape = (count * groups, kernel_height, kernel_width, rows, columns)
    moved = offset.view(count * groups, taps, 2, rows, columns)
    y = moved[:, :, 0].reshape(shape) + y[:, None, :, None]
    x = moved[:, :, 1].reshape(shape) + x[:, None, :]
    # grid_sample counts from -1 to 1 over the edges of the outermost pixels.
    grid = stack([(2 * x + 1) / width - 1, (2 * y + 1) / height - 1], dim=-1)
    read = F.grid_sample(
        input.reshape(count * groups, channels // groups, height, width),
        grid.view(count * groups, taps * rows, columns, 2),
        mode="bilinear",
        padding_mode="zeros",
        align_corners=False,
    ).view(count, groups, channels // groups, taps, rows * columns)
    if mask is not None:
        read = read * mask.reshape(count, groups, 1, taps, rows * columns)
    out_channels, per_group = weight.shape[:2]
    parts = channels // per_group
    read = read.reshape(count, parts, per_group * taps, rows * columns)
    kernels = weight.reshape(parts, out_channels // parts, per_group * taps)
    result = (kernels @ read).view(count, out_channels, rows, columns)
    return result if bias is None else result + bias.view(1, -1, 1, 1)


class DeformConv2d(nn.Module):
    """`deform_conv2d` as a layer, called with the input, the offset and perhaps the mask.

    Raises ValueError if the groups do not divide the channels.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _pair(kernel_size)
        self.stride = _pair(stride)
        self.padding = _pair(padding)
        self.dilation = _pair(dilation)
        self.groups = groups
        self.weight = nn.Parameter(empty(out_channels, in_channels // groups, *self.kernel_size))
        if bias:
            self.bias = nn.Parameter(empty(out_channels))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(math.prod(self.weight.shape[1:]))
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:
        return deform_conv2d(
            input, offset, self.weight, self.bias, self.stride, self.padding, self.dilation, mask
        )

    def __repr__(self) -> str:
        shown = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        if self.padding != (0, 0):
            shown += f", padding={self.padding}"
        if self.dilation != (1, 1):
            shown += f", dilation={self.dilation}"
        if self.groups != 1:
            shown += f", groups={self.groups}"
        return f"{type(self).__name__}({shown}{', bias=False' if self.bias is None else ''})"

"""``unfold`` takes patches out of images as columns, ``fold`` adds them back."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.backends.windows import Ints, int_tuple, windows_size
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops.nn._windows import folded, unfolded
from tensorflow_lite_clone.ops.pointwise._operands import refuse
from tensorflow_lite_clone.tensor import Tensor


class Unfold(Op):
    """x (n, c, h, w) as (n, c * kernel, windows)."""

    name = "im2col"
    label = "Im2Col"

    def forward(F, x, *, size, kernel, stride, padding, dilation):
        count = windows_size(size, kernel, stride, padding, dilation)
        windows = unfolded(F, x, count, kernel, stride, padding, dilation)
        shape = (x.shape[0], x.shape[1] * math.prod(kernel), math.prod(count))
        return F.reshape(windows, shape)

    def backward_x(F, g, *, size, kernel, stride, padding, dilation):
        return F.col2im(
            g, size=size, kernel=kernel, stride=stride, padding=padding, dilation=dilation
        )


class Fold(Op):
    """x (n, c * kernel, windows) added up to (n, c, *size)."""

    name = "col2im"
    label = "Col2Im"

    def forward(F, x, *, size, kernel, stride, padding, dilation):
        count = windows_size(size, kernel, stride, padding, dilation)
        channels = x.shape[1] // math.prod(kernel)
        windows = F.reshape(x, (x.shape[0], channels, *kernel, *count))
        return folded(F, windows, size, kernel, stride, padding, dilation)

    def backward_x(F, g, *, size, kernel, stride, padding, dilation):
        return F.im2col(
            g, size=size, kernel=kernel, stride=stride, padding=padding, dilation=dilation
        )


def _settings(name: str, **values: Any) -> dict[str, Ints]:
    settings = {}
    for argument, value in values.items():
        setting = int_tuple(value, 2, name, argument)
        if setting is None:
            raise RuntimeError(f"It is expected {argument} equals to 2, but got size {len(value)}")
        if argument == "padding" and min(setting) < 0:
            raise RuntimeError(f"padding should be non-negative, but got {setting}")
        if argument != "padding" and min(setting) < 1:
            raise RuntimeError(
                f"{argument.replace('_', ' ')} should be greater than zero, but got {setting}"
            )
        settings[argument.removesuffix("_size")] = setting
    return settings


def _expect_floating(name: str, input: Tensor) -> None:
    if input.dtype.kind in "iu":
        refuse(name, input.dtype)


@public("functional")
def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The patches of images (n, c, h, w) or (c, h, w) as columns: (n, c * kernel, patches)."""
    _expect_floating("unfold", input)
    settings = _settings(
        "unfold", kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )
    shape = input.shape
    if input.ndim not in (3, 4) or 0 in shape[-3:]:
        if input.ndim < 3:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{input.ndim or 1}, "
                f"{(input.ndim or 1) - 1}], but got {input.ndim or 1})"
            )
        raise RuntimeError(
            f"Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )
    count = windows_size(shape[-2:], **settings)
    if min(count) < 1:
        raise RuntimeError(
            f"Given input with spatial size {tuple(shape[-2:])}, kernel_size={settings['kernel']}, "
            f"dilation={settings['dilation']}, padding={settings['padding']}, calculated shape of "
            f"the array of sliding blocks as {count}, but its components must be at least one."
        )
    size = tuple(shape[-2:])
    if input.ndim == 4:
        return apply(Unfold, input, size=size, **settings)
    return apply(Unfold, input.unsqueeze(0), size=size, **settings).squeeze(0)


@public("functional")
def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """The inverse of `unfold` up to overlaps, which are summed: (n, c, *output_size)."""
    _expect_floating("fold", input)
    settings = _settings(
        "fold", output_size=output_size, kernel_size=kernel_size, dilation=dilation,
        padding=padding, stride=stride,
    )  # fmt: skip
    size = settings.pop("output")
    if input.ndim not in (2, 3):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            f"non-zero dimensions for input, but got: {list(input.shape)}"
        )
    if not input.shape[-2] or input.shape[-2] % math.prod(settings["kernel"]):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={input.shape[-2]} and kernel_size={settings['kernel']}."
        )
    count = windows_size(size, **settings)
    if math.prod(count) != input.shape[-1] or min(count) < 1:
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={settings['kernel']}, "
            f"dilation={settings['dilation']}, padding={settings['padding']}, "
            f"stride={settings['stride']}, expected size of input's dimension 2 to match the "
            f"calculated number of sliding blocks {count[0]} * {count[1]} = {math.prod(count)}, "
            f"but got input.size(2)={input.shape[-1]}."
        )
    if input.ndim == 3:
        return apply(Fold, input, size=size, **settings)
    return apply(Fold, input.unsqueeze(0), size=size, **settings).squeeze(0)

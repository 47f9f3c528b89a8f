"""Gradients of convolutions as functions of their own, as ``torch.nn.grad``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.gradients import grad
from tensorflow_lite_clone.autograd.mode import enable_grad, is_grad_enabled
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.tensor import Tensor


def _gradient(
    y: Callable[[Tensor], Tensor], size: Any, other: Tensor, grad_output: Tensor
) -> Tensor:
    """The gradient of the convolution ``y(x)`` for an x of `size`, which it depends on linearly."""
    x = grad_output.new_zeros(tuple(size)).requires_grad_()
    recorded = is_grad_enabled() and (other.requires_grad or grad_output.requires_grad)
    with enable_grad():
        output = y(x)
    (gx,) = grad(output, x, grad_output, create_graph=recorded)
    assert gx is not None  # y is made of it
    return gx


def _input_gradient(convolution: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def gradient(
        input_size: Any,
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        y = lambda x: convolution(x, weight, None, stride, padding, dilation, groups)
        return _gradient(y, input_size, weight, grad_output)

    gradient.__name__ = gradient.__qualname__ = f"{convolution.__name__}_input"
    gradient.__doc__ = f"The gradient of `{convolution.__name__}` for an input of `input_size`."
    return gradient


def _weight_gradient(convolution: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def gradient(
        input: Tensor,
        weight_size: Any,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        y = lambda x: convolution(input, x, None, stride, padding, dilation, groups)
        return _gradient(y, weight_size, input, grad_output)

    gradient.__name__ = gradient.__qualname__ = f"{convolution.__name__}_weight"
    gradient.__doc__ = f"The gradient of `{convolution.__name__}` for a weight of `weight_size`."
    return gradient


conv1d_input, conv2d_input, conv3d_input = map(_input_gradient, (F.conv1d, F.conv2d, F.conv3d))
conv1d_weight, conv2d_weight, conv3d_weight = map(_weight_gradient, (F.conv1d, F.conv2d, F.conv3d))

"""Gradients of convolutions as functions of their own, as ``torch.nn.grad``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.gradients import grad
from tensorflow_lite_clone.autograd.mode import enable_grad, is_grad_enabled
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.tensor import Tensor


def _input_gradient(name: str, convolution: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def gradient(
        input_size: Any,
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        input = grad_output.new_zeros(tuple(input_size)).requires_grad_()
        with enable_grad():
            y = convolution(input, weight, None, stride, padding, dilation, groups)
        recorded = is_grad_enabled() and (weight.requires_grad or grad_output.requires_grad)
        (result,) = grad(y, input, grad_output, create_graph=recorded)
        assert result is not None  # y is made of it
        return result

    gradient.__name__ = gradient.__qualname__ = name
    gradient.__doc__ = f"The gradient of `{convolution.__name__}` for an input of `input_size`."
    return gradient


def _weight_gradient(name: str, convolution: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def gradient(
        input: Tensor,
        weight_size: Any,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        weight = grad_output.new_zeros(tuple(weight_size)).requires_grad_()
        with enable_grad():
            y = convolution(input, weight, None, stride, padding, dilation, groups)
        recorded = is_grad_enabled() and (input.requires_grad or grad_output.requires_grad)
        (result,) = grad(y, weight, grad_output, create_graph=recorded)
        assert result is not None  # y is made of it
        return result

    gradient.__name__ = gradient.__qualname__ = name
    gradient.__doc__ = f"The gradient of `{convolution.__name__}` for a weight of `weight_size`."
    return gradient


conv1d_input = _input_gradient("conv1d_input", F.conv1d)
conv2d_input = _input_gradient("conv2d_input", F.conv2d)
conv3d_input = _input_gradient("conv3d_input", F.conv3d)
conv1d_weight = _weight_gradient("conv1d_weight", F.conv1d)
conv2d_weight = _weight_gradient("conv2d_weight", F.conv2d)
conv3d_weight = _weight_gradient("conv3d_weight", F.conv3d)

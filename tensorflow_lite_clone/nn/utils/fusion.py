"""A layer and the batch normalisation after it as one layer, as ``torch.nn.utils.fusion``.

In evaluation mode a batch normalisation is ``x * scale + shift`` per channel, which the layer's
weight and bias can take in.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from tensorflow_lite_clone.nn.parameter import Parameter
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution that normalises with these statistics, too.

    `bn_rm` and `bn_rv` are running mean and variance, `bn_w` and `bn_b` weight and bias of the
    normalisation, None for 1 and 0. `transpose` says that the outputs are dimension 1 of `conv_w`.
    """
    scale = (bn_rv + bn_eps).rsqrt()
    if bn_w is not None:
        scale = bn_w * scale
    sizes = [1] * conv_w.ndim
    sizes[1 if transpose else 0] = -1
    weight = (conv_w * scale.reshape(sizes)).to(conv_w.dtype)
    bias = (-bn_rm if conv_b is None else conv_b - bn_rm) * scale
    if bn_b is not None:
        bias = bias + bn_b
    return (
        Parameter(weight, conv_w.requires_grad),
        Parameter(
            bias.to(conv_w.dtype if conv_b is None else conv_b.dtype),
            conv_b is not None and conv_b.requires_grad,
        ),
    )


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer that normalises, too; see `fuse_conv_bn_weights`."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _fused(layer: Any, bn: Any, transpose: bool) -> Any:
    """A copy of `layer` with the normalisation in its weight and bias."""
    fused = deepcopy(layer)
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    statistics = (bn.running_mean, bn.running_var, bn.eps)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, *statistics, bn.weight, bn.bias, transpose
    )
    return fused


def _expect_eval(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of the convolution `conv` that does what `conv` and then `bn` do.

    AssertionError unless both are in evaluation mode and `bn` has running statistics.
    `transpose`: `conv` is a transposed convolution.
    """
    _expect_eval(conv, bn)
    return _fused(conv, bn, transpose)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of the layer `linear` that does what `linear` and then `bn` do.

    AssertionError unless both are in evaluation mode, and `bn` has running statistics and one
    channel, or as many as `linear` has outputs.
    """
    _expect_eval(linear, bn)
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    return _fused(linear, bn, transpose=False)

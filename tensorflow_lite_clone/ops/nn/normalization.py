"""Normalisation: layer, group, instance and RMS norm; batch norm is in `batch_norm`.

Every op returns its statistics beside y. They save a first-order backward the work of computing
them again; a recorded backward gets None for them (they are `auxiliary_outputs`) and derives them
from x, so that second derivatives see how they depend on x. Half-precision inputs are normalised
in float32.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, apply_first_output
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.dispatch.result_layout import image
from tensorflow_lite_clone.ops._formulas import conj, wide
from tensorflow_lite_clone.ops.decorators.autocast import autocasts
from tensorflow_lite_clone.ops.nn.batch_norm import (
    batch_norm,
    by_channel,
    channel_sum,
    expect_floats,
    expect_per_channel,
    like,
)
from tensorflow_lite_clone.ops.pointwise._operands import refuse
from tensorflow_lite_clone.tensor import Tensor


def _moments(F: Any, x: Any, axis: Any, eps: float) -> tuple[Any, Any]:
    """Mean and 1 / sqrt(variance + eps) over `axis`, which is kept."""
    mean = F.mean(x, axis=axis, keepdims=True)
    centered = x - mean
    return mean, 1 / F.sqrt(F.mean(centered * centered, axis=axis, keepdims=True) + eps)


class LayerNorm(Op):
    """y = (x - mean) / sqrt(var + eps) * w + b over the last `ndim` dimensions.

    Source: Ba et al., "Layer normalization" (2016).
    """

    cost = costs.normalization
    label = "NativeLayerNorm"
    joined = ("x", "w", "out1", "out2")
    name = "layer_norm"
    nondifferentiable = (1, 2)
    auxiliary_outputs = (1, 2)

    def forward(F, x, w, b, *, ndim, eps):
        shape = x.shape
        size = prod(shape[len(shape) - ndim :])
        rows = wide(F, F.reshape(x, (prod(shape[: len(shape) - ndim]), size)))
        mean, rstd = _moments(F, rows, 1, eps)
        y = (rows - mean) * rstd
        if w is not None:
            y = y * F.reshape(w, (1, size))
        if b is not None:
            y = y + F.reshape(b, (1, size))
        return F.astype(F.reshape(y, shape), x.dtype), mean, rstd

    def backward(F, g, x, w, out1, out2, *, ndim, eps, needs):
        return F.layer_norm_backward(g, x, w, out1, out2, ndim=ndim, eps=eps, needs=needs)


@composite
def layer_norm_backward(F, g, x, w, mean, rstd, *, ndim, eps, needs):
    """gx = rstd (h - mean(h) - z mean(h z)) with h = g w, z = (x - mean) rstd."""
    shape = x.shape
    size = prod(shape[len(shape) - ndim :])
    count = prod(shape[: len(shape) - ndim])
    g = wide(F, F.reshape(g, (count, size)))
    rows = wide(F, F.reshape(x, (count, size)))
    if mean is None:
        mean, rstd = _moments(F, rows, 1, eps)
    z = (rows - mean) * rstd
    gx = gw = gb = None
    if needs[0]:
        h = g if w is None else g * F.reshape(w, (1, size))
        shift = F.mean(h, axis=1, keepdims=True)
        slope = F.mean(h * z, axis=1, keepdims=True)
        gx = F.astype(F.reshape((h - shift - z * slope) * rstd, shape), x.dtype)
    if needs[1]:
        gw = like(F, F.reshape(F.sum(g * z, axis=0), w.shape), w, x)
    if needs[2]:
        gb = like(F, F.reshape(F.sum(g, axis=0), shape[len(shape) - ndim :]), w, x)
    return gx, gw, gb


class RmsNorm(Op):
    """y = x / sqrt(mean(x^2) + eps) * w over the last `ndim` dimensions.

    Source: Zhang and Sennrich, "Root mean square layer normalization" (2019).
    """

    cost = costs.scaling
    layout = image
    nondifferentiable = (1,)
    auxiliary_outputs = (1,)

    def forward(F, x, w, *, ndim, eps):
        axis = tuple(range(len(x.shape) - ndim, len(x.shape)))
        rows = wide(F, x)
        scale = 1 / F.sqrt(F.mean(rows * rows, axis=axis, keepdims=True) + eps)
        y = rows * scale
        if w is not None:
            y = y * w
        return F.astype(y, x.dtype), scale

    def backward(F, g, x, w, out1, *, ndim, eps, needs):
        return F.rms_norm_backward(g, x, w, out1, ndim=ndim, eps=eps, needs=needs)


@composite
def rms_norm_backward(F, g, x, w, scale, *, ndim, eps, needs):
    """gx = s (h - z mean(h z)) with h = g w, z = x s, s = 1 / sqrt(mean(x^2) + eps).

    Of complex numbers w, z and s their conjugates.
    """
    axis = tuple(range(len(x.shape) - ndim, len(x.shape)))
    g, rows = wide(F, g), wide(F, x)
    if scale is None:
        scale = 1 / F.sqrt(F.mean(rows * rows, axis=axis, keepdims=True) + eps)
    z, scale = conj(F, rows * scale), conj(F, scale)
    gx = gw = None
    if needs[0]:
        h = g if w is None else g * conj(F, w)
        gx = F.astype((h - z * F.mean(h * z, axis=axis, keepdims=True)) * scale, x.dtype)
    if needs[1]:
        gw = like(F, F.sum(g * z, axis=tuple(range(len(x.shape) - ndim))), w, x)
    return gx, gw


class GroupNorm(Op):
    """Normalises groups of channels of every sample, then scales and shifts per channel.

    Source: Wu and He, "Group normalization" (2018).
    """

    cost = costs.normalization
    layout = image
    label = "NativeGroupNorm"
    nondifferentiable = (1, 2)
    auxiliary_outputs = (1, 2)

    def forward(F, x, w, b, *, groups, eps):
        shape = x.shape
        rows = wide(F, F.reshape(x, (shape[0] * groups, prod(shape[1:]) // groups)))
        mean, rstd = _moments(F, rows, 1, eps)
        y = F.reshape((rows - mean) * rstd, (shape[0], shape[1], prod(shape[2:])))
        if w is not None:
            y = y * F.reshape(w, (1, shape[1], 1))
        if b is not None:
            y = y + F.reshape(b, (1, shape[1], 1))
        return F.astype(F.reshape(y, shape), x.dtype), mean, rstd

    def backward(F, g, x, w, out1, out2, *, groups, eps, needs):
        return F.group_norm_backward(g, x, w, out1, out2, groups=groups, eps=eps, needs=needs)


@composite
def group_norm_backward(F, g, x, w, mean, rstd, *, groups, eps, needs):
    """`layer_norm_backward` over the groups, with weights per channel."""
    shape = x.shape
    count = (shape[0] * groups, prod(shape[1:]) // groups)
    channels = (shape[0], shape[1], prod(shape[2:]))
    g = by_channel(F, g)
    rows = wide(F, F.reshape(x, count))
    if mean is None:
        mean, rstd = _moments(F, rows, 1, eps)
    z = (rows - mean) * rstd
    gx = gw = gb = None
    if needs[0]:
        h = F.reshape(g if w is None else g * F.reshape(w, (1, shape[1], 1)), count)
        shift = F.mean(h, axis=1, keepdims=True)
        slope = F.mean(h * z, axis=1, keepdims=True)
        gx = F.astype(F.reshape((h - shift - z * slope) * rstd, shape), x.dtype)
    if needs[1]:
        gw = like(F, F.reshape(channel_sum(F, g * F.reshape(z, channels)), (shape[1],)), w, x)
    if needs[2]:
        gb = like(F, F.reshape(channel_sum(F, g), (shape[1],)), w, x)
    return gx, gw, gb


def _check_normalized(
    name: str, input: Tensor, shape: tuple, weight: Tensor | None, bias: Tensor | None = None
) -> None:
    if (
        shape
        and input._storage.physical.shape[-len(shape) :] == shape
        and (weight is None or weight._storage.physical.shape == shape)
        and (bias is None or bias._storage.physical.shape == shape)
    ):
        return
    if not shape:
        raise RuntimeError(
            f"Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
            f"one element, but got normalized_shape = {list(shape)}"
        )
    for parameter in (weight, bias):
        if parameter is not None and tuple(parameter.shape) != shape:
            raise RuntimeError(
                f"Expected weight to be of same shape as normalized_shape, but got weight of "
                f"shape {list(parameter.shape)} and normalized_shape = {list(shape)}"
            )
    if tuple(input.shape[input.ndim - len(shape) :]) != shape or input.ndim < len(shape):
        expected = ", ".join(["*", *map(str, shape)])
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [{expected}], but "
            f"got input of size{list(input.shape)} (in {name})"
        )


@public("torch", "functional")
def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """Normalise over the trailing dimensions `normalized_shape`, then scale and shift."""
    shape = tuple(normalized_shape)
    _check_normalized("layer_norm", input, shape, weight, bias)
    expect_floats("layer_norm", input, weight, bias)
    return apply_first_output(LayerNorm, input, weight, bias, {"ndim": len(shape), "eps": eps})


@public("torch", "functional")
def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide by the root mean square over the trailing dimensions, then scale.

    `eps` defaults to the machine epsilon of the input's dtype.
    """
    shape = tuple(normalized_shape)
    _check_normalized("rms_norm", input, shape, weight)
    if input.dtype.kind in "biu":
        refuse("rms_norm", input.dtype)
    if eps is None:
        eps = 2.0**-52 if input.dtype.name in ("float64", "complex128") else 2.0**-23
    return apply(RmsNorm, input, weight, ndim=len(shape), eps=eps)[0]


def expect_affine(channels: int, input: Tensor, weight: Tensor | None, bias: Tensor | None) -> None:
    """Raise RuntimeError unless weight and bias have an element per channel."""
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and tensor.shape != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in "
                f"input, but got {name} of shape {list(tensor.shape)} and input of shape "
                f"{list(input.shape)}"
            )


@public("torch")
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise `num_groups` groups of channels of every sample of (N, C, ...)."""
    if input.ndim < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.ndim}"
        )
    channels = input.shape[1]
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if channels % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input "
            f"of shape {list(input.shape)} and num_groups={num_groups}"
        )
    expect_affine(channels, input, weight, bias)
    expect_floats("group_norm", input, weight, bias)
    return apply_first_output(GroupNorm, input, weight, bias, {"groups": num_groups, "eps": eps})


@public("functional", names=("group_norm",))
def group_norm_of_several(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """`group_norm`, which raises ValueError for one value a group in a batch of one."""
    shape = input.shape
    if (
        input.ndim >= 2
        and num_groups > 0
        and (shape[0] * shape[1] // num_groups * prod(shape[2:]) == 1)
    ):
        raise ValueError(
            "Expected more than 1 value per channel when training, got input size "
            f"{list(input.shape)}"
        )
    return group_norm(input, num_groups, weight, bias, eps)


@public("functional")
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise every channel of every sample of (N, C, ...) by its own statistics.

    Without `use_input_stats` the running statistics are used, as in `batch_norm`.
    """
    if not use_input_stats:
        rows = input.contiguous()  # the result lies so, whichever statistics are used
        return batch_norm(rows, running_mean, running_var, weight, bias, False, momentum, eps)
    size = prod(input.shape[2:])
    if size == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}"
        )
    channels = input.shape[1]
    expect_per_channel(channels, running_mean, running_var, weight, bias)
    expect_floats("instance_norm", input, running_mean, running_var, weight, bias)
    rows = input.contiguous()
    output, mean, rstd = apply(GroupNorm, rows, weight, bias, groups=channels, eps=eps)
    if running_mean is not None or running_var is not None:
        with no_grad():
            if running_mean is not None:
                batch_mean = mean.reshape(-1, channels).mean(0)
                running_mean.lerp_(batch_mean.to(running_mean.dtype), momentum)
            if running_var is not None:
                variance = rstd.reshape(-1, channels).pow(-2).sub(eps).mean(0)
                unbiased = variance * (size / (size - 1))
                running_var.lerp_(unbiased.to(running_var.dtype), momentum)
    return output


@public("functional")
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """x / (k + alpha mean of x^2 over `size` neighbouring channels)^beta.

    Source: Krizhevsky et al., "ImageNet classification with deep convolutional neural networks"
    (2012).
    """
    if input.ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input "
            f"(got {input.ndim} dimensions)"
        )
    if input.numel() == 0:
        return input
    sums = _channel_sums if input.ndim == 3 else _channel_sums_in_space
    return input / (sums(input.square(), size) * (alpha / size) + k).pow(beta)


def _channel_sums(squares: Tensor, size: int) -> Tensor:
    """Sums over `size` neighbouring channels."""
    before, after = size // 2, (size - 1) // 2
    channels = squares.shape[1]
    total = None
    for offset in range(-before, after + 1):
        low, high = max(0, -offset), min(channels, channels - offset)
        if low >= high:
            continue
        shifted = squares.new_zeros(squares.shape)
        shifted[:, low:high] = squares[:, low + offset : high + offset]
        total = shifted if total is None else total + shifted
    assert total is not None
    if total.dtype.kind in "iu":  # means of integers are integers
        total = total // size * size
    return total


_channel_sums_in_space = autocasts("avg_pool3d")(_channel_sums)

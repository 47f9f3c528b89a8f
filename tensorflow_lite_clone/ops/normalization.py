"""Normalisation: batch, layer, group, instance and RMS norm.

Every op returns its statistics beside y. They save a first-order backward the work of computing
them again; a recorded backward gets None for them (they are `hints`) and derives them from x, so
that second derivatives see how they depend on x. Half-precision inputs are normalised in float32.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.tensor import Tensor


def _wide(F: Any, x: Any) -> Any:
    """`x` in float32 if it is of half precision."""
    return F.astype(x, float32) if x is not None and x.dtype.itemsize == 2 else x


def _moments(F: Any, x: Any, axis: Any, eps: float) -> tuple[Any, Any]:
    """Mean and 1 / sqrt(variance + eps) over `axis`, which is kept."""
    mean = F.mean(x, axis=axis, keepdims=True)
    centered = x - mean
    return mean, 1 / F.sqrt(F.mean(centered * centered, axis=axis, keepdims=True) + eps)


class LayerNorm(Op):
    """y = (x - mean) / sqrt(var + eps) * w + b over the last `ndim` dimensions.

    Source: Ba et al., "Layer normalization" (2016).
    """

    label = "NativeLayerNorm"
    name = "layer_norm"
    nondifferentiable = (1, 2)
    hints = (1, 2)

    def forward(F, x, w, b, *, ndim, eps):
        shape = x.shape
        size = prod(shape[len(shape) - ndim :])
        rows = _wide(F, F.reshape(x, (prod(shape[: len(shape) - ndim]), size)))
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
    g = _wide(F, F.reshape(g, (count, size)))
    rows = _wide(F, F.reshape(x, (count, size)))
    if mean is None:
        mean, rstd = _moments(F, rows, 1, eps)
    z = (rows - mean) * rstd
    gx = gw = gb = None
    if needs[0]:
        h = g if w is None else g * F.reshape(w, (1, size))
        shift = F.mean(h, axis=1, keepdims=True)
        slope = F.mean(h * z, axis=1, keepdims=True)
        gx = F.reshape((h - shift - z * slope) * rstd, shape)
    if needs[1]:
        gw = F.reshape(F.sum(g * z, axis=0), w.shape)
    if needs[2]:
        gb = F.reshape(F.sum(g, axis=0), shape[len(shape) - ndim :])
    return gx, gw, gb


class RmsNorm(Op):
    """y = x / sqrt(mean(x^2) + eps) * w over the last `ndim` dimensions.

    Source: Zhang and Sennrich, "Root mean square layer normalization" (2019).
    """

    nondifferentiable = (1,)
    hints = (1,)

    def forward(F, x, w, *, ndim, eps):
        axis = tuple(range(len(x.shape) - ndim, len(x.shape)))
        wide = _wide(F, x)
        scale = 1 / F.sqrt(F.mean(wide * wide, axis=axis, keepdims=True) + eps)
        y = wide * scale
        if w is not None:
            y = y * w
        return F.astype(y, x.dtype), scale

    def backward(F, g, x, w, out1, *, ndim, eps, needs):
        return F.rms_norm_backward(g, x, w, out1, ndim=ndim, eps=eps, needs=needs)


@composite
def rms_norm_backward(F, g, x, w, scale, *, ndim, eps, needs):
    """gx = s (h - z mean(h z)) with h = g w, z = x s, s = 1 / sqrt(mean(x^2) + eps)."""
    axis = tuple(range(len(x.shape) - ndim, len(x.shape)))
    g, x = _wide(F, g), _wide(F, x)
    if scale is None:
        scale = 1 / F.sqrt(F.mean(x * x, axis=axis, keepdims=True) + eps)
    z = x * scale
    gx = gw = None
    if needs[0]:
        h = g if w is None else g * w
        gx = (h - z * F.mean(h * z, axis=axis, keepdims=True)) * scale
    if needs[1]:
        gw = F.sum(g * z, axis=tuple(range(len(x.shape) - ndim)))
    return gx, gw


def _channels(F: Any, x: Any) -> Any:
    """x as (N, C, L) in float32 or wider."""
    return _wide(F, F.reshape(x, (x.shape[0], x.shape[1], prod(x.shape[2:]))))


def _per_channel(F: Any, x: Any) -> Any:
    """The sum of an (N, C, L) array over N and L, kept as (1, C, 1)."""
    return F.sum(F.sum(x, axis=2, keepdims=True), axis=0, keepdims=True)


def _batch_moments(F: Any, x: Any) -> tuple[Any, Any]:
    """Mean and biased variance of an (N, C, L) array per channel, as (1, C, 1)."""
    count = x.shape[0] * x.shape[2]
    mean = _per_channel(F, x) / count
    centered = x - mean
    return mean, _per_channel(F, centered * centered) / count


class BatchNorm(Op):
    """y = (x - mean) / sqrt(var + eps) * w + b, statistics per channel over the batch.

    Also returns mean and biased variance, of shape (C,). Source: Ioffe and Szegedy, "Batch
    normalization" (2015).
    """

    label = "NativeBatchNorm"
    nondifferentiable = (1, 2)
    hints = (1, 2)

    def forward(F, x, w, b, *, eps):
        wide = _channels(F, x)
        channels = x.shape[1]
        mean, variance = _batch_moments(F, wide)
        scale = 1 / F.sqrt(variance + eps)
        if w is not None:
            scale = scale * F.reshape(w, (1, channels, 1))
        y = (wide - mean) * scale
        if b is not None:
            y += F.reshape(b, (1, channels, 1))
        y = F.astype(F.reshape(y, x.shape), x.dtype)
        return y, F.reshape(mean, (channels,)), F.reshape(variance, (channels,))

    def backward(F, g, x, w, out1, out2, *, eps, needs):
        return F.batch_norm_backward(g, x, w, out1, out2, eps=eps, needs=needs)


@composite
def batch_norm_backward(F, g, x, w, mean, variance, *, eps, needs):
    """gx = w r (g - mean(g) - c r^2 mean(g c)) with c = x - mean, r = 1 / sqrt(var + eps)."""
    shape = x.shape
    channels = (1, shape[1], 1)
    g, x = _channels(F, g), _channels(F, x)
    if mean is None:
        mean, variance = _batch_moments(F, x)
    else:
        mean, variance = F.reshape(mean, channels), F.reshape(variance, channels)
    r = 1 / F.sqrt(variance + eps)
    c = x - mean
    gb = _per_channel(F, g)
    slope = _per_channel(F, g * c)
    gx = None
    if needs[0]:
        count = x.shape[0] * x.shape[2]
        scale = r if w is None else r * F.reshape(w, channels)
        gx = F.reshape((g - gb / count - c * (r * r * slope / count)) * scale, shape)
    return (
        gx,
        F.reshape(slope * r, (shape[1],)) if needs[1] else None,
        F.reshape(gb, (shape[1],)) if needs[2] else None,
    )


class GroupNorm(Op):
    """Normalises groups of channels of every sample, then scales and shifts per channel.

    Source: Wu and He, "Group normalization" (2018).
    """

    label = "NativeGroupNorm"
    nondifferentiable = (1, 2)
    hints = (1, 2)

    def forward(F, x, w, b, *, groups, eps):
        shape = x.shape
        rows = _wide(F, F.reshape(x, (shape[0] * groups, prod(shape[1:]) // groups)))
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
    g = _channels(F, g)
    rows = _wide(F, F.reshape(x, count))
    if mean is None:
        mean, rstd = _moments(F, rows, 1, eps)
    z = (rows - mean) * rstd
    gx = gw = gb = None
    if needs[0]:
        h = F.reshape(g if w is None else g * F.reshape(w, (1, shape[1], 1)), count)
        shift = F.mean(h, axis=1, keepdims=True)
        slope = F.mean(h * z, axis=1, keepdims=True)
        gx = F.reshape((h - shift - z * slope) * rstd, shape)
    if needs[1]:
        gw = F.reshape(_per_channel(F, g * F.reshape(z, channels)), (shape[1],))
    if needs[2]:
        gb = F.reshape(_per_channel(F, g), (shape[1],))
    return gx, gw, gb


def _check_normalized(name: str, input: Tensor, shape: tuple, *parameters: Tensor | None) -> None:
    if not shape:
        raise RuntimeError(
            f"Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
            f"one element, but got normalized_shape = {list(shape)}"
        )
    for parameter in parameters:
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
    return apply(LayerNorm, input, weight, bias, ndim=len(shape), eps=eps)[0]


@public("torch", "functional")
def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide by the root mean square over the trailing dimensions, then scale.

    `eps` defaults to the machine epsilon of the input's dtype.
    """
    shape = tuple(normalized_shape)
    _check_normalized("rms_norm", input, shape, weight)
    if eps is None:
        eps = {2: 2.0**-23, 4: 2.0**-23, 8: 2.0**-52}[input.dtype.itemsize]
    return apply(RmsNorm, input, weight, ndim=len(shape), eps=eps)[0]


def _check_running(name: str, tensor: Tensor | None, channels: int) -> None:
    if tensor is not None and tensor.shape != (channels,):
        raise RuntimeError(
            f"{name} should contain {channels} elements not {tensor.numel()}"
        )


@public("functional")
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise every channel of (N, C, ...) by its statistics over the batch.

    In training the running statistics move towards the batch's (the unbiased variance) by
    `momentum`; otherwise they are what is used. Raises ValueError for one value per channel in
    training.
    """
    if input.ndim < 2:
        raise RuntimeError(f"batch_norm expected at least 2 dimensions, got {input.ndim}")
    channels = input.shape[1]
    for name, tensor in (
        ("running_mean", running_mean),
        ("running_var", running_var),
        ("weight", weight),
        ("bias", bias),
    ):
        _check_running(name, tensor, channels)
    if training:
        count = input.numel() // max(channels, 1)
        if count == 1:
            raise ValueError(
                "Expected more than 1 value per channel when training, got input size "
                f"{input.shape}"
            )
        output, mean, variance = apply(BatchNorm, input, weight, bias, eps=eps)
        if not count:  # nothing was seen
            return output
        with no_grad():
            if running_mean is not None:
                running_mean.lerp_(mean.to(running_mean.dtype), momentum)
            if running_var is not None:
                unbiased = variance * (count / (count - 1))
                running_var.lerp_(unbiased.to(running_var.dtype), momentum)
        return output
    if running_mean is None or running_var is None:
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when training=False"
        )
    shape = (1, channels) + (1,) * (input.ndim - 2)
    scale = (running_var + eps).rsqrt()
    if weight is not None:
        scale = scale * weight
    shift = -running_mean * scale
    if bias is not None:
        shift = shift + bias
    return (input * scale.reshape(shape) + shift.reshape(shape)).to(input.dtype)


@public("torch", "functional")
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
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and tensor.shape != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in "
                f"input, but got {name} of shape {list(tensor.shape)} and input of shape "
                f"{list(input.shape)}"
            )
    return apply(GroupNorm, input, weight, bias, groups=num_groups, eps=eps)[0]


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
        return batch_norm(
            input, running_mean, running_var, weight, bias, False, momentum, eps
        )
    size = prod(input.shape[2:])
    if size == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}"
        )
    channels = input.shape[1]
    output, mean, rstd = apply(GroupNorm, input, weight, bias, groups=channels, eps=eps)
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
    before, after = size // 2, (size - 1) // 2
    squares = input.square()
    channels = input.shape[1]
    total = None
    for offset in range(-before, after + 1):
        low, high = max(0, -offset), min(channels, channels - offset)
        if low >= high:
            continue
        shifted = input.new_zeros(input.shape)
        shifted[:, low:high] = squares[:, low + offset : high + offset]
        total = shifted if total is None else total + shifted
    assert total is not None
    return input / (total * (alpha / size) + k).pow(beta)

"""Batch normalisation, in training and in evaluation, and its running statistics.

As in `normalization`, half-precision inputs are normalised in float32, and the statistics of the
batch are outputs that save a first-order backward the work of computing them again.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.autograd.inplace import write
from tensorflow_lite_clone.autograd.saved import packing_last
from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.dispatch.result_layout import image
from tensorflow_lite_clone.ops._formulas import wide
from tensorflow_lite_clone.ops.decorators.autocast import active as autocast
from tensorflow_lite_clone.ops.pointwise._operands import expect_constant, refuse
from tensorflow_lite_clone.tensor import Tensor


def like(F: Any, gradient: Any, w: Any, x: Any) -> Any:
    """The gradient of a weight or bias in the weight's dtype, or without a weight in x's."""
    return F.astype(gradient, (x if w is None else w).dtype)


def by_channel(F: Any, x: Any) -> Any:
    """x as (N, C, L) in float32 or wider."""
    return wide(F, F.reshape(x, (x.shape[0], x.shape[1], prod(x.shape[2:]))))


def channel_sum(F: Any, x: Any) -> Any:
    """The sum of an (N, C, L) array over N and L, kept as (1, C, 1)."""
    return F.sum(F.sum(x, axis=2, keepdims=True), axis=0, keepdims=True)


def _batch_moments(F: Any, x: Any) -> tuple[Any, Any]:
    """Mean and biased variance of an (N, C, L) array per channel, as (1, C, 1)."""
    count = x.shape[0] * x.shape[2]
    mean = channel_sum(F, x) / count
    centered = x - mean
    return mean, channel_sum(F, centered * centered) / count


def _normalized(F: Any, x: Any, rows: Any, w: Any, b: Any, mean: Any, scale: Any) -> Any:
    """(rows - mean) * scale * w + b in x's shape and dtype; mean and scale are (1, C, 1)."""
    channels = (1, x.shape[1], 1)
    if w is not None:
        scale = scale * F.reshape(wide(F, w), channels)
    y = (rows - mean) * scale
    if b is not None:
        y += F.reshape(wide(F, b), channels)
    return F.astype(F.reshape(y, x.shape), x.dtype)


class BatchNorm(Op):
    """y = (x - mean) / sqrt(var + eps) * w + b, statistics per channel over the batch.

    Outputs are y, the mean and the biased variance, of shape (C,), and, where running statistics
    are given, their new values: s + momentum (batch's - s), with the unbiased variance. A device
    may write these in place and return the other three outputs. Source: Ioffe and Szegedy, "Batch
    normalization" (2015).
    """

    cost = costs.normalization
    layout = image
    layout_agnostic = True
    label = "NativeBatchNorm"
    joined = ("x", "w")
    fusable_backward = True
    mutates = (3, 4)
    nondifferentiable = (1, 2, 3, 4)
    auxiliary_outputs = (1, 2, 3, 4)

    def forward(F, x, w, b, running_mean, running_var, *, momentum, eps):
        rows = by_channel(F, x)
        mean, variance = _batch_moments(F, rows)
        y = _normalized(F, x, rows, w, b, mean, 1 / F.sqrt(variance + eps))
        mean, variance = F.reshape(mean, (x.shape[1],)), F.reshape(variance, (x.shape[1],))
        results = [y, mean, variance]
        if running_mean is not None:
            new = running_mean + (mean - running_mean) * momentum
            results.append(F.astype(new, running_mean.dtype))
        if running_var is not None:
            count = rows.shape[0] * rows.shape[2]
            new = running_var + (variance * (count / (count - 1)) - running_var) * momentum
            results.append(F.astype(new, running_var.dtype))
        return tuple(results)

    def backward(F, g, x, w, out1, out2, *, eps, needs):
        gradients = F.batch_norm_backward(g, x, w, out1, out2, eps=eps, needs=needs[:3])
        return (*gradients, None, None)


@composite
def batch_norm_backward(F, g, x, w, mean, variance, *, eps, needs):
    """gx = w r (g - mean(g) - c r^2 mean(g c)) with c = x - mean, r = 1 / sqrt(var + eps)."""
    shape = x.shape
    channels = (1, shape[1], 1)
    g, rows = by_channel(F, g), by_channel(F, x)
    if mean is None:
        mean, variance = _batch_moments(F, rows)
    else:
        mean, variance = F.reshape(mean, channels), F.reshape(variance, channels)
    r = 1 / F.sqrt(variance + eps)
    c = rows - mean
    gb = channel_sum(F, g)
    slope = channel_sum(F, g * c)
    gx = None
    if needs[0]:
        count = rows.shape[0] * rows.shape[2]
        scale = r if w is None else r * F.reshape(w, channels)
        gx = F.reshape((g - gb / count - c * (r * r * slope / count)) * scale, shape)
        gx = F.astype(gx, x.dtype)
    return (
        gx,
        like(F, F.reshape(slope * r, (shape[1],)), w, x) if needs[1] else None,
        like(F, F.reshape(gb, (shape[1],)), w, x) if needs[2] else None,
    )


class BatchNormEval(Op):
    """y = (x - mean) / sqrt(var + eps) * w + b with the running statistics, of shape (C,)."""

    cost = costs.scaling
    layout = image
    layout_agnostic = True
    label = "NativeBatchNorm"
    joined = ("x", "w")

    def forward(F, x, w, b, mean, variance, *, eps):
        channels = (1, x.shape[1], 1)
        scale = F.reshape(1 / F.sqrt(wide(F, variance) + eps), channels)
        mean = F.reshape(wide(F, mean), channels)
        return _normalized(F, x, by_channel(F, x), w, b, mean, scale)

    def backward(F, g, x, w, mean, variance, *, eps, needs):
        gradients = F.batch_norm_eval_backward(g, x, w, mean, variance, eps=eps, needs=needs[:3])
        return (*gradients, None, None)


@composite
def batch_norm_eval_backward(F, g, x, w, mean, variance, *, eps, needs):
    """gx = g w r, gw = sum(g (x - mean)) r, gb = sum(g) with r = 1 / sqrt(var + eps)."""
    shape = x.shape
    channels = (1, shape[1], 1)
    g = by_channel(F, g)
    r = 1 / F.sqrt(F.reshape(wide(F, variance), channels) + eps)
    gx = gw = gb = None
    if needs[0]:
        scale = r if w is None else r * F.reshape(w, channels)
        gx = F.astype(F.reshape(g * scale, shape), x.dtype)
    if needs[1]:
        c = by_channel(F, x) - F.reshape(wide(F, mean), channels)
        gw = like(F, F.reshape(channel_sum(F, g * c) * r, (shape[1],)), w, x)
    if needs[2]:
        gb = like(F, F.reshape(channel_sum(F, g), (shape[1],)), w, x)
    return gx, gw, gb


def expect_per_channel(channels: int, *tensors: Tensor | None) -> None:
    """Raise RuntimeError for running statistics, weight or bias of another number of elements."""
    expected = (channels,)
    place = -1
    for tensor in tensors:
        place += 1
        if tensor is not None and tensor._storage.physical.shape != expected:
            name = ("running_mean", "running_var", "weight", "bias")[place]
            raise RuntimeError(f"{name} should contain {channels} elements not {tensor.numel()}")


def expect_floats(name: str, input: Tensor, *parameters: Tensor | None) -> None:
    """Raise for inputs that are no real floats, and for parameters of another dtype.

    Inputs of two bytes go with parameters of float32, too. Autocast brings all to one dtype later.
    """
    dtype = input.dtype
    if dtype.kind != "f":
        refuse(name, dtype)
    for parameter in parameters:
        if parameter is None or parameter.dtype is dtype or autocast:
            continue
        if dtype.itemsize != 2 or parameter.dtype is not float32:
            raise RuntimeError(
                f"{name}(): mixed dtype: expected parameters of {dtype.short_name}, as the input, "
                f"but got one of {parameter.dtype.short_name}"
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
    training, for an eps that is not positive, or when only one running statistic is given.
    """
    shape = input._storage.physical.shape
    if training and shape and prod(shape[2:], start=shape[0]) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {input.shape}"
        )
    if eps < 0 or (training and eps == 0):
        expected = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {expected}, but got {eps}")
    if momentum is None:
        raise TypeError("batch_norm(): argument 'momentum' must be float, not NoneType")
    if 0 in shape:  # nothing is looked at but the first weight and bias, as in PyTorch
        result = input.clone()
        result = result if weight is None else result * weight[0]
        return result if bias is None else result + bias[0]
    if len(shape) < 2:
        raise RuntimeError(f"batch_norm expected at least 2 dimensions, got {len(shape)}")
    channels = shape[1]
    expect_per_channel(channels, running_mean, running_var, weight, bias)
    expect_floats("batch_norm", input, running_mean, running_var, weight, bias)
    if not training and (running_mean is None or running_var is None):
        missing = "running_mean" if running_mean is None else "running_var"
        raise RuntimeError(f"{missing} must be defined in evaluation mode")
    if (running_mean is None) is not (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    expect_constant("native_batch_norm", "running_mean", running_mean)
    expect_constant("native_batch_norm", "running_var", running_var)
    if not training:
        return apply(BatchNormEval, input, weight, bias, running_mean, running_var, eps=eps)
    return normalized_by_batch(input, weight, bias, running_mean, running_var, momentum, eps)[0]


def normalized_by_batch(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`BatchNorm`'s output, mean and variance; the running statistics are moved."""
    with packing_last():
        output, mean, variance, *moved = apply(
            BatchNorm, input, weight, bias, running_mean, running_var, momentum=momentum, eps=eps
        )
        running = [statistic for statistic in (running_mean, running_var) if statistic is not None]
        if not moved:
            for statistic in running:
                statistic._storage.bump()  # the device has written it
        else:
            for statistic, new in zip(running, moved, strict=True):
                _move(statistic, new)
    return output, mean, variance


def _move(statistic: Tensor, new: Tensor) -> None:
    """Write the new value of a running statistic, which may have been lifted by `func.vmap`."""
    array, backend = new._storage.array, new._storage.backend
    while backend is not statistic._storage.backend:
        if backend.differs(array):
            raise RuntimeError(
                "Batch norm got a batched tensor as input while the running_mean or running_var, "
                "which will be updated in place, were not batched.\nIf you are using a module and "
                "do not need eval mode, please set `track_running_stats` to be False.If you are "
                "using a prebuilt module and do not need eval mode, please see the functorch "
                "website for resources on how to patch your module to work with vmap"
            )
        array, backend = array.data, backend.base
    write(statistic, array)

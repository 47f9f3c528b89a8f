"""Normalisations and dropout under the signatures that they have in `torch`.

They give the statistics out that the functions of `nn.functional` keep to themselves.
"""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.dtypes import bool_
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import normalize_dim
from tensorflow_lite_clone.ops.create.constructors import empty, empty_like, ones_like
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.nn import batch_norm as batch_norms
from tensorflow_lite_clone.ops.nn import normalization
from tensorflow_lite_clone.ops.random.generators import drawing
from tensorflow_lite_clone.tensor import Tensor


@public("torch")
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.batch_norm` with its arguments in another order."""
    return native_batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )[0]


@public("torch")
@with_out
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The normalised input, and of the batch the means and ``1 / sqrt(var + eps)``, (C,) each.

    Outside of training the statistics are empty.
    """
    normalize_dim(1, input.ndim)
    batch_norms.expect_per_channel(input.shape[1], running_mean, running_var, weight, bias)
    batch_norms.expect_floats("batch_norm", input, running_mean, running_var, weight, bias)
    if not training:
        normed = batch_norms.batch_norm(
            input, running_mean, running_var, weight, bias, False, momentum, eps
        )
        none = empty(0, dtype=input.dtype, device=input.device)
        return normed, none, none.clone()
    out, mean, variance = batch_norms.normalized_by_batch(
        input, weight, bias, running_mean, running_var, momentum, eps
    )
    with no_grad():
        rstd = (variance + eps).rsqrt()
    return out, mean.to(input.dtype), rstd.to(input.dtype)


@public("torch")
@with_out
def _native_batch_norm_legit(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, *others: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """`native_batch_norm`, also without the two running statistics."""
    statistics = (None, None) if isinstance(others[0], bool) else ()
    return native_batch_norm(input, weight, bias, *statistics, *others)


@public("torch")
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.instance_norm` with its arguments in another order."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    if use_input_stats and math.prod(input.shape[2:]) == 1 and running_mean is running_var is None:
        groups = input.shape[1]  # one element has itself as its mean
        return apply(normalization.GroupNorm, input, weight, bias, groups=groups, eps=eps)[0]
    return normalization.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


@public("torch")
def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm`, and the means and ``1 / sqrt(var + eps)``; the normalised axes have length 1.

    The statistics have no gradient.
    """
    shape = tuple(normalized_shape)
    normalization._check_normalized("native_layer_norm", input, shape, weight, bias)
    batch_norms.expect_floats("layer_norm", input, weight, bias)
    parts = apply(normalization.LayerNorm, input, weight, bias, ndim=len(shape), eps=eps)
    outer = (*input.shape[: input.ndim - len(shape)], *(1,) * len(shape))
    return parts[0], *[part.reshape(outer).to(input.dtype).contiguous() for part in parts[1:]]


@public("torch")
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`group_norm` of N samples of C channels, and the means and ``1 / sqrt(var + eps)`` of the
    groups, (N, group). The statistics have no gradient.

    Raises RuntimeError when `C` is not divisible by `group`, or the sizes are not the input's.
    """
    if group <= 0 or C % group:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(input.shape)} and num_groups={group}"
        )
    if input.numel() != N * C * HxW:
        raise RuntimeError(f"Expected an input of {N * C * HxW} elements, got {input.numel()}")
    normalization.expect_affine(C, input, weight, bias)
    batch_norms.expect_floats("group_norm", input, weight, bias)
    parts = apply(normalization.GroupNorm, input, weight, bias, groups=group, eps=eps)
    return parts[0], *[part.reshape(N, group).to(input.dtype) for part in parts[1:]]


@public("torch")
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """`dropout`, and what was kept; `train` None is True.

    Raises RuntimeError unless p is in [0, 1].
    """
    if not input.numel():
        return input.clone(), input.new_ones(input.shape)
    if train is False:
        return input.clone(), ones_like(input, dtype=bool_)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={1 - p}")
    input = drawing(input)
    kept = empty_like(input.detach()).bernoulli_(1 - p)
    return input * (kept * (1 / (1 - p) if p < 1 else 0.0)), kept.bool()

"""Losses made of others: margins, embeddings, likelihoods."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from tensorflow_lite_clone.core.dtypes import float32, int64, uncastable
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops._samples import holds
from tensorflow_lite_clone.ops.create.constructors import full_like
from tensorflow_lite_clone.ops.linalg.norms import pairwise_distance
from tensorflow_lite_clone.ops.nn._losses import as_computed, expect_same_size, finish, reduction_of
from tensorflow_lite_clone.ops.nn.activation_smooth import logsigmoid
from tensorflow_lite_clone.ops.pointwise._operands import expect_constant, refuse
from tensorflow_lite_clone.ops.shape._views import stepwise
from tensorflow_lite_clone.tensor import Tensor


@public("functional")
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``log(1 + exp(-target * input))`` of targets 1 and -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    expect_constant("soft_margin_loss", "target", target)
    expect_same_size("soft_margin_loss", input, target)
    product = target * -input
    if product.dtype.kind in "iu":
        raise uncastable(float32, product.dtype)
    return finish(as_computed(product.exp().log1p(), input.dtype), reduction)


@public("functional")
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    far = (full_like(input, margin) - input).clamp_min(0).masked_fill(target == 1, 0)
    near = input.masked_fill(target == -1, 0)
    return finish(near + far, reduction)


@public("functional")
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``."""
    reduction = reduction_of(size_average, reduce, reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return finish((-target * (input1 - input2) + float(margin)).clamp_min(0), reduction)


@public("functional")
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1.

    Inputs are (N, D) with targets (N,), or (D,) with a zero-dim target.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    ndim = target.ndim + 1
    if input1.ndim != ndim or input2.ndim != ndim:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {ndim}D input tensors, but found inputs with "
            f"sizes {list(input1.shape)} and {list(input2.shape)}."
        )
    # PyTorch adds 1e-12 under the root here, unlike cosine_similarity.
    squares1 = (input1 * input1).sum(-1) + 1e-12
    squares2 = (input2 * input2).sum(-1) + 1e-12
    cosine = (input1 * input2).sum(-1) / (squares1 * squares2).sqrt()
    near = (1 - cosine).masked_fill(target != 1, 0)
    far = (cosine - margin).clamp_min(0).masked_fill(target != -1, 0)
    return finish(near + far, reduction)


@public("functional")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, |anchor - positive| - |anchor - negative| + margin)`` in `pairwise_distance`.

    With `swap` the negative is compared with the nearer of anchor and positive.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = partial(pairwise_distance, p=p, eps=eps)
    return triplet(distance, anchor, positive, negative, margin, swap, reduction)


@public("functional")
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` in any distance, by default `pairwise_distance`."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = distance_function or pairwise_distance
    return triplet(distance, anchor, positive, negative, margin, swap, reduction)


def triplet(
    distance: Callable[[Tensor, Tensor], Tensor],
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    """`triplet_margin_loss` in this distance, for any margin."""
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
            f"{negative.ndim}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return finish((near - far + margin).clamp_min(0), reduction)


def _batch_of_rows(input: Tensor) -> tuple[int, int]:
    """(N, C) of an (N, C), (C,) or zero-dim input; RuntimeError for any other."""
    shape = input.shape
    if len(shape) > 2 or not all(shape[-1:]):
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(shape)}"
        )
    return (shape[0] if len(shape) == 2 else 1), (shape[-1] if shape else 1)


def _expect_classes(target: Tensor) -> None:
    if target.numel() and target.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.short_name}")


def _positive(x: Tensor) -> Tensor:
    """`x` where it is positive, else 0, which has no gradient: for 0 and NaN too, as in PyTorch."""
    return x.masked_fill((x > 0).logical_not(), 0)


@public("functional")
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: float = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Per row ``sum_j max(0, margin - x[target] + x[j])^p / C`` over the other classes j.

    `weight` holds a factor per target class. Raises RuntimeError for targets out of range.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    rows, classes = _batch_of_rows(input)
    if input.dtype.kind != "f":
        refuse("multi_margin_loss", input.dtype)
    if target.ndim > 1 or target.numel() != rows:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of "
            f"input samples (batch size). Expected target size [{rows}], but got "
            f"{list(target.shape)}. Input has shape {list(input.shape)}."
        )
    if weight is not None and weight.ndim != 1:
        raise ValueError(f"weight must be one-dimensional, but has {weight.ndim} dimensions")
    if weight is not None and weight.shape[0] != classes:
        raise RuntimeError(
            f"inconsistent weight size, expected {classes} but got {list(weight.shape)}"
        )
    expect_constant("multi_margin_loss", "weight", weight)
    _expect_classes(target)
    if rows and not holds((target >= 0) & (target < classes)):
        raise RuntimeError("target out of range")
    index = target.reshape(rows, 1).to(int64)
    x = stepwise(input).reshape(rows, classes)
    terms = _positive(margin - x.gather(1, index) + x)
    if p == 2:
        terms = terms * terms
    if weight is not None:
        terms = terms * weight[index]
    hot = index == target.new_tensor(range(classes))
    values = terms.masked_fill(hot, 0).sum(1) / classes
    return finish(values if target.ndim else values.squeeze(0), reduction)


@public("functional")
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Per row ``sum_ij max(0, 1 - x[i] + x[j]) / C`` over target classes i and the others j.

    A row of `target` lists its classes up to the first -1.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    rows, classes = _batch_of_rows(input)
    if input.dtype.kind != "f":
        refuse("multilabel_margin_loss", input.dtype)
    single = input.ndim < 2
    if (target.ndim > 1 or target.numel() != classes) if single else target.shape != input.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    _expect_classes(target)
    if not holds((target >= -1) & (target < classes)):
        raise RuntimeError("argument #2 'target' is out of range")
    labels = target.reshape(rows, classes).to(int64)
    x = stepwise(input).reshape(rows, classes)
    listed = (labels == -1).cumsum(1) == 0
    index = labels.masked_fill(~listed, 0)
    every = target.new_tensor(range(classes))
    is_target = ((index.unsqueeze(2) == every) & listed.unsqueeze(2)).any(1)
    terms = _positive(1 - x.gather(1, index).unsqueeze(2) + x.unsqueeze(1))
    terms = terms.masked_fill(~listed.unsqueeze(2) | is_target.unsqueeze(1), 0)
    values = terms.sum((1, 2)) / classes
    return finish(values.squeeze(0) if single else values, reduction)


@public("functional")
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of ``-w * log(sigmoid(x))`` for targets 1, of -x for targets 0.

    `target` and `weight` may be of any dtype, and broadcast with `input`.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if not input.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    values = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        values = values * weight
    axis = input.ndim - 1
    return finish(values.sum(axis) / input.shape[axis], reduction)


@public("functional")
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``exp(input) - target * input``, or ``input - target * log(input + eps)``.

    `full` adds Stirling's ``t * log(t) - t + log(2 pi t) / 2`` for targets above 1.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if log_input:
        values = input.exp() - target * input
    else:
        values = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        values = values + stirling.masked_fill(target <= 1, 0)
    return finish(values, reduction)


def _other_sizes(shape: Any, other: Any) -> list[int]:
    """The sizes in `other` that are not those of `shape`."""
    return [m for n, m in zip(shape, other) if n != m]


@public("functional")
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """``(log(v) + (input - target)^2 / v) / 2`` with v the variance, at least `eps`.

    `var` has `input`'s shape, lacks its last dimension or has length 1 in one of them. `full` adds
    ``log(2 pi) / 2``. The bound `eps` does not enter the gradient.
    """
    if not isinstance(var, Tensor):
        var = input.new_full(input.shape, var)
    elif var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif input.ndim != var.ndim or _other_sizes(input.shape, var.shape) != [1]:
            raise ValueError(
                f"var is of incorrect size: {list(var.shape)} for input of size {list(input.shape)}"
            )
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    if not holds((var < 0).logical_not()):
        raise ValueError("var has negative entry/entries")
    var = var + (eps - var.detach()).clamp_min(0)
    values = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        values = values + 0.5 * math.log(2 * math.pi)
    return finish(values, reduction)

"""Losses that compare element by element: squares, absolute values, cross-entropies, margins."""

from __future__ import annotations

import warnings
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import uncastable
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import broadcast_shapes
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.dispatch.result_layout import elementwise, like_first
from tensorflow_lite_clone.ops.decorators.autocast import active as autocast
from tensorflow_lite_clone.ops.decorators.autocast import calls_cast_operands, cast_operands
from tensorflow_lite_clone.ops.nn._losses import (
    as_computed,
    expect_same_size,
    finish,
    loss_operands,
    reduced,
    reduction_of,
    spread,
)
from tensorflow_lite_clone.ops.pointwise._operands import (
    as_operands,
    expect_constant,
    operand_dtype,
    refuse,
)
from tensorflow_lite_clone.tensor import Tensor


class MseLoss(Op):
    """``(x - y)^2``, reduced."""

    cost = costs.loss_of_differences
    layout = elementwise

    def forward(F, x, y, *, reduction):
        d = x - y
        return reduced(F, d * d, reduction, x.dtype)

    def backward(F, g, x, y, *, reduction, needs):
        gx = F.mse_loss_backward(g, x, y, reduction=reduction)
        return (gx if needs[0] else None), (-gx if needs[1] else None)


@composite
def mse_loss_backward(F, g, x, y, *, reduction):
    """``gx = 2 * g * (x - y)``."""
    d = x - y
    return d * (spread(g, reduction, d.shape) * 2)


def _label_by_reduction(without: str) -> Any:
    """A label for losses that PyTorch reduces by an op of its own; `without` where it does not."""
    return lambda node: {"mean": "Mean", "sum": "Sum"}.get(node.parameters["reduction"], without)


class L1Loss(Op):
    """``|x - y|``, reduced."""

    cost = costs.loss_of_differences
    layout = elementwise
    label = _label_by_reduction("Abs")

    def forward(F, x, y, *, reduction):
        d = F.abs(x - y)
        return reduced(F, d, reduction, d.dtype)

    def backward(F, g, x, y, *, reduction, needs):
        gx = F.l1_loss_backward(g, x, y, reduction=reduction)
        return (gx if needs[0] else None), (-gx if needs[1] else None)


@composite
def l1_loss_backward(F, g, x, y, *, reduction):
    """``gx = g * sign(x - y)``."""
    d = x - y
    return F.sgn(d) * spread(g, reduction, d.shape)


class SmoothL1Loss(Op):
    """``d^2 / (2 beta)`` for ``|d| < beta``, else ``|d| - beta / 2``, reduced."""

    cost = costs.loss_of_differences
    layout = elementwise

    def forward(F, x, y, *, reduction, beta):
        d = x - y
        size = F.abs(d)
        values = F.where(size < beta, d * d * (0.5 / beta), size - 0.5 * beta)
        return reduced(F, values, reduction, x.dtype)

    def backward(F, g, x, y, *, reduction, beta, needs):
        gx = F.smooth_l1_loss_backward(g, x, y, reduction=reduction, beta=beta)
        return (gx if needs[0] else None), (-gx if needs[1] else None)


@composite
def smooth_l1_loss_backward(F, g, x, y, *, reduction, beta):
    """``gx = g * d / beta`` between -1 and 1."""
    d = x - y
    slope = F.where(F.abs(d) >= beta, F.sgn(d), d / beta)
    return slope * spread(g, reduction, d.shape)


class HuberLoss(Op):
    """``d^2 / 2`` for ``|d| <= delta``, else ``delta * (|d| - delta / 2)``, reduced."""

    cost = costs.loss_of_differences
    layout = elementwise

    def forward(F, x, y, *, reduction, delta):
        d = x - y
        size = F.abs(d)
        values = F.where(size <= delta, d * d * 0.5, (size - 0.5 * delta) * delta)
        return reduced(F, values, reduction, x.dtype)

    def backward(F, g, x, y, *, reduction, delta, needs):
        gx = F.huber_loss_backward(g, x, y, reduction=reduction, delta=delta)
        return (gx if needs[0] else None), (-gx if needs[1] else None)


@composite
def huber_loss_backward(F, g, x, y, *, reduction, delta):
    """``gx = g * d`` between -delta and delta."""
    d = x - y
    slope = F.where(F.abs(d) > delta, F.sgn(d) * delta, d)
    return slope * spread(g, reduction, d.shape)


def _compare(
    op: type[Op],
    input: Tensor,
    target: Tensor,
    reduction: str,
    weight: Tensor | None,
    **parameters: Any,
) -> Tensor:
    x, y = loss_operands(input, target)
    if op is HuberLoss and x.dtype is not input.dtype:  # the one whose dtype is not promoted
        values = as_computed(apply(op, x, y, reduction="none", **parameters), input.dtype)
        return finish(values if weight is None else values * weight, reduction)
    if weight is None:
        return apply(op, x, y, reduction=reduction, **parameters)
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    values = apply(op, x, y, reduction="none", **parameters) * weight
    if reduction == "mean" and op is not HuberLoss:
        return values.sum() / weight.sum()
    return finish(values, reduction)


@public("functional")
@calls_cast_operands("mse_loss")
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``(input - target)^2``; 'mean' with `weight` divides by the sum of weights."""
    if size_average is not None or reduce is not None or reduction != "mean":
        reduction = reduction_of(size_average, reduce, reduction)
    if autocast and weight is None:  # with weights it is made of other functions
        input, target = cast_operands(mse_loss, input, target)
    if input.dtype.kind in "biu" and target.dtype.kind in "biu":
        refuse("mse_cpu", input.dtype)
    return _compare(MseLoss, input, target, reduction, weight)


@public("functional")
@calls_cast_operands("l1_loss")
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``|input - target|``; 'mean' with `weight` divides by the sum of weights."""
    reduction = reduction_of(size_average, reduce, reduction)
    if autocast and weight is None:
        input, target = cast_operands(l1_loss, input, target)
    if input.dtype.kind in "biu" and target.dtype.kind in "biu":
        return finish((input - target).abs(), reduction)
    return _compare(L1Loss, input, target, reduction, weight)


@public("functional")
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """``d^2 / (2 beta)`` where ``|d| < beta``, else ``|d| - beta / 2``; d is input - target."""
    reduction = reduction_of(size_average, reduce, reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    return _compare(SmoothL1Loss, input, target, reduction, None, beta=beta)


@public("functional")
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """``d^2 / 2`` where ``|d| <= delta``, else ``delta * (|d| - delta / 2)``; d = x - y."""
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    reduction = reduction_of(None, None, reduction)
    return _compare(HuberLoss, input, target, reduction, weight, delta=delta)


class BinaryCrossEntropy(Op):
    """``-w * (y * log(x) + (1 - y) * log(1 - x))``, logarithms no less than -100, reduced."""

    cost = costs.loss_of_logarithms
    layout = like_first

    def forward(F, x, y, weight, *, reduction):
        F.check_range(x, 0, 1, "all elements of input should be between 0 and 1")
        log_x, log_rest = _bounded_logs(F, x)
        values = (y - 1) * log_rest - y * log_x
        if weight is not None:
            values = values * weight
        return reduced(F, values, reduction, x.dtype)

    def backward_x(F, g, x, y, weight, *, reduction):
        return F.binary_cross_entropy_backward(g, x, y, weight, reduction=reduction)

    def backward_y(F, g, x, weight, *, reduction):
        log_x, log_rest = _bounded_logs(F, x)
        gy = (log_rest - log_x) * spread(g, reduction, x.shape)
        return gy if weight is None else gy * weight


def _bounded_logs(F: Any, x: Any) -> tuple:
    log_x, log_rest = F.log(x), F.log1p(-x)
    return F.where(log_x < -100, -100, log_x), F.where(log_rest < -100, -100, log_rest)


@composite
def binary_cross_entropy_backward(F, g, x, y, weight, *, reduction):
    """``gx = g * w * (x - y) / max(x * (1 - x), 1e-12)``."""
    spread_x = x * (1 - x)
    gx = (x - y) / F.where(spread_x < 1e-12, 1e-12, spread_x) * spread(g, reduction, x.shape)
    return gx if weight is None else gx * weight


@public("functional")
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-w * (y * log(x) + (1 - y) * log(1 - x))`` of probabilities x and targets y.

    Raises ValueError when the shapes differ, RuntimeError for values outside [0, 1].
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is deprecated. Please ensure they have the same size."
        )
    if target.dtype is not input.dtype:
        raise RuntimeError(
            f"Found dtype {target.dtype.short_name} but expected {input.dtype.short_name}"
        )
    if weight is not None:
        expect_same_size("binary_cross_entropy", input, weight)
        expect_constant("binary_cross_entropy", "weight", weight)
    return apply(BinaryCrossEntropy, input, target, weight, reduction=reduction)


def _target_first(shape: tuple, operands: tuple, parameters: dict) -> tuple:
    """As PyTorch's formulas begin with the target."""
    return elementwise(shape, (operands[1], operands[0], *operands[2:]), parameters)


class BinaryCrossEntropyWithLogits(Op):
    """`BinaryCrossEntropy` of ``sigmoid(x)``, with a factor for the positive term, reduced."""

    cost = costs.loss_of_logarithms
    layout = _target_first

    def forward(F, x, y, weight, pos_weight, *, reduction):
        dtype = x.dtype
        soft = F.log1p(F.exp(-F.abs(x)))
        if pos_weight is None:
            values = (1 - y) * x + (soft + F.where(x < 0, -x, 0))
        else:
            values = (1 - y) * x + ((pos_weight - 1) * y + 1) * (soft + F.where(x < 0, -x, 0))
        if weight is not None:
            values = values * weight
        return reduced(F, values, reduction, dtype)

    def backward_x(F, g, x, y, weight, pos_weight, *, reduction):
        return F.binary_cross_entropy_with_logits_backward(
            g, x, y, weight, pos_weight, reduction=reduction
        )

    def backward_y(F, g, x, weight, pos_weight, *, reduction):
        gy = -x
        if pos_weight is not None:
            gy = gy - (pos_weight - 1) * F.log(F.sigmoid(x))
        gy = gy * spread(g, reduction, x.shape)
        return gy if weight is None else gy * weight


@composite
def binary_cross_entropy_with_logits_backward(F, g, x, y, weight, pos_weight, *, reduction):
    """``gx = g * w * (sigmoid(x) - y)``, terms of y weighted with `pos_weight`."""
    if pos_weight is None:
        gx = F.sigmoid(x) - y
    else:
        positive = pos_weight * y
        gx = (positive + 1 - y) * F.sigmoid(x) - positive
    if weight is not None:
        gx = gx * weight
    return gx * spread(g, reduction, x.shape)


@public("functional")
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of ``sigmoid(input)``, stable; `pos_weight` multiplies positive terms.

    Raises ValueError when the shapes differ.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Target size ({target.shape}) must be the same as input size ({input.shape})"
        )
    if input.dtype.kind in "biu":
        refuse("binary_cross_entropy_with_logits", input.dtype)
    if target.dtype.kind in "biu":
        raise uncastable(input.dtype, target.dtype)
    for name, factor in (("weight", weight), ("pos_weight", pos_weight)):
        if factor is not None:
            expect_same_size("binary_cross_entropy_with_logits", input, factor)
            expect_constant("binary_cross_entropy_with_logits", name, factor)
    if target.dtype is not input.dtype:
        input, target = as_operands((input, target), operand_dtype(input, target))
    return apply(
        BinaryCrossEntropyWithLogits, input, target, weight, pos_weight, reduction=reduction
    )


class KlDiv(Op):
    """``t * (log(t) - x)`` of log-probabilities x, reduced; t may be given as its logarithm."""

    cost = costs.loss_of_logarithms
    layout = _target_first
    label = _label_by_reduction("Sub")

    def forward(F, x, t, *, reduction, log_target):
        if log_target:
            values = F.exp(t) * (t - x)
        else:
            values = F.where(t == 0, 0, t * F.log(t)) - t * x
        return reduced(F, values, reduction, values.dtype)

    def backward_x(F, g, x, t, *, reduction, log_target):
        weights = F.exp(t) if log_target else t
        if x.shape != t.shape:
            weights = F.broadcast_to(weights, broadcast_shapes(x.shape, t.shape))
        return -weights * spread(g, reduction, weights.shape)

    def backward_t(F, g, x, t, *, reduction, log_target):
        gt = F.exp(t) * (t - x + 1) if log_target else F.log(t) + 1 - x
        return gt * spread(g, reduction, gt.shape)


@public("functional")
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """``target * (log(target) - input)`` of log-probabilities `input`.

    'batchmean' divides the sum by the length of the first dimension.
    """
    batch = reduction == "batchmean" and size_average is None and reduce is None
    if batch:
        reduction = "sum"
    elif reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support "
            "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next "
            "major release.",
            stacklevel=level_outside(),
        )
    reduction = reduction_of(size_average, reduce, reduction)
    for tensor in (input, target):
        if tensor.dtype.kind != "f":
            raise RuntimeError(
                "kl_div(): expected floating-point inputs, but got one of "
                f"{tensor.dtype.short_name}"
            )
    broadcast_shapes(input.shape, target.shape)
    x, t = as_operands((input, target), operand_dtype(input, target))
    result = apply(KlDiv, x, t, reduction=reduction, log_target=log_target)
    return result / input.shape[0] if batch and input.ndim else result

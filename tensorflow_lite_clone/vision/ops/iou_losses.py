"""Losses of predicted boxes (..., 4) against others of the same shape, of their overlap."""

from __future__ import annotations

import math

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.ops.boxes import _angle, _upcast_non_float


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The loss as it is, its mean or its sum; ValueError for another word."""
    if reduction == "none":
        return loss
    if reduction == "mean":
        return loss.mean() if loss.numel() > 0 else 0.0 * loss.sum()
    if reduction == "sum":
        return loss.sum()
    raise ValueError(
        f"Invalid Value for arg 'reduction': '{reduction} \n"
        " Supported reduction modes: 'none', 'mean', 'sum'"
    )


def _inter_union(boxes1: Tensor, boxes2: Tensor) -> tuple[Tensor, Tensor]:
    low = boxes1[..., :2].maximum(boxes2[..., :2])
    high = boxes1[..., 2:].minimum(boxes2[..., 2:])
    overlapping = (high > low).all(-1)
    inter = where(overlapping, (high - low).prod(-1), 0.0)
    return inter, _area(boxes1) + _area(boxes2) - inter


def _area(boxes: Tensor) -> Tensor:
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def _hull(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """The sides (..., 2) of the smallest boxes around each pair."""
    return boxes1[..., 2:].maximum(boxes2[..., 2:]) - boxes1[..., :2].minimum(boxes2[..., :2])


def generalized_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7
) -> Tensor:
    """`1 - generalized_box_iou`, box by box; Rezatofighi et al., 2019."""
    boxes1, boxes2 = _upcast_non_float(boxes1), _upcast_non_float(boxes2)
    inter, union = _inter_union(boxes1, boxes2)
    area = _hull(boxes1, boxes2).prod(-1)
    return reduced(1 - (inter / (union + eps) - (area - union) / (area + eps)), reduction)


def _distance(boxes1: Tensor, boxes2: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The distance loss and the IoU."""
    inter, union = _inter_union(boxes1, boxes2)
    iou = inter / (union + eps)
    diagonal = _hull(boxes1, boxes2).square().sum(-1) + eps
    offset = ((boxes1[..., :2] + boxes1[..., 2:]) - (boxes2[..., :2] + boxes2[..., 2:])) / 2
    return 1 - iou + offset.square().sum(-1) / diagonal, iou


def distance_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7
) -> Tensor:
    """`1 - distance_box_iou`, box by box; Zheng et al., 2020."""
    boxes1, boxes2 = _upcast_non_float(boxes1), _upcast_non_float(boxes2)
    return reduced(_distance(boxes1, boxes2, eps)[0], reduction)


def complete_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7
) -> Tensor:
    """`1 - complete_box_iou`, box by box; Zheng et al., 2020."""
    boxes1, boxes2 = _upcast_non_float(boxes1), _upcast_non_float(boxes2)
    loss, iou = _distance(boxes1, boxes2, eps)
    v = 4 / math.pi**2 * (_angle(boxes2) - _angle(boxes1)).square()
    with no_grad():
        alpha = v / (1 - iou + v + eps)
    return reduced(loss + alpha * v, reduction)

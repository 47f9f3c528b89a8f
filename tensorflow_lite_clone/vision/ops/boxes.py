"""Boxes: areas, overlaps, and which to keep of many. Where not said otherwise they are (N, 4),
corners (x1, y1, x2, y2) with x1 <= x2 and y1 <= y2."""

from __future__ import annotations

import math

import numpy as np

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.dtypes import float32, float64, int32, int64
from tensorflow_lite_clone.ops.create.constructors import as_tensor, zeros
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.ops._convert import STRAIGHT, box_convert

__all__ = [
    "batched_nms",
    "box_area",
    "box_convert",
    "box_iou",
    "clip_boxes_to_image",
    "complete_box_iou",
    "distance_box_iou",
    "generalized_box_iou",
    "masks_to_boxes",
    "nms",
    "remove_small_boxes",
]


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Non-maximum suppression: which boxes (N, 4) to keep, best first, int64.

    A box goes if it overlaps one of higher score (N,) that stays by more than `iou_threshold`.
    Raises RuntimeError for other shapes.
    """
    if boxes.ndim != 2:
        raise RuntimeError(f"boxes should be a 2d tensor, got {boxes.ndim}D")
    if boxes.shape[1] != 4:
        raise RuntimeError(f"boxes should have 4 elements in dimension 1, got {boxes.shape[1]}")
    if scores.ndim != 1:
        raise RuntimeError(f"scores should be a 1d tensor, got {scores.ndim}D")
    if scores.shape[0] != boxes.shape[0]:
        raise RuntimeError(
            "boxes and scores should have same number of elements in dimension 0, got "
            f"{boxes.shape[0]} and {scores.shape[0]}"
        )
    order = scores.detach().argsort(descending=True, stable=True)
    # The choice is sequential, a row of overlaps for each box that stays: on the host.
    sorted_boxes = _upcast(boxes.detach())[order].cpu().numpy()
    kept = as_tensor(_suppress(sorted_boxes, iou_threshold), dtype=int64, device=order.device)
    return order[kept]


def _suppress(boxes: np.ndarray, threshold: float) -> list[int]:
    """The rows of boxes (N, 4), best first, that stay."""
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    waiting = np.arange(len(boxes))
    kept = []
    while len(waiting):
        best, waiting = waiting[0], waiting[1:]
        kept.append(int(best))
        rest = boxes[waiting]
        low = np.maximum(boxes[best, :2], rest[:, :2])
        high = np.minimum(boxes[best, 2:], rest[:, 2:])
        overlap = np.prod(np.clip(high - low, 0, None), axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):  # boxes without an area
            iou = overlap / (areas[best] + areas[waiting] - overlap)
        waiting = waiting[~(iou > threshold)]
    return kept


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """`nms` within each category of `idxs` (N,): which boxes to keep, best first, int64."""
    few = 4000 if boxes.device.type == "cpu" else 20000
    if boxes.numel() > few:
        return _batched_nms_vanilla(boxes, scores, idxs, iou_threshold)
    return _batched_nms_coordinate_trick(boxes, scores, idxs, iou_threshold)


def _batched_nms_coordinate_trick(
    boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float
) -> Tensor:
    """The categories are moved so far apart that none overlaps another."""
    if boxes.numel() == 0:
        return zeros(0, dtype=int64, device=boxes.device)
    offsets = idxs.to(boxes) * (boxes.max() + 1)
    return nms(boxes + offsets[:, None], scores, iou_threshold)


def _batched_nms_vanilla(
    boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float
) -> Tensor:
    """One category after the other."""
    kept = []
    for category in idxs.unique():
        members = (idxs == category).nonzero()[:, 0]
        kept.append(members[nms(boxes[members], scores[members], iou_threshold)])
    # In the order of the boxes first, so that equal scores come out as from `nms`.
    indices = cat(kept).sort()[0]
    return indices[scores[indices].argsort(descending=True, stable=True)]


def remove_small_boxes(boxes: Tensor, min_size: float) -> Tensor:
    """The indices of the boxes both of whose sides are at least `min_size`."""
    large = (boxes[:, 2] - boxes[:, 0] >= min_size) & (boxes[:, 3] - boxes[:, 1] >= min_size)
    return large.nonzero()[:, 0]


def clip_boxes_to_image(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    """Boxes (..., 4) with their corners moved into a picture of `size` (height, width)."""
    height, width = size
    x = boxes[..., 0::2].clamp(min=0, max=width)
    y = boxes[..., 1::2].clamp(min=0, max=height)
    return stack((x, y), dim=-1).reshape(boxes.shape)


def _upcast(t: Tensor) -> Tensor:
    """Wide enough that products of coordinates do not overflow."""
    if t.is_floating_point():
        return t if t.dtype in (float32, float64) else t.float()
    return t if t.dtype in (int32, int64) else t.int()


def _upcast_non_float(t: Tensor) -> Tensor:
    """A floating type of at least 32 bits."""
    return t if t.dtype in (float32, float64) else t.float()


def box_area(boxes: Tensor, fmt: str = "xyxy") -> Tensor:
    """The areas (N,) of boxes (N, 4) in one of the straight formats; ValueError for others."""
    if fmt not in STRAIGHT:
        raise ValueError(f"Unsupported Bounding Box area for given format {fmt}")
    boxes = _upcast(boxes)
    if fmt == "xyxy":
        return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    return boxes[..., 2] * boxes[..., 3]


def _box_inter_union(boxes1: Tensor, boxes2: Tensor, fmt: str = "xyxy") -> tuple[Tensor, Tensor]:
    """The areas (N, M) of each pair's intersection and union."""
    area1, area2 = box_area(boxes1, fmt), box_area(boxes2, fmt)
    boxes1, boxes2 = (STRAIGHT[fmt][0](boxes) for boxes in (boxes1, boxes2))
    low = boxes1[..., :, None, :2].maximum(boxes2[..., None, :, :2])
    high = boxes1[..., :, None, 2:].minimum(boxes2[..., None, :, 2:])
    sides = _upcast(high - low).clamp(min=0)
    inter = sides[..., 0] * sides[..., 1]
    return inter, area1[..., :, None] + area2[..., None, :] - inter


def box_iou(boxes1: Tensor, boxes2: Tensor, fmt: str = "xyxy") -> Tensor:
    """Intersection over union of each pair of boxes (N, 4) and (M, 4): (N, M).

    Raises ValueError for a format that is not one of the straight ones.
    """
    if fmt not in STRAIGHT:
        raise ValueError(f"Unsupported format '{fmt}'. Supported formats: {tuple(STRAIGHT)}.")
    inter, union = _box_inter_union(boxes1, boxes2, fmt)
    return inter / union


def _hull(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """The sides (N, M, 2) of the smallest boxes around each pair."""
    low = boxes1[:, None, :2].minimum(boxes2[:, :2])
    high = boxes1[:, None, 2:].maximum(boxes2[:, 2:])
    return _upcast(high - low).clamp(min=0)


def generalized_box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """`iou - (hull - union) / hull` of each pair: (N, M), between -1 and 1.

    Source: Rezatofighi et al., Generalized Intersection over Union, 2019.
    """
    inter, union = _box_inter_union(boxes1, boxes2)
    sides = _hull(boxes1, boxes2)
    area = sides[..., 0] * sides[..., 1]
    return inter / union - (area - union) / area


def distance_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Tensor:
    """`iou - d^2 / (c^2 + eps)` of each pair: (N, M), of centres d apart in a hull of diagonal c.

    Source: Zheng et al., Distance-IoU Loss, 2020.
    """
    boxes1, boxes2 = _upcast_non_float(boxes1), _upcast_non_float(boxes2)
    diagonal = _hull(boxes1, boxes2).square().sum(-1) + eps
    centres1, centres2 = ((boxes[:, :2] + boxes[:, 2:]) / 2 for boxes in (boxes1, boxes2))
    distance = (centres1[:, None] - centres2).square().sum(-1)
    return box_iou(boxes1, boxes2) - distance / diagonal


def complete_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Tensor:
    """`distance_box_iou - alpha v` of each pair: (N, M), v saying how much the shapes differ.

    `v = (2 / pi (atan(w1 / h1) - atan(w2 / h2)))^2`, `alpha = v / (1 - iou + v + eps)`; source as
    `distance_box_iou`.
    """
    boxes1, boxes2 = _upcast_non_float(boxes1), _upcast_non_float(boxes2)
    angles = _angle(boxes1)[:, None] - _angle(boxes2)
    v = 4 / math.pi**2 * angles.square()
    with no_grad():
        alpha = v / (1 - box_iou(boxes1, boxes2) + v + eps)
    return distance_box_iou(boxes1, boxes2, eps) - alpha * v


def _angle(boxes: Tensor) -> Tensor:
    """`atan(w / h)`."""
    return ((boxes[..., 2] - boxes[..., 0]) / (boxes[..., 3] - boxes[..., 1])).atan()


def masks_to_boxes(masks: Tensor) -> Tensor:
    """The boxes (N, 4), float32, around the nonzero pixels of masks (N, H, W); 0 for empty ones."""
    if masks.numel() == 0:
        return zeros((0, 4), dtype=float32, device=masks.device)
    boxes = zeros((masks.shape[0], 4), dtype=float32, device=masks.device)
    for box, mask in zip(boxes, masks):
        pixels = mask.nonzero()
        if len(pixels):
            low, high = pixels.min(0).values.flip(0), pixels.max(0).values.flip(0)
            box.copy_(cat([low, high]))
    return boxes

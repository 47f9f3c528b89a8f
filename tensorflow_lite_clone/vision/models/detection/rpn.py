"""Region proposals: Ren et al., Faster R-CNN, 2015."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.ops.create.constructors import full
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models.detection._utils import (
    BalancedPositiveNegativeSampler,
    BoxCoder,
    Matcher,
    Target,
    matched,
    matches_of,
)
from tensorflow_lite_clone.vision.models.detection.anchor_utils import (
    AnchorGenerator as AnchorGenerator,
)
from tensorflow_lite_clone.vision.models.detection.image_list import ImageList
from tensorflow_lite_clone.vision.ops.boxes import (
    batched_nms,
    box_iou,
    clip_boxes_to_image,
    remove_small_boxes,
)
from tensorflow_lite_clone.vision.ops.misc import Conv2dNormActivation


def start_narrow(module: nn.Module) -> None:
    """Lets all convolutions start with small weights and biases of zero."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            init.normal_(layer.weight, std=0.01)
            if layer.bias is not None:
                init.zeros_(layer.bias)


def rename(state_dict: Any, prefix: str, names: Mapping[str, str]) -> None:
    """Gives the weights and biases of layers that have moved since a state was saved new names."""
    for old, new in names.items():
        for kind in ("weight", "bias"):
            if f"{prefix}{old}.{kind}" in state_dict:
                value = state_dict.pop(f"{prefix}{old}.{kind}")
                state_dict[f"{prefix}{new}.{kind}"] = value


class RPNHead(nn.Module):
    """For each anchor whether something is there, and by how much to move and stretch it.

    Takes a list of maps (N, C, H_i, W_i), and returns a list of logits (N, A, H_i, W_i) and one of
    offsets (N, 4 A, H_i, W_i).
    """

    _version = 2

    def __init__(self, in_channels: int, num_anchors: int, conv_depth: int = 1) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            *(
                Conv2dNormActivation(in_channels, in_channels, kernel_size=3, norm_layer=None)
                for _ in range(conv_depth)
            )
        )
        self.cls_logits = nn.Conv2d(in_channels, num_anchors, kernel_size=1)
        self.bbox_pred = nn.Conv2d(in_channels, num_anchors * 4, kernel_size=1)
        start_narrow(self)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        rename(state_dict, prefix, {"conv": "conv.0.0"})
        super()._load_from_state_dict(state_dict, prefix, *args)

    def forward(self, x: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        hidden = [self.conv(level) for level in x]
        return [self.cls_logits(h) for h in hidden], [self.bbox_pred(h) for h in hidden]


def permute_and_flatten(layer: Tensor, N: int, A: int, C: int, H: int, W: int) -> Tensor:
    """(N, A C, H, W) as (N, H W A, C)."""
    return layer.view(N, -1, C, H, W).permute(0, 3, 4, 1, 2).reshape(N, -1, C)


def by_anchor(layer: Tensor, columns: int) -> Tensor:
    """`columns` values for each anchor, in the order of the anchors: (N, H W A, columns)."""
    n, channels, height, width = layer.shape
    return permute_and_flatten(layer, n, channels // columns, columns, height, width)


def concat_box_prediction_layers(
    box_cls: Sequence[Tensor], box_regression: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """The logits (L, C) and offsets (L, 4) of all anchors of all pictures."""
    classes, offsets = [], []
    for logits, regression in zip(box_cls, box_regression):
        columns = logits.shape[1] * 4 // regression.shape[1]
        classes.append(by_anchor(logits, columns))
        offsets.append(by_anchor(regression, 4))
    return cat(classes, dim=1).flatten(0, -2), cat(offsets, dim=1).reshape(-1, 4)


class RegionProposalNetwork(nn.Module):
    """Boxes where something may be: `head`'s predictions for the anchors, the best of them.

    An anchor is positive for the head to learn from if it overlaps a true box by `fg_iou_thresh`
    or best of all, negative if it overlaps none by `bg_iou_thresh`. Of each level
    `pre_nms_top_n` proposals are considered, and of each picture `post_nms_top_n` remain, numbers
    for "training" and "testing". Called with an `ImageList`, maps by name and targets, returns a
    list of boxes (L, 4) and a dictionary of losses, which is empty in evaluation.
    """

    def __init__(
        self,
        anchor_generator: nn.Module,
        head: nn.Module,
        fg_iou_thresh: float,
        bg_iou_thresh: float,
        batch_size_per_image: int,
        positive_fraction: float,
        pre_nms_top_n: Mapping[str, int],
        post_nms_top_n: Mapping[str, int],
        nms_thresh: float,
        score_thresh: float = 0.0,
    ) -> None:
        super().__init__()
        self.anchor_generator = anchor_generator
        self.head = head
        self.box_coder = BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))
        self.box_similarity = box_iou
        self.proposal_matcher = Matcher(
            fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=True
        )
        self.fg_bg_sampler = BalancedPositiveNegativeSampler(
            batch_size_per_image, positive_fraction
        )
        self._pre_nms_top_n = pre_nms_top_n
        self._post_nms_top_n = post_nms_top_n
        self.nms_thresh = nms_thresh
        self.score_thresh = score_thresh
        self.min_size = 1e-3

    def pre_nms_top_n(self) -> int:
        return self._pre_nms_top_n["training" if self.training else "testing"]

    def post_nms_top_n(self) -> int:
        return self._post_nms_top_n["training" if self.training else "testing"]

    def assign_targets_to_anchors(
        self, anchors: Sequence[Tensor], targets: Sequence[Target]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """For each picture labels (L,), 1, 0 or -1 for none, and the boxes (L, 4) to learn."""
        labels, boxes = [], []
        for anchor, target in zip(anchors, targets):
            truth = target["boxes"]
            matches = matches_of(self.proposal_matcher, self.box_similarity, truth, anchor)
            label = (matches >= 0).float()
            labels.append(label.masked_fill(matches == Matcher.BETWEEN_THRESHOLDS, -1.0))
            boxes.append(matched(truth, matches))
        return labels, boxes

    def _get_top_n_idx(self, objectness: Tensor, num_anchors_per_level: Sequence[int]) -> Tensor:
        """The indices (N, K) of the best of each level."""
        best, first = [], 0
        for level in objectness.split(list(num_anchors_per_level), 1):
            count = min(self.pre_nms_top_n(), level.shape[1])
            best.append(level.topk(count, dim=1).indices + first)
            first += level.shape[1]
        return cat(best, dim=1)

    def filter_proposals(
        self,
        proposals: Tensor,
        objectness: Tensor,
        image_shapes: Sequence[tuple[int, int]],
        num_anchors_per_level: Sequence[int],
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The best boxes of each picture and their scores, of proposals (N, L, 4)."""
        device = proposals.device
        objectness = objectness.detach().reshape(len(proposals), -1)
        best = self._get_top_n_idx(objectness, num_anchors_per_level)
        rows = arange(len(proposals), device=device)[:, None]
        levels = cat(
            [
                full((count,), index, dtype=int64, device=device)
                for index, count in enumerate(num_anchors_per_level)
            ]
        )[best]
        kept_boxes, kept_scores = [], []
        for boxes, scores, level, size in zip(
            proposals[rows, best], objectness[rows, best].sigmoid(), levels, image_shapes
        ):
            boxes = clip_boxes_to_image(boxes, size)
            keep = remove_small_boxes(boxes, self.min_size)
            keep = keep[scores[keep] >= self.score_thresh]
            boxes, scores = boxes[keep], scores[keep]
            keep = batched_nms(boxes, scores, level[keep], self.nms_thresh)
            keep = keep[: self.post_nms_top_n()]
            kept_boxes.append(boxes[keep])
            kept_scores.append(scores[keep])
        return kept_boxes, kept_scores

    def compute_loss(
        self,
        objectness: Tensor,
        pred_bbox_deltas: Tensor,
        labels: Sequence[Tensor],
        regression_targets: Sequence[Tensor],
    ) -> tuple[Tensor, Tensor]:
        """The losses of logits (L, 1) and offsets (L, 4), of a sample of the anchors."""
        positive, negative = (cat(masks).nonzero()[:, 0] for masks in self.fg_bg_sampler(labels))
        sampled = cat([positive, negative])
        box_loss = F.smooth_l1_loss(
            pred_bbox_deltas[positive],
            cat(list(regression_targets))[positive],
            beta=1 / 9,
            reduction="sum",
        )
        objectness_loss = F.binary_cross_entropy_with_logits(
            objectness.flatten()[sampled], cat(list(labels))[sampled]
        )
        return objectness_loss, box_loss / sampled.numel()

    def forward(
        self,
        images: ImageList,
        features: Mapping[str, Tensor],
        targets: Sequence[Target] | None = None,
    ) -> tuple[list[Tensor], dict[str, Tensor]]:
        maps = list(features.values())
        objectness, deltas = self.head(maps)
        anchors = self.anchor_generator(images, maps)
        counts = [level[0].numel() for level in objectness]
        objectness, deltas = concat_box_prediction_layers(objectness, deltas)
        # The proposals are taken as given by what classifies them.
        proposals = self.box_coder.decode(deltas.detach(), anchors).view(len(anchors), -1, 4)
        boxes, _ = self.filter_proposals(proposals, objectness, images.image_sizes, counts)
        if not self.training:
            return boxes, {}
        if targets is None:
            raise ValueError("targets should not be None")
        labels, truth = self.assign_targets_to_anchors(anchors, targets)
        offsets = self.box_coder.encode(truth, anchors)
        losses = self.compute_loss(objectness, deltas, labels, offsets)
        return boxes, dict(zip(("loss_objectness", "loss_rpn_box_reg"), losses))

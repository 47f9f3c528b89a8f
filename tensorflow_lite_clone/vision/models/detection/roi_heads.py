"""What is in the proposed regions: Girshick, Fast R-CNN, 2015; He et al., Mask R-CNN, 2017."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.core.dtypes import float16, float32, float64, int64
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.ops.create.constructors import zeros
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models.detection._utils import (
    BalancedPositiveNegativeSampler,
    BoxCoder,
    Matcher,
    Target,
    matched,
    matches_of,
)
from tensorflow_lite_clone.vision.ops.boxes import (
    batched_nms,
    box_iou,
    clip_boxes_to_image,
    remove_small_boxes,
)
from tensorflow_lite_clone.vision.ops.roi_align import roi_align

Boxes = Sequence[Tensor]


def counts(parts: Sequence[Tensor]) -> list[int]:
    return [len(part) for part in parts]


def fastrcnn_loss(
    class_logits: Tensor,
    box_regression: Tensor,
    labels: Sequence[Tensor],
    regression_targets: Sequence[Tensor],
) -> tuple[Tensor, Tensor]:
    """The losses of class logits (N, C), and of offsets (N, 4 C) for each class.

    Labels (L,) and offsets (L, 4) to learn are lists, N together; those of label 0, which is the
    background, have no loss of offsets.
    """
    label, target = cat(list(labels)), cat(list(regression_targets))
    positive = (label > 0).nonzero()[:, 0]
    offsets = box_regression.reshape(len(class_logits), -1, 4)[positive, label[positive]]
    box_loss = F.smooth_l1_loss(offsets, target[positive], beta=1 / 9, reduction="sum")
    return F.cross_entropy(class_logits, label), box_loss / label.numel()


def of_classes(x: Tensor, labels: Tensor) -> Tensor:
    """Of x (N, C, ...) what belongs to each label (N,)."""
    return x[arange(len(labels), device=labels.device), labels]


def maskrcnn_inference(x: Tensor, labels: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The masks (L, 1, M, M) of each picture, in [0, 1], of logits (N, C, M, M) by class."""
    return of_classes(x, cat(list(labels))).sigmoid()[:, None].split(counts(labels), 0)


def project_masks_on_boxes(gt_masks: Tensor, boxes: Tensor, matched_idxs: Tensor, M: int) -> Tensor:
    """What masks (K, H, W) have in boxes (N, 4), each of the mask that it matches: (N, M, M)."""
    rois = cat([matched_idxs.to(boxes)[:, None], boxes], dim=1)
    return roi_align(gt_masks[:, None].to(rois), rois, (M, M), 1.0)[:, 0]


def maskrcnn_loss(
    mask_logits: Tensor,
    proposals: Boxes,
    gt_masks: Sequence[Tensor],
    gt_labels: Sequence[Tensor],
    mask_matched_idxs: Sequence[Tensor],
) -> Tensor:
    """Binary cross entropy of the masks (N, C, M, M) of the true classes only."""
    labels = cat([label[index] for label, index in zip(gt_labels, mask_matched_idxs)])
    if len(labels) == 0:
        return mask_logits.sum() * 0
    triples = zip(gt_masks, proposals, mask_matched_idxs)
    targets = [project_masks_on_boxes(*triple, mask_logits.shape[-1]) for triple in triples]
    return F.binary_cross_entropy_with_logits(of_classes(mask_logits, labels), cat(targets))


def keypoints_to_heatmap(
    keypoints: Tensor, rois: Tensor, heatmap_size: int
) -> tuple[Tensor, Tensor]:
    """The cells of keypoints (N, K, 3) in regions (N, 4), and which count, both (N, K), int64.

    A region has `heatmap_size` squared cells, counted row by row. A keypoint counts that is
    visible and in the region, whose last edges belong to it.
    """
    points, low, high = keypoints[..., :2], rois[:, None, :2], rois[:, None, 2:]
    cells = ((points - low) * (heatmap_size / (high - low))).floor().long()
    cells = where(points == high, heatmap_size - 1, cells)
    inside = ((cells >= 0) & (cells < heatmap_size)).all(-1)
    valid = (inside & (keypoints[..., 2] > 0)).long()
    return (cells[..., 1] * heatmap_size + cells[..., 0]) * valid, valid


def heatmaps_to_keypoints(maps: Tensor, rois: Tensor) -> tuple[Tensor, Tensor]:
    """Where maps (N, K, H, W) are highest: keypoints (N, K, 3) of x, y and 1, and scores (N, K).

    The maps are those of regions (N, 4) of pictures, and are looked at in their resolution.
    """
    count = maps.shape[1]
    sides = (rois[:, 2:] - rois[:, :2]).clamp(min=1)
    keypoints = [zeros((0, count, 3), device=maps.device)]
    scores = [zeros((0, count), device=maps.device)]
    for heat, low, side in zip(maps, rois, sides):
        width, height = side.ceil().long().tolist()
        heat = F.interpolate(heat[:, None], size=(height, width), mode="bicubic")
        best = heat.flatten(1).max(dim=1)
        cells = stack([best.indices % width, best.indices // width], dim=1)
        points = (cells.float() + 0.5) * (side / side.ceil()) + low[:2]
        keypoints.append(F.pad(points, (0, 1), value=1.0).float()[None])
        scores.append(best.values.float()[None])
    return cat(keypoints), cat(scores)


def keypointrcnn_loss(
    keypoint_logits: Tensor,
    proposals: Boxes,
    gt_keypoints: Sequence[Tensor],
    keypoint_matched_idxs: Sequence[Tensor],
) -> Tensor:
    """Cross entropy over the cells of heatmaps (N, K, M, M); ValueError unless they are square."""
    height, width = keypoint_logits.shape[2:]
    if height != width:
        raise ValueError(
            "keypoint_logits height and width (last two elements of shape) should be equal. "
            f"Instead got H = {height} and W = {width}"
        )
    pairs = [
        keypoints_to_heatmap(points[index], boxes, height)
        for boxes, points, index in zip(proposals, gt_keypoints, keypoint_matched_idxs)
    ]
    targets, valid = (cat([pair[k].flatten() for pair in pairs]) for k in (0, 1))
    rows = valid.nonzero()[:, 0]
    if len(rows) == 0:
        return keypoint_logits.sum() * 0
    return F.cross_entropy(keypoint_logits.flatten(0, 1).flatten(1)[rows], targets[rows])


def keypointrcnn_inference(x: Tensor, boxes: Boxes) -> tuple[list[Tensor], list[Tensor]]:
    """`heatmaps_to_keypoints` of each picture's boxes."""
    pairs = [heatmaps_to_keypoints(*pair) for pair in zip(x.split(counts(boxes), 0), boxes)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def expand_boxes(boxes: Tensor, scale: float) -> Tensor:
    """Boxes (N, 4) with the same centres and sides `scale` times as long."""
    centres = (boxes[:, 2:] + boxes[:, :2]) * 0.5
    half = (boxes[:, 2:] - boxes[:, :2]) * 0.5 * scale
    return cat([centres - half, centres + half], dim=1)


def expand_masks(mask: Tensor, padding: int) -> tuple[Tensor, float]:
    """Masks with a border of zeros, and how many times as wide they are now."""
    size = mask.shape[-1]
    return F.pad(mask, (padding,) * 4), float(size + 2 * padding) / size


def _resize_weights(low: Tensor, high: Tensor, size: int, points: int) -> Tensor:
    """How much each of `points` counts for each of `size` pixels: (N, size, points).

    The points lie evenly, for linear interpolation, over the whole pixels from `low` to `high`.
    """
    length = (high - low + 1).clamp(min=1)[:, None]
    options = {"dtype": low.dtype, "device": low.device}
    offset = arange(size, **options) - low[:, None]
    position = ((offset + 0.5) * (points / length) - 0.5).clamp(0, points - 1)
    near = 1 - (position[..., None] - arange(points, **options)).abs()
    return near.clamp(min=0) * ((offset >= 0) & (offset < length))[..., None]


def paste_masks_in_image(
    masks: Tensor, boxes: Tensor, img_shape: tuple[int, int], padding: int = 1
) -> Tensor:
    """Masks (N, 1, M, M) stretched to boxes (N, 4) of pictures (height, width): (N, 1, H, W).

    Interpolation works for each axis alone, so a mask is two matrix products.
    """
    masks, scale = expand_masks(masks, padding)
    points = masks.shape[-1]
    boxes = expand_boxes(boxes, scale).to(int64).to(masks.dtype)
    down, across = (
        _resize_weights(boxes[:, axis], boxes[:, axis + 2], size, points)[:, None]
        for axis, size in zip((1, 0), img_shape)
    )
    return down @ masks @ across.transpose(-1, -2)


class RoIHeads(nn.Module):
    """Says of each proposed region what class it is, and by how much to move and stretch it.

    A proposal is of the class of the true box that it overlaps by `fg_iou_thresh`, background if
    it overlaps none by `bg_iou_thresh`. Detections are those of a score of `score_thresh`, at most
    `detections_per_img`. There may be heads for masks and for keypoints. Called with maps by name,
    a list of proposals (L, 4), the sizes of the pictures and targets, returns a list of
    detections, empty in training, and a dictionary of losses, empty in evaluation.
    """

    def __init__(
        self,
        box_roi_pool: Any,
        box_head: Any,
        box_predictor: Any,
        fg_iou_thresh: float,
        bg_iou_thresh: float,
        batch_size_per_image: int,
        positive_fraction: float,
        bbox_reg_weights: tuple[float, float, float, float] | None,
        score_thresh: float,
        nms_thresh: float,
        detections_per_img: int,
        mask_roi_pool: Any = None,
        mask_head: Any = None,
        mask_predictor: Any = None,
        keypoint_roi_pool: Any = None,
        keypoint_head: Any = None,
        keypoint_predictor: Any = None,
    ) -> None:
        super().__init__()
        self.box_similarity = box_iou
        self.proposal_matcher = Matcher(
            fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=False
        )
        self.fg_bg_sampler = BalancedPositiveNegativeSampler(
            batch_size_per_image, positive_fraction
        )
        self.box_coder = BoxCoder(bbox_reg_weights or (10.0, 10.0, 5.0, 5.0))
        self.box_roi_pool = box_roi_pool
        self.box_head = box_head
        self.box_predictor = box_predictor
        self.score_thresh = score_thresh
        self.nms_thresh = nms_thresh
        self.detections_per_img = detections_per_img
        self.mask_roi_pool = mask_roi_pool
        self.mask_head = mask_head
        self.mask_predictor = mask_predictor
        self.keypoint_roi_pool = keypoint_roi_pool
        self.keypoint_head = keypoint_head
        self.keypoint_predictor = keypoint_predictor

    def has_mask(self) -> bool:
        return None not in (self.mask_roi_pool, self.mask_head, self.mask_predictor)

    def has_keypoint(self) -> bool:
        return None not in (self.keypoint_roi_pool, self.keypoint_head, self.keypoint_predictor)

    def assign_targets_to_proposals(
        self, proposals: Boxes, gt_boxes: Boxes, gt_labels: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The true boxes (L,) of the proposals, and their labels, -1 where there is none."""
        indices, labels = [], []
        for boxes, truth, classes in zip(proposals, gt_boxes, gt_labels):
            matches = matches_of(self.proposal_matcher, self.box_similarity, truth, boxes)
            label = matched(classes, matches).to(int64)
            label = label.masked_fill(matches == Matcher.BELOW_LOW_THRESHOLD, 0)
            labels.append(label.masked_fill(matches == Matcher.BETWEEN_THRESHOLDS, -1))
            indices.append(matches.clamp(min=0))
        return indices, labels

    def subsample(self, labels: Sequence[Tensor]) -> list[Tensor]:
        """The indices of the proposals to learn from."""
        pairs = zip(*self.fg_bg_sampler(labels))
        return [(positive | negative).nonzero()[:, 0] for positive, negative in pairs]

    def add_gt_proposals(self, proposals: Boxes, gt_boxes: Boxes) -> list[Tensor]:
        return [cat(pair) for pair in zip(proposals, gt_boxes)]

    def check_targets(self, targets: Sequence[Target] | None) -> None:
        """ValueError if something to learn is missing."""
        if targets is None:
            raise ValueError("targets should not be None")
        for key in ("boxes", "labels", *(["masks"] if self.has_mask() else [])):
            if not all(key in target for target in targets):
                raise ValueError(f"Every element of targets should have a {key} key")

    def select_training_samples(
        self, proposals: Boxes, targets: Sequence[Target] | None
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor], tuple[Tensor, ...]]:
        """Proposals to learn from, the true boxes that they match, and labels and offsets."""
        self.check_targets(targets)
        truth = [target["boxes"].to(proposals[0].dtype) for target in targets or ()]
        proposals = self.add_gt_proposals(proposals, truth)
        indices, labels = self.assign_targets_to_proposals(
            proposals, truth, [target["labels"] for target in targets or ()]
        )
        sampled = self.subsample(labels)
        proposals, indices, labels = (
            [part[rows] for part, rows in zip(parts, sampled)]
            for parts in (proposals, indices, labels)
        )
        boxes = [matched(part, index) for part, index in zip(truth, indices)]
        return proposals, indices, labels, self.box_coder.encode(boxes, proposals)

    def postprocess_detections(
        self,
        class_logits: Tensor,
        box_regression: Tensor,
        proposals: Boxes,
        image_shapes: Sequence[tuple[int, int]],
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Boxes, scores and labels of each picture, best first, without the background."""
        size = counts(proposals)
        predicted = self.box_coder.decode(box_regression, proposals).split(size, 0)
        found: tuple[list[Tensor], ...] = ([], [], [])
        for boxes, scores, shape in zip(
            predicted, F.softmax(class_logits, -1).split(size, 0), image_shapes
        ):
            labels = arange(scores.shape[1], device=scores.device).expand_as(scores)
            boxes = clip_boxes_to_image(boxes, shape)[:, 1:].reshape(-1, 4)
            scores, labels = scores[:, 1:].flatten(), labels[:, 1:].flatten()
            keep = (scores > self.score_thresh).nonzero()[:, 0]
            keep = keep[remove_small_boxes(boxes[keep], min_size=1e-2)]
            best = batched_nms(boxes[keep], scores[keep], labels[keep], self.nms_thresh)
            keep = keep[best[: self.detections_per_img]]
            for parts, part in zip(found, (boxes, scores, labels)):
                parts.append(part[keep])
        return found  # type: ignore[return-value]

    def forward(
        self,
        features: Mapping[str, Tensor],
        proposals: Boxes,
        image_shapes: Sequence[tuple[int, int]],
        targets: Sequence[Target] | None = None,
    ) -> tuple[list[Target], dict[str, Tensor]]:
        for target in targets or ():
            self._check_dtypes(target)
        indices: list[Tensor] = []
        if self.training:
            proposals, indices, labels, offsets = self.select_training_samples(proposals, targets)
        pooled = self.box_roi_pool(features, proposals, image_shapes)
        logits, regression = self.box_predictor(self.box_head(pooled))
        result: list[Target] = []
        losses: dict[str, Tensor] = {}
        if self.training:
            values = fastrcnn_loss(logits, regression, labels, offsets)
            losses = dict(zip(("loss_classifier", "loss_box_reg"), values))
            # Masks and keypoints are learned where something is.
            rows = [(label > 0).nonzero()[:, 0] for label in labels]
            boxes = [part[row] for part, row in zip(proposals, rows)]
            indices = [part[row] for part, row in zip(indices, rows)]
        else:
            found = self.postprocess_detections(logits, regression, proposals, image_shapes)
            boxes = found[0]
            result = [{"boxes": b, "labels": c, "scores": s} for b, s, c in zip(*found)]

        def truth(key: str) -> list[Tensor]:
            return [target[key] for target in targets or ()]

        if self.has_mask():
            masks = self.mask_predictor(
                self.mask_head(self.mask_roi_pool(features, boxes, image_shapes))
            )
            if self.training:
                losses["loss_mask"] = maskrcnn_loss(
                    masks, boxes, truth("masks"), truth("labels"), indices
                )
            else:
                classes = [detected["labels"] for detected in result]
                for mask, detected in zip(maskrcnn_inference(masks, classes), result):
                    detected["masks"] = mask
        if self.has_keypoint():
            heat = self.keypoint_predictor(
                self.keypoint_head(self.keypoint_roi_pool(features, boxes, image_shapes))
            )
            if self.training:
                losses["loss_keypoint"] = keypointrcnn_loss(
                    heat, boxes, truth("keypoints"), indices
                )
            else:
                for points, score, detected in zip(*keypointrcnn_inference(heat, boxes), result):
                    detected["keypoints"] = points
                    detected["keypoints_scores"] = score
        return result, losses

    def _check_dtypes(self, target: Target) -> None:
        named = {"boxes": ("float", (float32, float64, float16)), "labels": ("int64", (int64,))}
        if self.has_keypoint():
            named["keypoints"] = ("float", (float32,))
        for key, (name, dtypes) in named.items():
            if target[key].dtype not in dtypes:
                raise TypeError(
                    f"target {key} must of {name} type, instead got {target[key].dtype}"
                )

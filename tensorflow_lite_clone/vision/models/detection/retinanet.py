"""RetinaNet: Lin et al., Focal Loss for Dense Object Detection, 2017.

The second version is as Zhang et al., Bridging the Gap Between Anchor-based and Anchor-free
Detection, 2019, and has norms in its heads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum
from tensorflow_lite_clone.vision.models._presets import MEAN, STD
from tensorflow_lite_clone.vision.models.detection._utils import (
    BoxCoder,
    Matcher,
    Target,
    _box_loss,
    _topk_min,
    matches_of,
    overwrite_eps,
)
from tensorflow_lite_clone.vision.models.detection._weights import (
    CLASSES,
    detection,
    register_detector,
)
from tensorflow_lite_clone.vision.models.detection.anchor_utils import AnchorGenerator
from tensorflow_lite_clone.vision.models.detection.backbone_utils import (
    WIDTH,
    resnet50_fpn,
)
from tensorflow_lite_clone.vision.models.detection.faster_rcnn import (
    RATIOS,
    channels_of,
    check_instance,
)
from tensorflow_lite_clone.vision.models.detection.generalized_rcnn import Detector, Losses
from tensorflow_lite_clone.vision.models.detection.image_list import ImageList
from tensorflow_lite_clone.vision.models.detection.rpn import by_anchor, rename, start_narrow
from tensorflow_lite_clone.vision.models.detection.transform import GeneralizedRCNNTransform
from tensorflow_lite_clone.vision.models.resnet import ResNet50_Weights
from tensorflow_lite_clone.vision.ops.boxes import batched_nms, box_iou, clip_boxes_to_image
from tensorflow_lite_clone.vision.ops.feature_pyramid_network import LastLevelP6P7
from tensorflow_lite_clone.vision.ops.focal_loss import sigmoid_focal_loss
from tensorflow_lite_clone.vision.ops.misc import Conv2dNormActivation

__all__ = [
    "RetinaNet",
    "RetinaNet_ResNet50_FPN_V2_Weights",
    "RetinaNet_ResNet50_FPN_Weights",
    "retinanet_resnet50_fpn",
    "retinanet_resnet50_fpn_v2",
]


class RetinaNet_ResNet50_FPN_Weights(WeightsEnum):
    COCO_V1 = detection("retinanet_resnet50_fpn_coco-eeacb38b.pth", 34_014_999)
    DEFAULT = COCO_V1


class RetinaNet_ResNet50_FPN_V2_Weights(WeightsEnum):
    COCO_V1 = detection("retinanet_resnet50_fpn_v2_coco-5905b1c5.pth", 38_198_935)
    DEFAULT = COCO_V1


Outputs = dict[str, Tensor]


def _default_anchorgen() -> AnchorGenerator:
    scales = (1, 2 ** (1 / 3), 2 ** (2 / 3))
    sizes = tuple(tuple(int(side * scale) for scale in scales) for side in (32, 64, 128, 256, 512))
    return AnchorGenerator(sizes, (RATIOS,) * len(sizes))


class _Tower(nn.Module):
    """Four convolutions before what a head predicts."""

    _version = 2

    def __init__(self, in_channels: int, norm_layer: Callable[..., nn.Module] | None) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            *(
                Conv2dNormActivation(in_channels, in_channels, norm_layer=norm_layer)
                for _ in range(4)
            )
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        names = {f"conv.{2 * index}": f"conv.{index}.0" for index in range(4)}
        rename(state_dict, prefix, names)
        super()._load_from_state_dict(state_dict, prefix, *args)


class RetinaNetClassificationHead(_Tower):
    """The logits (N, L, classes) of all anchors of maps (N, C, H_i, W_i).

    It starts with giving everything the probability `prior_probability`.
    """

    def __init__(
        self,
        in_channels: int,
        num_anchors: int,
        num_classes: int,
        prior_probability: float = 0.01,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__(in_channels, norm_layer)
        start_narrow(self)
        self.cls_logits = nn.Conv2d(in_channels, num_anchors * num_classes, 3, padding=1)
        start_rare(self.cls_logits, prior_probability)
        self.num_classes = num_classes
        self.num_anchors = num_anchors
        self.BETWEEN_THRESHOLDS = Matcher.BETWEEN_THRESHOLDS

    def compute_loss(
        self,
        targets: Sequence[Target],
        head_outputs: Mapping[str, Tensor],
        matched_idxs: Sequence[Tensor],
    ) -> Tensor:
        """The focal loss of anchors that match or do not, by the number of those that do."""
        losses = []
        for target, logits, matches in zip(targets, head_outputs["cls_logits"], matched_idxs):
            positive = (matches >= 0).nonzero()[:, 0]
            truth = logits.new_zeros(logits.shape)
            truth[positive, target["labels"][matches[positive]]] = 1.0
            valid = (matches != self.BETWEEN_THRESHOLDS).nonzero()[:, 0]
            loss = sigmoid_focal_loss(logits[valid], truth[valid], reduction="sum")
            losses.append(loss / max(1, len(positive)))
        return _sum(losses) / len(targets)

    def forward(self, x: Sequence[Tensor]) -> Tensor:
        logits = [self.cls_logits(self.conv(level)) for level in x]
        return cat([by_anchor(level, self.num_classes) for level in logits], dim=1)


def start_rare(layer: nn.Conv2d, probability: float) -> None:
    """Lets a layer of logits start with one probability for all."""
    init.normal_(layer.weight, std=0.01)
    init.constant_(layer.bias, -math.log((1 - probability) / probability))


def _sum(x: Sequence[Tensor]) -> Tensor:
    return sum(x[1:], start=x[0])


class RetinaNetRegressionHead(_Tower):
    """The offsets (N, L, 4) of all anchors of maps (N, C, H_i, W_i)."""

    def __init__(
        self,
        in_channels: int,
        num_anchors: int,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__(in_channels, norm_layer)
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, 3, padding=1)
        start_narrow(self.bbox_reg)
        start_narrow(self.conv)
        self.box_coder = BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))
        self._loss_type = "l1"

    def compute_loss(
        self,
        targets: Sequence[Target],
        head_outputs: Mapping[str, Tensor],
        anchors: Sequence[Tensor],
        matched_idxs: Sequence[Tensor],
    ) -> Tensor:
        """`_box_loss` of the anchors that match, by their number."""
        losses = []
        for target, offsets, boxes, matches in zip(
            targets, head_outputs["bbox_regression"], anchors, matched_idxs
        ):
            positive = (matches >= 0).nonzero()[:, 0]
            truth = target["boxes"][matches[positive]]
            loss = _box_loss(
                self._loss_type, self.box_coder, boxes[positive], truth, offsets[positive]
            )
            losses.append(loss / max(1, len(positive)))
        return _sum(losses) / max(1, len(targets))

    def forward(self, x: Sequence[Tensor]) -> Tensor:
        return cat([by_anchor(self.bbox_reg(self.conv(level)), 4) for level in x], dim=1)


class RetinaNetHead(nn.Module):
    """What is at each anchor, and by how much to move and stretch it."""

    def __init__(
        self,
        in_channels: int,
        num_anchors: int,
        num_classes: int,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.classification_head = RetinaNetClassificationHead(
            in_channels, num_anchors, num_classes, norm_layer=norm_layer
        )
        self.regression_head = RetinaNetRegressionHead(
            in_channels, num_anchors, norm_layer=norm_layer
        )

    def compute_loss(
        self,
        targets: Sequence[Target],
        head_outputs: Mapping[str, Tensor],
        anchors: Sequence[Tensor],
        matched_idxs: Sequence[Tensor],
    ) -> Losses:
        classes, boxes = self.classification_head, self.regression_head
        return {
            "classification": classes.compute_loss(targets, head_outputs, matched_idxs),
            "bbox_regression": boxes.compute_loss(targets, head_outputs, anchors, matched_idxs),
        }

    def forward(self, x: Sequence[Tensor]) -> Outputs:
        return {
            "cls_logits": self.classification_head(x),
            "bbox_regression": self.regression_head(x),
        }


class DenseDetector(Detector):
    """What predicts for every anchor of every level, and keeps the best.

    Detections are those of a score above `score_thresh`, the best `topk_candidates` of each level
    and in the end the best `detections_per_img`, of which none of a class overlaps a better one by
    more than `nms_thresh`.
    """

    box_coder: Any

    def __init__(
        self,
        backbone: Any,
        anchor_generator: AnchorGenerator,
        head: nn.Module,
        transform: GeneralizedRCNNTransform,
        *,
        score_thresh: float,
        nms_thresh: float,
        detections_per_img: int,
        topk_candidates: int,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.anchor_generator = anchor_generator
        self.head = head
        self.transform = transform
        self.score_thresh = score_thresh
        self.nms_thresh = nms_thresh
        self.detections_per_img = detections_per_img
        self.topk_candidates = topk_candidates

    def _detect(
        self, images: ImageList, features: Mapping[str, Tensor], targets: Sequence[Target] | None
    ) -> tuple[Losses, list[Target]]:
        maps = list(features.values())
        outputs = self.head(maps)
        anchors = self.anchor_generator(images, maps)
        cells = [level.shape[-2] * level.shape[-1] for level in maps]
        per_cell = outputs["cls_logits"].shape[1] // sum(cells)
        counts = [count * per_cell for count in cells]
        if self.training:
            return self._losses(targets or [], outputs, anchors, counts), []
        levels = {key: value.split(counts, 1) for key, value in outputs.items()}
        split = [boxes.split(counts) for boxes in anchors]
        return {}, self.postprocess_detections(levels, split, images.image_sizes)

    def _losses(
        self, targets: Sequence[Target], outputs: Outputs, anchors: list[Tensor], counts: list[int]
    ) -> Losses:
        """`counts` are the numbers of anchors of the levels."""
        raise NotImplementedError

    def _scores(self, outputs: Outputs) -> Tensor:
        """The scores (L, classes) of one level of one picture."""
        return outputs["cls_logits"].sigmoid()

    def _decode(self, offsets: Tensor, anchors: Tensor) -> Tensor:
        return self.box_coder.decode(offsets, anchors)

    def postprocess_detections(
        self,
        head_outputs: Mapping[str, Sequence[Tensor]],
        anchors: Sequence[Sequence[Tensor]],
        image_shapes: Sequence[tuple[int, int]],
    ) -> list[Target]:
        """The best boxes, scores and labels of each picture, of outputs (N, L_i, C) by level."""
        detections = []
        for index, (levels, shape) in enumerate(zip(anchors, image_shapes)):
            found: tuple[list[Tensor], ...] = ([], [], [])
            for level, level_anchors in enumerate(levels):
                outputs = {key: value[level][index] for key, value in head_outputs.items()}
                scores = self._scores(outputs)
                classes, flat = scores.shape[-1], scores.flatten()
                keep = (flat > self.score_thresh).nonzero()[:, 0]
                count = _topk_min(keep, self.topk_candidates, 0)
                scores, best = flat[keep].topk(count)
                keep = keep[best]
                rows = keep // classes
                boxes = self._decode(outputs["bbox_regression"][rows], level_anchors[rows])
                parts = clip_boxes_to_image(boxes, shape), scores, keep % classes
                for values, value in zip(found, parts):
                    values.append(value)
            boxes, scores, labels = map(cat, found)
            keep = batched_nms(boxes, scores, labels, self.nms_thresh)[: self.detections_per_img]
            detections.append(
                {"boxes": boxes[keep], "scores": scores[keep], "labels": labels[keep]}
            )
        return detections


class RetinaNet(DenseDetector):
    """Says of each anchor what it shows; the loss weighs what is easy less.

    `backbone` gives maps of `out_channels` channels, by name or a single one; `num_classes` counts
    the background. An anchor is to show the true box that it overlaps by `fg_iou_thresh` or best
    of all, and background if it overlaps none by `bg_iou_thresh`. Other parameters are those of
    `DenseDetector` and, from `min_size` and in `kwargs`, `GeneralizedRCNNTransform`. Called as
    `Detector`.
    """

    def __init__(
        self,
        backbone: Any,
        num_classes: int,
        min_size: int | Sequence[int] = 800,
        max_size: int = 1333,
        image_mean: Sequence[float] | None = None,
        image_std: Sequence[float] | None = None,
        anchor_generator: AnchorGenerator | None = None,
        head: nn.Module | None = None,
        proposal_matcher: Matcher | None = None,
        score_thresh: float = 0.05,
        nms_thresh: float = 0.5,
        detections_per_img: int = 300,
        fg_iou_thresh: float = 0.5,
        bg_iou_thresh: float = 0.4,
        topk_candidates: int = 1000,
        **kwargs: Any,
    ) -> None:
        channels = channels_of(backbone)
        check_instance(anchor_generator, AnchorGenerator, "anchor_generator")
        anchors = anchor_generator or _default_anchorgen()
        if head is None:
            head = RetinaNetHead(channels, anchors.num_anchors_per_location()[0], num_classes)
        super().__init__(
            backbone,
            anchors,
            head,
            GeneralizedRCNNTransform(
                min_size, max_size, image_mean or list(MEAN), image_std or list(STD), **kwargs
            ),
            score_thresh=score_thresh,
            nms_thresh=nms_thresh,
            detections_per_img=detections_per_img,
            topk_candidates=topk_candidates,
        )
        self.proposal_matcher = proposal_matcher or Matcher(
            fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=True
        )
        self.box_coder = BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))

    def compute_loss(
        self, targets: Sequence[Target], head_outputs: Outputs, anchors: Sequence[Tensor]
    ) -> Losses:
        matches = [
            matches_of(self.proposal_matcher, box_iou, target["boxes"], boxes)
            for boxes, target in zip(anchors, targets)
        ]
        head: Any = self.head
        return head.compute_loss(targets, head_outputs, anchors, matches)

    def _losses(
        self, targets: Sequence[Target], outputs: Outputs, anchors: list[Tensor], counts: list[int]
    ) -> Losses:
        return self.compute_loss(targets, outputs, anchors)

    def _decode(self, offsets: Tensor, anchors: Tensor) -> Tensor:
        return self.box_coder.decode_single(offsets, anchors)


@register_detector(RetinaNet_ResNet50_FPN_Weights, backbone=ResNet50_Weights)
def retinanet_resnet50_fpn(
    *,
    weights: WeightsEnum | None = None,
    num_classes: int | None = None,
    weights_backbone: WeightsEnum | None = ResNet50_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    **kwargs: Any,
) -> RetinaNet:
    """RetinaNet over a ResNet-50, whose weights are downloaded if there are no others."""
    backbone = resnet50_fpn(
        weights,
        weights_backbone,
        trainable_backbone_layers,
        returned_layers=[2, 3, 4],
        extra_blocks=LastLevelP6P7(WIDTH, WIDTH),
    )
    model = RetinaNet(backbone, num_classes or CLASSES, **kwargs)
    if weights is not None:
        overwrite_eps(model, 0.0)
    return model


@register_detector(RetinaNet_ResNet50_FPN_V2_Weights, backbone=ResNet50_Weights)
def retinanet_resnet50_fpn_v2(
    *,
    weights: WeightsEnum | None = None,
    num_classes: int | None = None,
    weights_backbone: WeightsEnum | None = None,
    trainable_backbone_layers: int | None = None,
    **kwargs: Any,
) -> RetinaNet:
    """RetinaNet over a ResNet-50, with norms in its heads and another loss of boxes."""
    backbone = resnet50_fpn(
        weights,
        weights_backbone,
        trainable_backbone_layers,
        freeze_norm=False,
        returned_layers=[2, 3, 4],
        extra_blocks=LastLevelP6P7(2048, WIDTH),
    )
    anchors = _default_anchorgen()
    classes = num_classes or CLASSES
    head = RetinaNetHead(
        backbone.out_channels,
        anchors.num_anchors_per_location()[0],
        classes,
        norm_layer=partial(nn.GroupNorm, 32),
    )
    head.regression_head._loss_type = "giou"
    return RetinaNet(backbone, classes, **{"anchor_generator": anchors, "head": head, **kwargs})

"""FCOS: Tian et al., Fully Convolutional One-Stage Object Detection, 2019."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.ops.create.constructors import full
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum
from tensorflow_lite_clone.vision.models._presets import MEAN, STD
from tensorflow_lite_clone.vision.models.detection._utils import (
    BoxLinearCoder,
    Target,
    centres_and_sizes,
    matched,
)
from tensorflow_lite_clone.vision.models.detection._weights import (
    CLASSES,
    detection,
    register_detector,
)
from tensorflow_lite_clone.vision.models.detection.anchor_utils import AnchorGenerator
from tensorflow_lite_clone.vision.models.detection.backbone_utils import WIDTH, resnet50_fpn
from tensorflow_lite_clone.vision.models.detection.faster_rcnn import channels_of, check_instance
from tensorflow_lite_clone.vision.models.detection.generalized_rcnn import Losses
from tensorflow_lite_clone.vision.models.detection.retinanet import (
    DenseDetector,
    Outputs,
    start_rare,
)
from tensorflow_lite_clone.vision.models.detection.rpn import by_anchor, start_narrow
from tensorflow_lite_clone.vision.models.detection.transform import GeneralizedRCNNTransform
from tensorflow_lite_clone.vision.models.resnet import ResNet50_Weights
from tensorflow_lite_clone.vision.ops.boxes import box_area
from tensorflow_lite_clone.vision.ops.feature_pyramid_network import LastLevelP6P7
from tensorflow_lite_clone.vision.ops.focal_loss import sigmoid_focal_loss
from tensorflow_lite_clone.vision.ops.iou_losses import generalized_box_iou_loss

__all__ = ["FCOS", "FCOS_ResNet50_FPN_Weights", "fcos_resnet50_fpn"]


class FCOS_ResNet50_FPN_Weights(WeightsEnum):
    COCO_V1 = detection("fcos_resnet50_fpn_coco-99b0c9b7.pth", 32_269_600)
    DEFAULT = COCO_V1


def _tower(
    channels: int, depth: int | None, norm_layer: Callable[..., nn.Module] | None
) -> nn.Sequential:
    layers: list[nn.Module] = []
    for _ in range(depth or 0):
        norm = nn.GroupNorm(32, channels) if norm_layer is None else norm_layer(channels)
        layers += [nn.Conv2d(channels, channels, 3, padding=1), norm, nn.ReLU()]
    return nn.Sequential(*layers)


class FCOSClassificationHead(nn.Module):
    """The logits (N, L, classes) of all positions of maps (N, C, H_i, W_i)."""

    def __init__(
        self,
        in_channels: int,
        num_anchors: int,
        num_classes: int,
        num_convs: int | None = 4,
        prior_probability: float = 0.01,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.num_anchors = num_anchors
        self.conv = _tower(in_channels, num_convs, norm_layer)
        start_narrow(self)
        self.cls_logits = nn.Conv2d(in_channels, num_anchors * num_classes, 3, padding=1)
        start_rare(self.cls_logits, prior_probability)

    def forward(self, x: Sequence[Tensor]) -> Tensor:
        logits = [self.cls_logits(self.conv(level)) for level in x]
        return cat([by_anchor(level, self.num_classes) for level in logits], dim=1)


class FCOSRegressionHead(nn.Module):
    """How far the edges are (N, L, 4), and a logit of being in the middle (N, L, 1)."""

    def __init__(
        self,
        in_channels: int,
        num_anchors: int,
        num_convs: int | None = 4,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.conv = _tower(in_channels, num_convs, norm_layer)
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, 3, padding=1)
        self.bbox_ctrness = nn.Conv2d(in_channels, num_anchors, 3, padding=1)
        for layer in (self.bbox_reg, self.bbox_ctrness, self.conv):
            start_narrow(layer)

    def forward(self, x: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        hidden = [self.conv(level) for level in x]
        edges = [by_anchor(F.relu(self.bbox_reg(level)), 4) for level in hidden]
        centred = [by_anchor(self.bbox_ctrness(level), 1) for level in hidden]
        return cat(edges, dim=1), cat(centred, dim=1)


class FCOSHead(nn.Module):
    """What is at each position, how far its edges are, and whether it is in the middle."""

    def __init__(
        self, in_channels: int, num_anchors: int, num_classes: int, num_convs: int | None = 4
    ) -> None:
        super().__init__()
        self.box_coder = BoxLinearCoder(normalize_by_size=True)
        self.classification_head = FCOSClassificationHead(
            in_channels, num_anchors, num_classes, num_convs
        )
        self.regression_head = FCOSRegressionHead(in_channels, num_anchors, num_convs)

    def compute_loss(
        self,
        targets: Sequence[Target],
        head_outputs: Mapping[str, Tensor],
        anchors: Sequence[Tensor],
        matched_idxs: Sequence[Tensor],
    ) -> Losses:
        """Focal loss, GIoU loss and cross entropy, by the number of positions that match."""
        logits = head_outputs["cls_logits"]
        positive = stack(list(matched_idxs)) >= 0
        count = max(1, int(positive.sum()))
        labels = [matched(t["labels"], index) for t, index in zip(targets, matched_idxs)]
        boxes = stack([matched(t["boxes"], index) for t, index in zip(targets, matched_idxs)])
        truth = logits.new_zeros(logits.shape)
        truth[positive, stack(labels)[positive]] = 1.0

        positions = stack(list(anchors))[positive]
        predicted = self.box_coder.decode(head_outputs["bbox_regression"][positive], positions)
        edges = self.box_coder.encode(positions, boxes[positive])
        across, down = edges[:, [0, 2]], edges[:, [1, 3]]
        centred = head_outputs["bbox_ctrness"].squeeze(2)[positive]
        if len(edges):
            ratios = [sides.min(1).values / sides.max(1).values for sides in (across, down)]
            centre = (ratios[0] * ratios[1]).sqrt()
        else:
            centre = edges.new_zeros(0)
        return {
            "classification": sigmoid_focal_loss(logits, truth, reduction="sum") / count,
            "bbox_regression": generalized_box_iou_loss(predicted, boxes[positive], reduction="sum")
            / count,
            "bbox_ctrness": F.binary_cross_entropy_with_logits(centred, centre, reduction="sum")
            / count,
        }

    def forward(self, x: Sequence[Tensor]) -> Outputs:
        logits = self.classification_head(x)
        edges, centred = self.regression_head(x)
        return {"cls_logits": logits, "bbox_regression": edges, "bbox_ctrness": centred}


class FCOS(DenseDetector):
    """Says of each position what is there and how far its edges are.

    Positions are those of `anchor_generator`, one a cell, as large as the cell. One is to show a
    true box that it lies in, not further from the middle than `center_sampling_radius` cells, and
    whose edges are as far as the level is for; of several the smallest. Other parameters are
    those of `RetinaNet`.
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
        center_sampling_radius: float = 1.5,
        score_thresh: float = 0.2,
        nms_thresh: float = 0.6,
        detections_per_img: int = 100,
        topk_candidates: int = 1000,
        **kwargs: Any,
    ) -> None:
        channels = channels_of(backbone)
        check_instance(
            anchor_generator, AnchorGenerator, "anchor_generator", "or None, instead  got"
        )
        anchors = anchor_generator or AnchorGenerator(
            ((8,), (16,), (32,), (64,), (128,)), ((1.0,),) * 5
        )
        per_cell = anchors.num_anchors_per_location()[0]
        if per_cell != 1:
            raise ValueError(
                f"anchor_generator.num_anchors_per_location()[0] should be 1 instead of {per_cell}"
            )
        super().__init__(
            backbone,
            anchors,
            FCOSHead(channels, per_cell, num_classes) if head is None else head,
            GeneralizedRCNNTransform(
                min_size, max_size, image_mean or list(MEAN), image_std or list(STD), **kwargs
            ),
            score_thresh=score_thresh,
            nms_thresh=nms_thresh,
            detections_per_img=detections_per_img,
            topk_candidates=topk_candidates,
        )
        self.box_coder = BoxLinearCoder(normalize_by_size=True)
        self.center_sampling_radius = center_sampling_radius

    def _matches(self, truth: Tensor, anchors: Tensor, counts: Sequence[int]) -> Tensor:
        """The true box (M, 4) of each position (L, 4), or -1."""
        if len(truth) == 0:
            return full((len(anchors),), -1, dtype=int64, device=anchors.device)
        centres, sizes = centres_and_sizes(anchors)
        middles, _ = centres_and_sizes(truth)
        cell = sizes[:, 0]
        near = (centres[:, None] - middles).abs().amax(2) < self.center_sampling_radius * cell[
            :, None
        ]
        edges = cat([centres[:, None] - truth[:, :2], truth[:, 2:] - centres[:, None]], dim=2)
        distance = edges.amax(2)
        least, most = cell * 4, cell * 8
        least[: counts[0]] = 0
        most[-counts[-1] :] = float("inf")
        fits = (distance > least[:, None]) & (distance < most[:, None])
        fits = near & (edges.amin(2) > 0) & fits
        area = box_area(truth).expand_as(distance).masked_fill(~fits, float("inf"))
        smallest = area.min(1)
        return smallest.indices.masked_fill(smallest.values.isinf(), -1)

    def compute_loss(
        self,
        targets: Sequence[Target],
        head_outputs: Outputs,
        anchors: Sequence[Tensor],
        num_anchors_per_level: Sequence[int],
    ) -> Losses:
        matches = [
            self._matches(target["boxes"], boxes, num_anchors_per_level)
            for boxes, target in zip(anchors, targets)
        ]
        head: Any = self.head
        return head.compute_loss(targets, head_outputs, anchors, matches)

    def _losses(
        self, targets: Sequence[Target], outputs: Outputs, anchors: list[Tensor], counts: list[int]
    ) -> Losses:
        return self.compute_loss(targets, outputs, anchors, counts)

    def _scores(self, outputs: Outputs) -> Tensor:
        return (outputs["cls_logits"].sigmoid() * outputs["bbox_ctrness"].sigmoid()).sqrt()


@register_detector(FCOS_ResNet50_FPN_Weights, backbone=ResNet50_Weights)
def fcos_resnet50_fpn(
    *,
    weights: WeightsEnum | None = None,
    num_classes: int | None = None,
    weights_backbone: WeightsEnum | None = ResNet50_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    **kwargs: Any,
) -> FCOS:
    """FCOS over a ResNet-50, whose weights are downloaded if there are no others."""
    backbone = resnet50_fpn(
        weights,
        weights_backbone,
        trainable_backbone_layers,
        returned_layers=[2, 3, 4],
        extra_blocks=LastLevelP6P7(WIDTH, WIDTH),
    )
    return FCOS(backbone, num_classes or CLASSES, **kwargs)

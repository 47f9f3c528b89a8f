"""Keypoint R-CNN: the network for human poses of He et al., Mask R-CNN, 2017."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import (
    WeightsEnum,
    _ovewrite_named_param,
    register_model,
)
from tensorflow_lite_clone.vision.models.detection._utils import overwrite_eps
from tensorflow_lite_clone.vision.models.detection._weights import detection
from tensorflow_lite_clone.vision.models.detection.backbone_utils import resnet50_fpn
from tensorflow_lite_clone.vision.models.detection.faster_rcnn import (
    POOLED,
    FasterRCNN,
    check_instance,
)
from tensorflow_lite_clone.vision.models.detection.mask_rcnn import start_wide
from tensorflow_lite_clone.vision.models.resnet import ResNet50_Weights
from tensorflow_lite_clone.vision.ops.poolers import MultiScaleRoIAlign

__all__ = [
    "KeypointRCNN",
    "KeypointRCNN_ResNet50_FPN_Weights",
    "keypointrcnn_resnet50_fpn",
]

POSE = {
    "categories": ["no person", "person"],
    "keypoint_names": [
        "nose",
        *(
            f"{side}_{part}"
            for part in ("eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle")
            for side in ("left", "right")
        ),
    ],
}


class KeypointRCNN_ResNet50_FPN_Weights(WeightsEnum):
    COCO_LEGACY = detection("keypointrcnn_resnet50_fpn_coco-9f466800.pth", 59_137_258, **POSE)
    COCO_V1 = detection("keypointrcnn_resnet50_fpn_coco-fc266e95.pth", 59_137_258, **POSE)
    DEFAULT = COCO_V1


class KeypointRCNN(FasterRCNN):
    """`FasterRCNN`, whose other arguments it takes in their order, that finds keypoints as well.

    Targets have `keypoints` (N, K, 3) of x, y and visibility (0 for none), detections `keypoints`
    and `keypoints_scores` (N, K). There are `num_keypoints`, by default 17, unless a
    `keypoint_predictor` is given (ValueError for both).
    """

    def __init__(
        self,
        backbone: Any,
        num_classes: int | None = None,
        min_size: int | Sequence[int] | None = None,
        *args: Any,
        keypoint_roi_pool: MultiScaleRoIAlign | None = None,
        keypoint_head: nn.Module | None = None,
        keypoint_predictor: nn.Module | None = None,
        num_keypoints: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_instance(keypoint_roi_pool, MultiScaleRoIAlign, "keypoint_roi_pool")
        if num_keypoints is not None and keypoint_predictor is not None:
            raise ValueError("num_keypoints should be None when keypoint_predictor is specified")
        if keypoint_roi_pool is None:
            keypoint_roi_pool = MultiScaleRoIAlign(list(POOLED), output_size=14, sampling_ratio=2)
        if keypoint_head is None:
            keypoint_head = KeypointRCNNHeads(backbone.out_channels, (512,) * 8)
        if keypoint_predictor is None:
            keypoint_predictor = KeypointRCNNPredictor(512, num_keypoints or 17)
        sides = (640, 672, 704, 736, 768, 800) if min_size is None else min_size
        super().__init__(backbone, num_classes, sides, *args, **kwargs)
        self.roi_heads.keypoint_roi_pool = keypoint_roi_pool
        self.roi_heads.keypoint_head = keypoint_head
        self.roi_heads.keypoint_predictor = keypoint_predictor


class KeypointRCNNHeads(nn.Sequential):
    """3 x 3 convolutions of given widths."""

    def __init__(self, in_channels: int, layers: Sequence[int]) -> None:
        stages: list[nn.Module] = []
        for width in layers:
            stages += [nn.Conv2d(in_channels, width, 3, padding=1), nn.ReLU(inplace=True)]
            in_channels = width
        super().__init__(*stages)
        start_wide(self)


class KeypointRCNNPredictor(nn.Module):
    """Heatmaps (N, K, 4 M, 4 M) of regions (N, C, M, M)."""

    def __init__(self, in_channels: int, num_keypoints: int) -> None:
        super().__init__()
        self.kps_score_lowres = nn.ConvTranspose2d(in_channels, num_keypoints, 4, 2, 1)
        start_wide(self)
        self.up_scale = 2
        self.out_channels = num_keypoints

    def forward(self, x: Tensor) -> Tensor:
        x = self.kps_score_lowres(x)
        return F.interpolate(x, scale_factor=float(self.up_scale), mode="bilinear")


def _with_all_keypoints(kwargs: dict[str, Any], weights: WeightsEnum) -> None:
    _ovewrite_named_param(kwargs, "num_keypoints", len(weights.meta["keypoint_names"]))


@register_model(
    KeypointRCNN_ResNet50_FPN_Weights,
    backbone=ResNet50_Weights,
    pretrained=KeypointRCNN_ResNet50_FPN_Weights.COCO_V1,
    num_classes=2,
    arguments=_with_all_keypoints,
)
def keypointrcnn_resnet50_fpn(
    *,
    weights: WeightsEnum | None = None,
    num_classes: int | None = None,
    num_keypoints: int | None = None,
    weights_backbone: WeightsEnum | None = ResNet50_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    **kwargs: Any,
) -> KeypointRCNN:
    """Keypoint R-CNN over a ResNet-50, whose weights are downloaded if there are no others."""
    backbone = resnet50_fpn(weights, weights_backbone, trainable_backbone_layers)
    model = KeypointRCNN(backbone, num_classes or 2, num_keypoints=num_keypoints, **kwargs)
    if weights is not None:
        overwrite_eps(model, 0.0)
    return model

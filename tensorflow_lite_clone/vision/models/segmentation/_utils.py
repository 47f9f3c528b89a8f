"""What the segmentation models share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import (
    M,
    WeightsEnum,
    _ovewrite_named_param,
    register_model,
)
from tensorflow_lite_clone.vision.models._utils import IntermediateLayerGetter, stage_indices
from tensorflow_lite_clone.vision.models.mobilenetv3 import MobileNetV3
from tensorflow_lite_clone.vision.models.resnet import ResNet

CLASSES = 21  # Pascal VOC's, with the background


class _SimpleSegmentationModel(nn.Module):
    """Classes for each pixel of pictures (N, 3, H, W), of a backbone's features.

    Returns an OrderedDict of "out" (N, classes, H, W), and of "aux" if there is such a classifier.
    """

    def __init__(
        self, backbone: nn.Module, classifier: nn.Module, aux_classifier: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = classifier
        self.aux_classifier = aux_classifier

    def forward(self, x: Tensor) -> OrderedDict[str, Tensor]:
        features = self.backbone(x)
        result: OrderedDict[str, Tensor] = OrderedDict()
        result["out"] = upsampled(self.classifier(features["out"]), x)
        if self.aux_classifier is not None:
            result["aux"] = upsampled(self.aux_classifier(features["aux"]), x)
        return result


def upsampled(x: Tensor, like: Tensor) -> Tensor:
    """x (N, C, h, w) at the size of `like` (N, C', H, W)."""
    return F.interpolate(x, size=like.shape[-2:], mode="bilinear", align_corners=False)


def resnet_features(backbone: ResNet, aux: bool | None) -> IntermediateLayerGetter:
    """The last stage of a residual network as "out" (2048 channels), the third as "aux" (1024)."""
    layers = {"layer4": "out"}
    if aux:
        layers["layer3"] = "aux"
    return IntermediateLayerGetter(backbone, return_layers=layers)


def mobilenet_stages(backbone: MobileNetV3) -> tuple[nn.Sequential, int, int]:
    """The features of a MobileNet, and which of them gives 1/8 and which the last resolution."""
    features = backbone.features
    stages = stage_indices(features)
    return features, stages[-4], stages[-1]


def register_segmentation(
    weights: type[WeightsEnum], backbone: type[WeightsEnum]
) -> Callable[[Callable[..., M]], Callable[..., M]]:
    """`register_model` for builders whose downloaded files have the auxiliary classifier."""
    return register_model(weights, backbone=backbone, num_classes=CLASSES, arguments=_with_aux)


def _with_aux(kwargs: dict[str, Any], weights: WeightsEnum) -> None:
    _ovewrite_named_param(kwargs, "aux_loss", True)

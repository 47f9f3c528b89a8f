"""LR-ASPP: the segmentation head of Howard et al., Searching for MobileNetV3, 2019."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum, coco, register_model
from tensorflow_lite_clone.vision.models._utils import IntermediateLayerGetter
from tensorflow_lite_clone.vision.models.mobilenetv3 import (
    MobileNet_V3_Large_Weights,
    mobilenet_v3_large,
)
from tensorflow_lite_clone.vision.models.segmentation._utils import (
    CLASSES,
    mobilenet_stages,
    upsampled,
)

__all__ = [
    "LRASPP",
    "LRASPP_MobileNet_V3_Large_Weights",
    "lraspp_mobilenet_v3_large",
]


class LRASPP_MobileNet_V3_Large_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = coco("lraspp_mobilenet_v3_large-d234d4ea.pth", 3_221_538)
    DEFAULT = COCO_WITH_VOC_LABELS_V1


class LRASPPHead(nn.Module):
    """The classes of features "low" (of high resolution) and "high" (of low resolution)."""

    def __init__(
        self, low_channels: int, high_channels: int, num_classes: int, inter_channels: int
    ) -> None:
        super().__init__()
        self.cbr = nn.Sequential(
            nn.Conv2d(high_channels, inter_channels, 1, bias=False),
            nn.BatchNorm2d(inter_channels),
            nn.ReLU(inplace=True),
        )
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(high_channels, inter_channels, 1, bias=False),
            nn.Sigmoid(),
        )
        self.low_classifier = nn.Conv2d(low_channels, num_classes, 1)
        self.high_classifier = nn.Conv2d(inter_channels, num_classes, 1)

    def forward(self, input: Mapping[str, Tensor]) -> Tensor:
        low, high = input["low"], input["high"]
        x = upsampled(self.cbr(high) * self.scale(high), low)
        return self.low_classifier(low) + self.high_classifier(x)


class LRASPP(nn.Module):
    """Classes for each pixel, as an OrderedDict of "out" (N, classes, H, W)."""

    def __init__(
        self,
        backbone: nn.Module,
        low_channels: int,
        high_channels: int,
        num_classes: int,
        inter_channels: int = 128,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = LRASPPHead(low_channels, high_channels, num_classes, inter_channels)

    def forward(self, input: Tensor) -> OrderedDict[str, Tensor]:
        return OrderedDict(out=upsampled(self.classifier(self.backbone(input)), input))


@register_model(
    LRASPP_MobileNet_V3_Large_Weights, backbone=MobileNet_V3_Large_Weights, num_classes=CLASSES
)
def lraspp_mobilenet_v3_large(
    *,
    num_classes: int | None = None,
    weights_backbone: WeightsEnum | None = MobileNet_V3_Large_Weights.IMAGENET1K_V1,
    **kwargs: Any,
) -> LRASPP:
    """LR-ASPP over a MobileNetV3, whose weights are downloaded unless `weights_backbone` is None.

    Raises NotImplementedError for an auxiliary loss.
    """
    if kwargs.get("aux_loss"):
        raise NotImplementedError("This model does not use auxiliary loss")
    mobilenet = mobilenet_v3_large(weights=weights_backbone, dilated=True)
    features, low, high = mobilenet_stages(mobilenet)
    backbone = IntermediateLayerGetter(features, {str(low): "low", str(high): "high"})
    widths = features[low].out_channels, features[high].out_channels
    return LRASPP(backbone, *widths, CLASSES if num_classes is None else num_classes)

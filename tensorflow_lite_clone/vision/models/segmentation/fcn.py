"""FCN: Long et al., Fully Convolutional Networks for Semantic Segmentation, 2014."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.vision.models._api import WeightsEnum, coco
from tensorflow_lite_clone.vision.models.resnet import (
    ResNet,
    ResNet50_Weights,
    ResNet101_Weights,
    resnet50,
    resnet101,
)
from tensorflow_lite_clone.vision.models.segmentation._utils import (
    CLASSES,
    _SimpleSegmentationModel,
    register_segmentation,
    resnet_features,
)

__all__ = [
    "FCN",
    "FCN_ResNet50_Weights",
    "FCN_ResNet101_Weights",
    "fcn_resnet50",
    "fcn_resnet101",
]


class FCN_ResNet50_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = coco("fcn_resnet50_coco-1167a1af.pth", 35_322_218)
    DEFAULT = COCO_WITH_VOC_LABELS_V1


class FCN_ResNet101_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = coco("fcn_resnet101_coco-7ecb50ca.pth", 54_314_346)
    DEFAULT = COCO_WITH_VOC_LABELS_V1


class FCN(_SimpleSegmentationModel):
    """A fully convolutional network."""


class FCNHead(nn.Sequential):
    """A 3 x 3 convolution to a quarter of the channels, and the classes."""

    def __init__(self, in_channels: int, channels: int) -> None:
        inner = in_channels // 4
        super().__init__(
            nn.Conv2d(in_channels, inner, 3, padding=1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Conv2d(inner, channels, 1),
        )


def _fcn_resnet(backbone: ResNet, num_classes: int | None, aux: bool | None) -> FCN:
    classes = CLASSES if num_classes is None else num_classes
    features = resnet_features(backbone, aux)
    aux_classifier = FCNHead(1024, classes) if aux else None
    return FCN(features, FCNHead(2048, classes), aux_classifier)


DILATED = (False, True, True)


@register_segmentation(FCN_ResNet50_Weights, ResNet50_Weights)
def fcn_resnet50(
    *,
    num_classes: int | None = None,
    aux_loss: bool | None = None,
    weights_backbone: WeightsEnum | None = ResNet50_Weights.IMAGENET1K_V1,
    **kwargs: Any,
) -> FCN:
    """FCN over a ResNet-50, whose own weights are downloaded unless `weights_backbone` is None."""
    backbone = resnet50(weights=weights_backbone, replace_stride_with_dilation=DILATED)
    return _fcn_resnet(backbone, num_classes, aux_loss)


@register_segmentation(FCN_ResNet101_Weights, ResNet101_Weights)
def fcn_resnet101(
    *,
    num_classes: int | None = None,
    aux_loss: bool | None = None,
    weights_backbone: WeightsEnum | None = ResNet101_Weights.IMAGENET1K_V1,
    **kwargs: Any,
) -> FCN:
    """FCN over a ResNet-101, whose own weights are downloaded unless `weights_backbone` is None."""
    backbone = resnet101(weights=weights_backbone, replace_stride_with_dilation=DILATED)
    return _fcn_resnet(backbone, num_classes, aux_loss)

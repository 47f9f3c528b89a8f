"""DeepLabV3: Chen et al., Rethinking Atrous Convolution, 2017."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum, coco
from tensorflow_lite_clone.vision.models._utils import IntermediateLayerGetter
from tensorflow_lite_clone.vision.models.mobilenetv3 import (
    MobileNet_V3_Large_Weights,
    mobilenet_v3_large,
)
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
    mobilenet_stages,
    register_segmentation,
    resnet_features,
    upsampled,
)
from tensorflow_lite_clone.vision.models.segmentation.fcn import DILATED, FCNHead

__all__ = [
    "DeepLabV3",
    "DeepLabV3_MobileNet_V3_Large_Weights",
    "DeepLabV3_ResNet50_Weights",
    "DeepLabV3_ResNet101_Weights",
    "deeplabv3_resnet50",
    "deeplabv3_resnet101",
    "deeplabv3_mobilenet_v3_large",
]


class DeepLabV3_MobileNet_V3_Large_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = coco("deeplabv3_mobilenet_v3_large-fc3c493d.pth", 11_029_328)
    DEFAULT = COCO_WITH_VOC_LABELS_V1


class DeepLabV3_ResNet50_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = coco("deeplabv3_resnet50_coco-cd0a2569.pth", 42_004_074)
    DEFAULT = COCO_WITH_VOC_LABELS_V1


class DeepLabV3_ResNet101_Weights(WeightsEnum):
    COCO_WITH_VOC_LABELS_V1 = coco("deeplabv3_resnet101_coco-586e9e4e.pth", 60_996_202)
    DEFAULT = COCO_WITH_VOC_LABELS_V1


class DeepLabV3(_SimpleSegmentationModel):
    """A network that sees each pixel's surroundings at several scales."""


def _normed(in_channels: int, out_channels: int, kernel: int = 1, **conv: Any) -> list[nn.Module]:
    convolution = nn.Conv2d(in_channels, out_channels, kernel, bias=False, **conv)
    return [convolution, nn.BatchNorm2d(out_channels), nn.ReLU()]


class ASPPConv(nn.Sequential):
    """A 3 x 3 convolution that reaches `dilation` far."""

    def __init__(self, in_channels: int, out_channels: int, dilation: int) -> None:
        super().__init__(
            *_normed(in_channels, out_channels, 3, padding=dilation, dilation=dilation)
        )


class ASPPPooling(nn.Sequential):
    """What the whole picture is like, at each pixel."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), *_normed(in_channels, out_channels))

    def forward(self, x: Tensor) -> Tensor:
        return upsampled(super().forward(x), x)


class ASPP(nn.Module):
    """Atrous spatial pyramid pooling: convolutions of several reaches side by side."""

    def __init__(
        self, in_channels: int, atrous_rates: Sequence[int], out_channels: int = 256
    ) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            [
                nn.Sequential(*_normed(in_channels, out_channels)),
                *(ASPPConv(in_channels, out_channels, rate) for rate in atrous_rates),
                ASPPPooling(in_channels, out_channels),
            ]
        )
        self.project = nn.Sequential(
            *_normed(len(self.convs) * out_channels, out_channels), nn.Dropout(0.5)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.project(cat([conv(x) for conv in self.convs], dim=1))


class DeepLabHead(nn.Sequential):
    """The pyramid, a 3 x 3 convolution, and the classes."""

    def __init__(
        self, in_channels: int, num_classes: int, atrous_rates: Sequence[int] = (12, 24, 36)
    ) -> None:
        super().__init__(
            ASPP(in_channels, atrous_rates),
            *_normed(256, 256, 3, padding=1),
            nn.Conv2d(256, num_classes, 1),
        )


def _deeplabv3_resnet(backbone: ResNet, num_classes: int | None, aux: bool | None) -> DeepLabV3:
    classes = CLASSES if num_classes is None else num_classes
    features = resnet_features(backbone, aux)
    aux_classifier = FCNHead(1024, classes) if aux else None
    return DeepLabV3(features, DeepLabHead(2048, classes), aux_classifier)


@register_segmentation(DeepLabV3_ResNet50_Weights, ResNet50_Weights)
def deeplabv3_resnet50(
    *,
    num_classes: int | None = None,
    aux_loss: bool | None = None,
    weights_backbone: WeightsEnum | None = ResNet50_Weights.IMAGENET1K_V1,
    **kwargs: Any,
) -> DeepLabV3:
    """DeepLabV3 over a ResNet-50; downloads its weights unless `weights_backbone` is None."""
    backbone = resnet50(weights=weights_backbone, replace_stride_with_dilation=DILATED)
    return _deeplabv3_resnet(backbone, num_classes, aux_loss)


@register_segmentation(DeepLabV3_ResNet101_Weights, ResNet101_Weights)
def deeplabv3_resnet101(
    *,
    num_classes: int | None = None,
    aux_loss: bool | None = None,
    weights_backbone: WeightsEnum | None = ResNet101_Weights.IMAGENET1K_V1,
    **kwargs: Any,
) -> DeepLabV3:
    """DeepLabV3 over a ResNet-101; downloads its weights unless `weights_backbone` is None."""
    backbone = resnet101(weights=weights_backbone, replace_stride_with_dilation=DILATED)
    return _deeplabv3_resnet(backbone, num_classes, aux_loss)


@register_segmentation(DeepLabV3_MobileNet_V3_Large_Weights, MobileNet_V3_Large_Weights)
def deeplabv3_mobilenet_v3_large(
    *,
    num_classes: int | None = None,
    aux_loss: bool | None = None,
    weights_backbone: WeightsEnum | None = MobileNet_V3_Large_Weights.IMAGENET1K_V1,
    **kwargs: Any,
) -> DeepLabV3:
    """DeepLabV3 over a MobileNetV3; downloads its weights unless `weights_backbone` is None."""
    classes = CLASSES if num_classes is None else num_classes
    mobilenet = mobilenet_v3_large(weights=weights_backbone, dilated=True)
    features, early, last = mobilenet_stages(mobilenet)
    layers = {str(last): "out"}
    if aux_loss:
        layers[str(early)] = "aux"
    backbone = IntermediateLayerGetter(features, return_layers=layers)
    aux_classifier = FCNHead(features[early].out_channels, classes) if aux_loss else None
    return DeepLabV3(backbone, DeepLabHead(features[last].out_channels, classes), aux_classifier)

"""SSDLite: the detector of Sandler et al., MobileNetV2, 2018."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.ops.checks import _assert
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum
from tensorflow_lite_clone.vision.models._utils import zero_bias
from tensorflow_lite_clone.vision.models.detection._utils import retrieve_out_channels
from tensorflow_lite_clone.vision.models.detection._weights import (
    CLASSES,
    detection,
    register_detector,
)
from tensorflow_lite_clone.vision.models.detection.anchor_utils import DefaultBoxGenerator
from tensorflow_lite_clone.vision.models.detection.backbone_utils import (
    _validate_trainable_layers,
    freeze_stages,
)
from tensorflow_lite_clone.vision.models.detection.ssd import (
    SSD,
    SSDHead,
    SSDScoringHead,
    warn_of_size,
)
from tensorflow_lite_clone.vision.models.mobilenetv3 import (
    MobileNet_V3_Large_Weights,
    mobilenet_v3_large,
)
from tensorflow_lite_clone.vision.ops.misc import Conv2dNormActivation

__all__ = ["SSDLite320_MobileNet_V3_Large_Weights", "ssdlite320_mobilenet_v3_large"]


class SSDLite320_MobileNet_V3_Large_Weights(WeightsEnum):
    COCO_V1 = detection("ssdlite320_mobilenet_v3_large_coco-a79551df.pth", 3_440_060)
    DEFAULT = COCO_V1


Norm = Callable[..., nn.Module]


def _normal_init(conv: nn.Module) -> None:
    for layer in conv.modules():
        if isinstance(layer, nn.Conv2d):
            init.normal_(layer.weight, mean=0.0, std=0.03)
            zero_bias(layer)


def _depthwise(channels: int, norm_layer: Norm, **conv: Any) -> Conv2dNormActivation:
    return Conv2dNormActivation(
        channels,
        channels,
        kernel_size=3,
        groups=channels,
        norm_layer=norm_layer,
        activation_layer=nn.ReLU6,
        **conv,
    )


def _extra_block(in_channels: int, out_channels: int, norm_layer: Norm) -> nn.Sequential:
    """Halves the channels, the sides of the map, and mixes the channels again."""
    common: dict[str, Any] = {
        "kernel_size": 1,
        "norm_layer": norm_layer,
        "activation_layer": nn.ReLU6,
    }
    inner = out_channels // 2
    return nn.Sequential(
        Conv2dNormActivation(in_channels, inner, **common),
        _depthwise(inner, norm_layer, stride=2),
        Conv2dNormActivation(inner, out_channels, **common),
    )


class _Scores(SSDScoringHead):
    def __init__(
        self,
        in_channels: Sequence[int],
        num_anchors: Sequence[int],
        columns: int,
        norm_layer: Norm,
    ) -> None:
        layers = nn.ModuleList(
            nn.Sequential(_depthwise(channels, norm_layer), nn.Conv2d(channels, columns * count, 1))
            for channels, count in zip(in_channels, num_anchors)
        )
        _normal_init(layers)
        super().__init__(layers, columns)


class SSDLiteClassificationHead(_Scores):
    """The logits of each default box."""


class SSDLiteRegressionHead(_Scores):
    """The offsets of each default box."""

    def __init__(
        self, in_channels: Sequence[int], num_anchors: Sequence[int], norm_layer: Norm
    ) -> None:
        super().__init__(in_channels, num_anchors, 4, norm_layer)


class SSDLiteHead(SSDHead):
    """`SSDHead` with convolutions that are separated into depth and width."""

    def __init__(
        self,
        in_channels: Sequence[int],
        num_anchors: Sequence[int],
        num_classes: int,
        norm_layer: Norm,
    ) -> None:
        nn.Module.__init__(self)
        self.classification_head = SSDLiteClassificationHead(
            in_channels, num_anchors, num_classes, norm_layer
        )
        self.regression_head = SSDLiteRegressionHead(in_channels, num_anchors, norm_layer)


class SSDLiteFeatureExtractorMobileNet(nn.Module):
    """The maps "0" and "1" of a MobileNet's features, and "2" to "5" of more blocks.

    The first is that of the wide layer in the block at `c4_pos`, which must have no shortcut
    (AssertionError).
    """

    def __init__(
        self,
        backbone: Any,
        c4_pos: int,
        norm_layer: Norm,
        width_mult: float = 1.0,
        min_depth: int = 16,
    ) -> None:
        super().__init__()
        block = backbone[c4_pos]
        _assert(
            not block.use_res_connect,
            "backbone[c4_pos].use_res_connect should be False",
        )
        self.features = nn.Sequential(
            nn.Sequential(*backbone[:c4_pos], block.block[0]),
            nn.Sequential(block.block[1:], *backbone[c4_pos + 1 :]),
        )
        widths = [max(min_depth, int(depth * width_mult)) for depth in (512, 256, 256, 128)]
        inputs = [backbone[-1].out_channels, *widths]
        self.extra = nn.ModuleList(
            _extra_block(inp, out, norm_layer) for inp, out in zip(inputs, widths)
        )
        _normal_init(self.extra)

    def forward(self, x: Tensor) -> OrderedDict[str, Tensor]:
        maps = []
        for block in (*self.features, *self.extra):
            x = block(x)
            maps.append(x)
        return OrderedDict((str(index), level) for index, level in enumerate(maps))


def _mobilenet_extractor(
    backbone: Any, trainable_layers: int, norm_layer: Norm
) -> SSDLiteFeatureExtractorMobileNet:
    stages = freeze_stages(backbone.features, trainable_layers)
    return SSDLiteFeatureExtractorMobileNet(backbone.features, stages[-2], norm_layer)


@register_detector(SSDLite320_MobileNet_V3_Large_Weights, backbone=MobileNet_V3_Large_Weights)
def ssdlite320_mobilenet_v3_large(
    *,
    weights: WeightsEnum | None = None,
    num_classes: int | None = None,
    weights_backbone: WeightsEnum | None = MobileNet_V3_Large_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    norm_layer: Norm | None = None,
    **kwargs: Any,
) -> SSD:
    """SSDLite of 320 pixels over a MobileNetV3, whose weights are downloaded if there are none."""
    warn_of_size(kwargs)
    trained = weights is not None or weights_backbone is not None
    layers = _validate_trainable_layers(trained, trainable_backbone_layers, 6, 6)
    norm = norm_layer or partial(nn.BatchNorm2d, eps=0.001, momentum=0.03)
    # Only what starts anew may have a smaller end.
    reduced = weights_backbone is None
    mobilenet = mobilenet_v3_large(weights=weights_backbone, norm_layer=norm, reduced_tail=reduced)
    if reduced:
        _normal_init(mobilenet)
    backbone = _mobilenet_extractor(mobilenet, layers, norm)
    anchors = DefaultBoxGenerator([[2, 3]] * 6, min_ratio=0.2, max_ratio=0.95)
    size = (320, 320)
    widths = retrieve_out_channels(backbone, size)
    classes = num_classes or CLASSES
    given = {
        "score_thresh": 0.001,
        "nms_thresh": 0.55,
        "detections_per_img": 300,
        "topk_candidates": 300,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "head": SSDLiteHead(widths, anchors.num_anchors_per_location(), classes, norm),
        **kwargs,
    }
    return SSD(backbone, anchors, size, classes, **given)

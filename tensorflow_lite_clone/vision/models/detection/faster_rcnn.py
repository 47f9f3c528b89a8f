"""Faster R-CNN: Ren et al., 2015, over a feature pyramid (Lin et al., 2016).

The second versions are as Li et al., Benchmarking Detection Transfer Learning, 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.ops.checks import _assert
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum
from tensorflow_lite_clone.vision.models._presets import MEAN, STD
from tensorflow_lite_clone.vision.models._utils import zero_bias
from tensorflow_lite_clone.vision.models.detection._utils import overwrite_eps
from tensorflow_lite_clone.vision.models.detection._weights import (
    CLASSES,
    detection,
    register_detector,
)
from tensorflow_lite_clone.vision.models.detection.anchor_utils import AnchorGenerator
from tensorflow_lite_clone.vision.models.detection.backbone_utils import (
    WIDTH,
    BackboneWithFPN,
    _mobilenet_extractor,
    _validate_trainable_layers,
    resnet50_fpn,
    resnet50_fpn_v2,
)
from tensorflow_lite_clone.vision.models.detection.generalized_rcnn import GeneralizedRCNN
from tensorflow_lite_clone.vision.models.detection.roi_heads import RoIHeads
from tensorflow_lite_clone.vision.models.detection.rpn import RegionProposalNetwork, RPNHead
from tensorflow_lite_clone.vision.models.detection.transform import GeneralizedRCNNTransform
from tensorflow_lite_clone.vision.models.mobilenetv3 import (
    MobileNet_V3_Large_Weights,
    mobilenet_v3_large,
)
from tensorflow_lite_clone.vision.models.resnet import ResNet50_Weights
from tensorflow_lite_clone.vision.ops.misc import Conv2dNormActivation, FrozenBatchNorm2d
from tensorflow_lite_clone.vision.ops.poolers import MultiScaleRoIAlign

__all__ = [
    "FasterRCNN",
    "FasterRCNN_MobileNet_V3_Large_320_FPN_Weights",
    "FasterRCNN_MobileNet_V3_Large_FPN_Weights",
    "FasterRCNN_ResNet50_FPN_V2_Weights",
    "FasterRCNN_ResNet50_FPN_Weights",
    "fasterrcnn_mobilenet_v3_large_320_fpn",
    "fasterrcnn_mobilenet_v3_large_fpn",
    "fasterrcnn_resnet50_fpn",
    "fasterrcnn_resnet50_fpn_v2",
]


class FasterRCNN_ResNet50_FPN_Weights(WeightsEnum):
    COCO_V1 = detection("fasterrcnn_resnet50_fpn_coco-258fb6c6.pth", 41_755_286)
    DEFAULT = COCO_V1


class FasterRCNN_ResNet50_FPN_V2_Weights(WeightsEnum):
    COCO_V1 = detection("fasterrcnn_resnet50_fpn_v2_coco-dd69338a.pth", 43_712_278)
    DEFAULT = COCO_V1


class FasterRCNN_MobileNet_V3_Large_FPN_Weights(WeightsEnum):
    COCO_V1 = detection("fasterrcnn_mobilenet_v3_large_fpn-fb6a3cc7.pth", 19_386_354)
    DEFAULT = COCO_V1


class FasterRCNN_MobileNet_V3_Large_320_FPN_Weights(WeightsEnum):
    COCO_V1 = detection("fasterrcnn_mobilenet_v3_large_320_fpn-907ea3f9.pth", 19_386_354)
    DEFAULT = COCO_V1


RATIOS = (0.5, 1.0, 2.0)
REPRESENTATION = 1024
POOLED = ("0", "1", "2", "3")  # the levels of the pyramid that regions are read from


def _default_anchorgen() -> AnchorGenerator:
    return AnchorGenerator(((32,), (64,), (128,), (256,), (512,)), (RATIOS,) * 5)


def check_instance(
    value: Any, expected: type, name: str, alternatives: str = "or None instead of"
) -> None:
    """TypeError unless a part that a caller gave is None or of the class that it has to be."""
    if not isinstance(value, (expected, type(None))):
        raise TypeError(
            f"{name} should be of type {expected.__name__} {alternatives} {type(value)}"
        )


def channels_of(backbone: Any) -> int:
    """The width of a backbone's maps; ValueError if it does not say."""
    if not hasattr(backbone, "out_channels"):
        raise ValueError(
            "backbone should contain an attribute out_channels specifying the number of output "
            "channels (assumed to be the same for all the levels)"
        )
    return backbone.out_channels


class FasterRCNN(GeneralizedRCNN):
    """Regions that a first head proposes and a second classifies.

    `backbone` gives maps of `out_channels` channels, by name or a single one; `num_classes` counts
    the background. Either `num_classes` or a `box_predictor` is given (ValueError). Parameters
    from `min_size` to `image_std`, and others (`kwargs`), are those of `GeneralizedRCNNTransform`,
    those that begin with `rpn` of `RegionProposalNetwork`, those with `box` of `RoIHeads`.
    Source: Ren et al., Faster R-CNN, 2015.

        model = fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=2)
        losses = model([rand(3, 300, 400)], [{"boxes": boxes, "labels": labels}])
        found = model.eval()([rand(3, 300, 400)])[0]["boxes"]
    """

    def __init__(
        self,
        backbone: Any,
        num_classes: int | None = None,
        min_size: int | Sequence[int] = 800,
        max_size: int = 1333,
        image_mean: Sequence[float] | None = None,
        image_std: Sequence[float] | None = None,
        rpn_anchor_generator: AnchorGenerator | None = None,
        rpn_head: nn.Module | None = None,
        rpn_pre_nms_top_n_train: int = 2000,
        rpn_pre_nms_top_n_test: int = 1000,
        rpn_post_nms_top_n_train: int = 2000,
        rpn_post_nms_top_n_test: int = 1000,
        rpn_nms_thresh: float = 0.7,
        rpn_fg_iou_thresh: float = 0.7,
        rpn_bg_iou_thresh: float = 0.3,
        rpn_batch_size_per_image: int = 256,
        rpn_positive_fraction: float = 0.5,
        rpn_score_thresh: float = 0.0,
        box_roi_pool: MultiScaleRoIAlign | None = None,
        box_head: nn.Module | None = None,
        box_predictor: nn.Module | None = None,
        box_score_thresh: float = 0.05,
        box_nms_thresh: float = 0.5,
        box_detections_per_img: int = 100,
        box_fg_iou_thresh: float = 0.5,
        box_bg_iou_thresh: float = 0.5,
        box_batch_size_per_image: int = 512,
        box_positive_fraction: float = 0.25,
        bbox_reg_weights: tuple[float, float, float, float] | None = None,
        **kwargs: Any,
    ) -> None:
        channels = channels_of(backbone)
        check_instance(rpn_anchor_generator, AnchorGenerator, "rpn_anchor_generator")
        check_instance(box_roi_pool, MultiScaleRoIAlign, "box_roi_pool")
        if (num_classes is None) == (box_predictor is None):
            state = "not be None when box_predictor is not specified"
            if box_predictor is not None:
                state = "be None when box_predictor is specified"
            raise ValueError(f"num_classes should {state}")
        anchors = rpn_anchor_generator or _default_anchorgen()
        rpn = RegionProposalNetwork(
            anchors,
            rpn_head or RPNHead(channels, anchors.num_anchors_per_location()[0]),
            rpn_fg_iou_thresh,
            rpn_bg_iou_thresh,
            rpn_batch_size_per_image,
            rpn_positive_fraction,
            {"training": rpn_pre_nms_top_n_train, "testing": rpn_pre_nms_top_n_test},
            {"training": rpn_post_nms_top_n_train, "testing": rpn_post_nms_top_n_test},
            rpn_nms_thresh,
            rpn_score_thresh,
        )
        pool = box_roi_pool or MultiScaleRoIAlign(list(POOLED), output_size=7, sampling_ratio=2)
        if box_head is None:
            box_head = TwoMLPHead(channels * pool.output_size[0] ** 2, REPRESENTATION)
        roi_heads = RoIHeads(
            pool,
            box_head,
            box_predictor or FastRCNNPredictor(REPRESENTATION, num_classes),
            box_fg_iou_thresh,
            box_bg_iou_thresh,
            box_batch_size_per_image,
            box_positive_fraction,
            bbox_reg_weights,
            box_score_thresh,
            box_nms_thresh,
            box_detections_per_img,
        )
        transform = GeneralizedRCNNTransform(
            min_size, max_size, image_mean or list(MEAN), image_std or list(STD), **kwargs
        )
        super().__init__(backbone, rpn, roi_heads, transform)


class TwoMLPHead(nn.Module):
    """Two linear layers over regions (K, C, S, S), flattened to `in_channels`."""

    def __init__(self, in_channels: int, representation_size: int) -> None:
        super().__init__()
        self.fc6 = nn.Linear(in_channels, representation_size)
        self.fc7 = nn.Linear(representation_size, representation_size)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.fc7(F.relu(self.fc6(x.flatten(start_dim=1)))))


class FastRCNNConvFCHead(nn.Sequential):
    """Convolutions, then linear layers, of given widths over regions of `input_size` (C, H, W)."""

    def __init__(
        self,
        input_size: tuple[int, int, int],
        conv_layers: Sequence[int],
        fc_layers: Sequence[int],
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        width, *sides = input_size
        layers: list[nn.Module] = []
        for channels in conv_layers:
            layers.append(Conv2dNormActivation(width, channels, norm_layer=norm_layer))
            width = channels
        layers.append(nn.Flatten())
        width *= sides[0] * sides[1]
        for features in fc_layers:
            layers += [nn.Linear(width, features), nn.ReLU(inplace=True)]
            width = features
        super().__init__(*layers)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
                zero_bias(layer)


class FastRCNNPredictor(nn.Module):
    """Logits (K, classes) and offsets (K, 4 classes) of regions (K, C) or (K, C, 1, 1)."""

    def __init__(self, in_channels: int, num_classes: Any) -> None:
        super().__init__()
        self.cls_score = nn.Linear(in_channels, num_classes)
        self.bbox_pred = nn.Linear(in_channels, num_classes * 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if x.ndim == 4:
            _assert(
                tuple(x.shape[2:]) == (1, 1),
                "x has the wrong shape, expecting the last two dimensions to be [1,1] instead of "
                f"{list(x.shape[2:])}",
            )
        x = x.flatten(start_dim=1)
        return self.cls_score(x), self.bbox_pred(x)


def parts_v2(backbone: BackboneWithFPN) -> dict[str, Any]:
    """The heads of the second versions: deeper, and normed."""
    anchors = _default_anchorgen().num_anchors_per_location()[0]
    size = (backbone.out_channels, 7, 7)
    return {
        "rpn_head": RPNHead(backbone.out_channels, anchors, conv_depth=2),
        "box_head": FastRCNNConvFCHead(
            size, [WIDTH] * 4, [REPRESENTATION], norm_layer=nn.BatchNorm2d
        ),
    }


@register_detector(FasterRCNN_ResNet50_FPN_Weights, backbone=ResNet50_Weights)
def fasterrcnn_resnet50_fpn(
    *,
    weights: WeightsEnum | None = None,
    num_classes: int | None = None,
    weights_backbone: WeightsEnum | None = ResNet50_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    **kwargs: Any,
) -> FasterRCNN:
    """Faster R-CNN over a ResNet-50, whose weights are downloaded if there are no others."""
    backbone = resnet50_fpn(weights, weights_backbone, trainable_backbone_layers)
    model = FasterRCNN(backbone, num_classes or CLASSES, **kwargs)
    if weights is not None:
        overwrite_eps(model, 0.0)
    return model


@register_detector(FasterRCNN_ResNet50_FPN_V2_Weights, backbone=ResNet50_Weights)
def fasterrcnn_resnet50_fpn_v2(
    *,
    weights: WeightsEnum | None = None,
    num_classes: int | None = None,
    weights_backbone: WeightsEnum | None = None,
    trainable_backbone_layers: int | None = None,
    **kwargs: Any,
) -> FasterRCNN:
    """Faster R-CNN over a ResNet-50, with deeper heads and norms everywhere."""
    backbone = resnet50_fpn_v2(weights, weights_backbone, trainable_backbone_layers)
    return FasterRCNN(backbone, num_classes or CLASSES, **{**parts_v2(backbone), **kwargs})


def _fasterrcnn_mobilenet_v3_large_fpn(
    weights: WeightsEnum | None,
    num_classes: int | None,
    weights_backbone: WeightsEnum | None,
    trainable_backbone_layers: int | None,
    **kwargs: Any,
) -> FasterRCNN:
    trained = weights is not None or weights_backbone is not None
    layers = _validate_trainable_layers(trained, trainable_backbone_layers, 6, 3)
    norm = FrozenBatchNorm2d if trained else nn.BatchNorm2d
    mobilenet = mobilenet_v3_large(weights=weights_backbone, norm_layer=norm)
    backbone = _mobilenet_extractor(mobilenet, True, layers)
    anchors = AnchorGenerator(((32, 64, 128, 256, 512),) * 3, (RATIOS,) * 3)
    given = {"rpn_anchor_generator": anchors, "rpn_score_thresh": 0.05, **kwargs}
    return FasterRCNN(backbone, num_classes or CLASSES, **given)


@register_detector(
    FasterRCNN_MobileNet_V3_Large_320_FPN_Weights, backbone=MobileNet_V3_Large_Weights
)
def fasterrcnn_mobilenet_v3_large_320_fpn(
    *,
    weights: WeightsEnum | None = None,
    num_classes: int | None = None,
    weights_backbone: WeightsEnum | None = MobileNet_V3_Large_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    **kwargs: Any,
) -> FasterRCNN:
    """Faster R-CNN over a MobileNetV3, for pictures of 320 to 640 pixels and few proposals."""
    few = {"rpn_pre_nms_top_n_test": 150, "rpn_post_nms_top_n_test": 150}
    given = {"min_size": 320, "max_size": 640, **few, **kwargs}
    return _fasterrcnn_mobilenet_v3_large_fpn(
        weights, num_classes, weights_backbone, trainable_backbone_layers, **given
    )


@register_detector(FasterRCNN_MobileNet_V3_Large_FPN_Weights, backbone=MobileNet_V3_Large_Weights)
def fasterrcnn_mobilenet_v3_large_fpn(
    *,
    weights: WeightsEnum | None = None,
    num_classes: int | None = None,
    weights_backbone: WeightsEnum | None = MobileNet_V3_Large_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    **kwargs: Any,
) -> FasterRCNN:
    """Faster R-CNN over a MobileNetV3, whose weights are downloaded if there are no others."""
    return _fasterrcnn_mobilenet_v3_large_fpn(
        weights, num_classes, weights_backbone, trainable_backbone_layers, **kwargs
    )

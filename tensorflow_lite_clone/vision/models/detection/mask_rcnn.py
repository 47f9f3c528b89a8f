"""Mask R-CNN: He et al., 2017."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.vision.models._api import WeightsEnum
from tensorflow_lite_clone.vision.models._utils import zero_bias
from tensorflow_lite_clone.vision.models.detection._utils import overwrite_eps
from tensorflow_lite_clone.vision.models.detection._weights import (
    CLASSES,
    detection,
    register_detector,
)
from tensorflow_lite_clone.vision.models.detection.backbone_utils import (
    WIDTH,
    resnet50_fpn,
    resnet50_fpn_v2,
)
from tensorflow_lite_clone.vision.models.detection.faster_rcnn import (
    POOLED,
    FasterRCNN,
    check_instance,
    parts_v2,
)
from tensorflow_lite_clone.vision.models.detection.rpn import rename
from tensorflow_lite_clone.vision.models.resnet import ResNet50_Weights
from tensorflow_lite_clone.vision.ops.misc import Conv2dNormActivation
from tensorflow_lite_clone.vision.ops.poolers import MultiScaleRoIAlign

__all__ = [
    "MaskRCNN",
    "MaskRCNN_ResNet50_FPN_V2_Weights",
    "MaskRCNN_ResNet50_FPN_Weights",
    "maskrcnn_resnet50_fpn",
    "maskrcnn_resnet50_fpn_v2",
]


class MaskRCNN_ResNet50_FPN_Weights(WeightsEnum):
    COCO_V1 = detection("maskrcnn_resnet50_fpn_coco-bf2d0c1e.pth", 44_401_393)
    DEFAULT = COCO_V1


class MaskRCNN_ResNet50_FPN_V2_Weights(WeightsEnum):
    COCO_V1 = detection("maskrcnn_resnet50_fpn_v2_coco-73cbd019.pth", 46_359_409)
    DEFAULT = COCO_V1


def start_wide(module: nn.Module, zero: bool = True) -> None:
    """Lets all convolutions start as He et al., 2015, by fan-out, and with biases of zero."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
            init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            if zero:
                zero_bias(layer)


class MaskRCNN(FasterRCNN):
    """`FasterRCNN`, whose other arguments it takes in their order, that says which pixels as well.

    Targets have `masks` (N, H, W), uint8, and detections `masks` (N, 1, H, W) in [0, 1]. Either
    `num_classes` or a `mask_predictor` is given (ValueError).
    """

    def __init__(
        self,
        backbone: Any,
        num_classes: int | None = None,
        *args: Any,
        mask_roi_pool: MultiScaleRoIAlign | None = None,
        mask_head: nn.Module | None = None,
        mask_predictor: nn.Module | None = None,
        **kwargs: Any,
    ) -> None:
        check_instance(mask_roi_pool, MultiScaleRoIAlign, "mask_roi_pool")
        if num_classes is not None and mask_predictor is not None:
            raise ValueError("num_classes should be None when mask_predictor is specified")
        if mask_roi_pool is None:
            mask_roi_pool = MultiScaleRoIAlign(list(POOLED), output_size=14, sampling_ratio=2)
        if mask_head is None:
            mask_head = MaskRCNNHeads(backbone.out_channels, (WIDTH,) * 4, 1)
        if mask_predictor is None:
            mask_predictor = MaskRCNNPredictor(WIDTH, WIDTH, num_classes)
        super().__init__(backbone, num_classes, *args, **kwargs)
        self.roi_heads.mask_roi_pool = mask_roi_pool
        self.roi_heads.mask_head = mask_head
        self.roi_heads.mask_predictor = mask_predictor


class MaskRCNNHeads(nn.Sequential):
    """3 x 3 convolutions of given widths."""

    _version = 2

    def __init__(
        self,
        in_channels: int,
        layers: Sequence[int],
        dilation: int,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__(
            *(
                Conv2dNormActivation(
                    inp, out, 3, padding=dilation, dilation=dilation, norm_layer=norm_layer
                )
                for inp, out in zip((in_channels, *layers), layers)
            )
        )
        start_wide(self)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        names = {f"mask_fcn{index + 1}": f"{index}.0" for index in range(len(self))}
        rename(state_dict, prefix, names)
        super()._load_from_state_dict(state_dict, prefix, *args)


class MaskRCNNPredictor(nn.Sequential):
    """Logits (K, classes, 2 M, 2 M) of regions (K, C, M, M)."""

    def __init__(self, in_channels: int, dim_reduced: int, num_classes: Any) -> None:
        super().__init__(
            OrderedDict(
                conv5_mask=nn.ConvTranspose2d(in_channels, dim_reduced, 2, 2, 0),
                relu=nn.ReLU(inplace=True),
                mask_fcn_logits=nn.Conv2d(dim_reduced, num_classes, 1, 1, 0),
            )
        )
        start_wide(self, zero=False)


@register_detector(MaskRCNN_ResNet50_FPN_Weights, backbone=ResNet50_Weights)
def maskrcnn_resnet50_fpn(
    *,
    weights: WeightsEnum | None = None,
    num_classes: int | None = None,
    weights_backbone: WeightsEnum | None = ResNet50_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    **kwargs: Any,
) -> MaskRCNN:
    """Mask R-CNN over a ResNet-50, whose weights are downloaded if there are no others."""
    backbone = resnet50_fpn(weights, weights_backbone, trainable_backbone_layers)
    model = MaskRCNN(backbone, num_classes or CLASSES, **kwargs)
    if weights is not None:
        overwrite_eps(model, 0.0)
    return model


@register_detector(MaskRCNN_ResNet50_FPN_V2_Weights, backbone=ResNet50_Weights)
def maskrcnn_resnet50_fpn_v2(
    *,
    weights: WeightsEnum | None = None,
    num_classes: int | None = None,
    weights_backbone: WeightsEnum | None = None,
    trainable_backbone_layers: int | None = None,
    **kwargs: Any,
) -> MaskRCNN:
    """Mask R-CNN over a ResNet-50, with deeper heads and norms everywhere."""
    backbone = resnet50_fpn_v2(weights, weights_backbone, trainable_backbone_layers)
    mask_head = MaskRCNNHeads(backbone.out_channels, [WIDTH] * 4, 1, norm_layer=nn.BatchNorm2d)
    given = {**parts_v2(backbone), "mask_head": mask_head, **kwargs}
    return MaskRCNN(backbone, num_classes or CLASSES, **given)

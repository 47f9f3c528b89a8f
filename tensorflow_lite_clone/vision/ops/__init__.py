"""Operators on boxes and pictures, and layers of vision models, with torchvision's names."""

from __future__ import annotations

from tensorflow_lite_clone.vision.ops.boxes import *  # noqa: F403
from tensorflow_lite_clone.vision.ops.boxes import __all__ as _boxes
from tensorflow_lite_clone.vision.ops.deform_conv import DeformConv2d, deform_conv2d
from tensorflow_lite_clone.vision.ops.drop_block import (
    DropBlock2d,
    DropBlock3d,
    drop_block2d,
    drop_block3d,
)
from tensorflow_lite_clone.vision.ops.feature_pyramid_network import FeaturePyramidNetwork
from tensorflow_lite_clone.vision.ops.focal_loss import sigmoid_focal_loss
from tensorflow_lite_clone.vision.ops.iou_losses import (
    complete_box_iou_loss,
    distance_box_iou_loss,
    generalized_box_iou_loss,
)
from tensorflow_lite_clone.vision.ops.misc import (
    MLP,
    Conv2dNormActivation,
    Conv3dNormActivation,
    FrozenBatchNorm2d,
    Permute,
    SqueezeExcitation,
)
from tensorflow_lite_clone.vision.ops.poolers import MultiScaleRoIAlign
from tensorflow_lite_clone.vision.ops.ps_roi_align import PSRoIAlign, ps_roi_align
from tensorflow_lite_clone.vision.ops.roi_align import RoIAlign, roi_align
from tensorflow_lite_clone.vision.ops.roi_pool import RoIPool, roi_pool
from tensorflow_lite_clone.vision.ops.stochastic_depth import StochasticDepth, stochastic_depth

__all__ = [
    "MLP",
    "Conv2dNormActivation",
    "Conv3dNormActivation",
    "DeformConv2d",
    "DropBlock2d",
    "DropBlock3d",
    "FeaturePyramidNetwork",
    "FrozenBatchNorm2d",
    "MultiScaleRoIAlign",
    "PSRoIAlign",
    "Permute",
    "RoIAlign",
    "RoIPool",
    "SqueezeExcitation",
    "StochasticDepth",
    "complete_box_iou_loss",
    "deform_conv2d",
    "distance_box_iou_loss",
    "drop_block2d",
    "drop_block3d",
    "generalized_box_iou_loss",
    "ps_roi_align",
    "roi_align",
    "roi_pool",
    "sigmoid_focal_loss",
    "stochastic_depth",
    *_boxes,
]

"""What is the same in all detectors, and in those that look at regions a second time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.ops.checks import _assert
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models.detection._utils import Target, as_levels
from tensorflow_lite_clone.vision.models.detection.image_list import ImageList

Losses = dict[str, Tensor]


class Detector(nn.Module):
    """Finds things in pictures, a list of tensors (3, H, W) of values in [0, 1].

    In training it takes targets, a dictionary for each picture with `boxes` (N, 4) and `labels`
    (N,), int64, and returns a dictionary of losses; in evaluation, for each picture a dictionary
    of `boxes`, `labels` and `scores`, best first. AssertionError for targets that are missing, of
    another shape, or have boxes without an area.
    """

    transform: Any
    backbone: nn.Module

    def forward(
        self, images: Sequence[Tensor], targets: Sequence[Target] | None = None
    ) -> Losses | list[Target]:
        if self.training:
            self._check_targets(targets)
        for image in images:
            _assert(
                image.ndim >= 2,
                "expecting the last two dimensions of the Tensor to be H and W instead got "
                f"{image.shape[-2:]}",
            )
        sizes = [(image.shape[-2], image.shape[-1]) for image in images]
        batch, targets = self.transform(images, targets)
        for index, target in enumerate(targets or ()):
            boxes = target["boxes"]
            empty = (boxes[:, 2:] <= boxes[:, :2]).any(1)
            if empty.any():
                raise AssertionError(
                    "All bounding boxes should have positive height and width. Found invalid box "
                    f"{boxes[empty][0].tolist()} for target at index {index}."
                )
        features = as_levels(self.backbone(batch.tensors))
        losses, detections = self._detect(batch, features, targets)
        if not self.training:
            detections = self.transform.postprocess(detections, batch.image_sizes, sizes)
        return self.eager_outputs(losses, detections)

    def eager_outputs(self, losses: Losses, detections: list[Target]) -> Losses | list[Target]:
        return losses if self.training else detections

    def _check_targets(self, targets: Sequence[Target] | None) -> None:
        if targets is None:
            raise AssertionError("targets should not be none when in training mode")
        for target in targets:
            boxes = target["boxes"]
            _assert(
                isinstance(boxes, Tensor),
                f"Expected target boxes to be of type Tensor, got {type(boxes)}.",
            )
            _assert(
                boxes.ndim == 2 and boxes.shape[-1] == 4,
                f"Expected target boxes to be a tensor of shape [N, 4], got {boxes.shape}.",
            )

    def _detect(
        self, images: ImageList, features: Mapping[str, Tensor], targets: Sequence[Target] | None
    ) -> tuple[Losses, list[Target]]:
        """The losses in training, the detections in the pictures as resized in evaluation."""
        raise NotImplementedError


class GeneralizedRCNN(Detector):
    """A backbone, a network that proposes regions, and heads that classify and refine these."""

    def __init__(
        self, backbone: nn.Module, rpn: nn.Module, roi_heads: nn.Module, transform: nn.Module
    ) -> None:
        super().__init__()
        self.transform = transform
        self.backbone = backbone
        self.rpn = rpn
        self.roi_heads = roi_heads

    def _detect(
        self, images: ImageList, features: Mapping[str, Tensor], targets: Sequence[Target] | None
    ) -> tuple[Losses, list[Target]]:
        proposals, proposal_losses = self.rpn(images, features, targets)
        detections, losses = self.roi_heads(features, proposals, images.image_sizes, targets)
        return {**losses, **proposal_losses}, detections

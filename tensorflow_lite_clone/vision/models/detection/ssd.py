"""SSD: Liu et al., Single Shot MultiBox Detector, 2015."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.ops.checks import _assert
from tensorflow_lite_clone.ops.create.constructors import full
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum
from tensorflow_lite_clone.vision.models._presets import MEAN, STD
from tensorflow_lite_clone.vision.models._utils import zero_bias
from tensorflow_lite_clone.vision.models.detection._utils import (
    BoxCoder,
    SSDMatcher,
    Target,
    matches_of,
    retrieve_out_channels,
)
from tensorflow_lite_clone.vision.models.detection._weights import (
    CLASSES,
    detection,
    register_detector,
)
from tensorflow_lite_clone.vision.models.detection.anchor_utils import DefaultBoxGenerator
from tensorflow_lite_clone.vision.models.detection.backbone_utils import (
    _frozen,
    _validate_trainable_layers,
)
from tensorflow_lite_clone.vision.models.detection.generalized_rcnn import Detector, Losses
from tensorflow_lite_clone.vision.models.detection.image_list import ImageList
from tensorflow_lite_clone.vision.models.detection.rpn import by_anchor
from tensorflow_lite_clone.vision.models.detection.transform import GeneralizedRCNNTransform
from tensorflow_lite_clone.vision.models.vgg import VGG, VGG16_Weights, vgg16
from tensorflow_lite_clone.vision.ops.boxes import batched_nms, box_iou, clip_boxes_to_image

__all__ = ["SSD300_VGG16_Weights", "ssd300_vgg16"]


class SSD300_VGG16_Weights(WeightsEnum):
    COCO_V1 = detection("ssd300_vgg16_coco-b556d3b4.pth", 35_641_826)
    DEFAULT = COCO_V1


def _xavier_init(conv: nn.Module) -> None:
    for layer in conv.modules():
        if isinstance(layer, nn.Conv2d):
            init.xavier_uniform_(layer.weight)
            zero_bias(layer)


class SSDScoringHead(nn.Module):
    """`num_columns` values for each default box, from a layer for each map: (N, L, columns)."""

    def __init__(self, module_list: nn.ModuleList, num_columns: int) -> None:
        super().__init__()
        self.module_list = module_list
        self.num_columns = num_columns

    def forward(self, x: Sequence[Tensor]) -> Tensor:
        pairs = zip(self.module_list, x)
        return cat([by_anchor(layer(level), self.num_columns) for layer, level in pairs], dim=1)


def _convolutions(
    in_channels: Sequence[int], num_anchors: Sequence[int], columns: int
) -> nn.ModuleList:
    layers = nn.ModuleList(
        nn.Conv2d(channels, columns * count, kernel_size=3, padding=1)
        for channels, count in zip(in_channels, num_anchors)
    )
    _xavier_init(layers)
    return layers


class SSDClassificationHead(SSDScoringHead):
    """The logits of each default box."""

    def __init__(
        self, in_channels: Sequence[int], num_anchors: Sequence[int], num_classes: int
    ) -> None:
        super().__init__(_convolutions(in_channels, num_anchors, num_classes), num_classes)


class SSDRegressionHead(SSDScoringHead):
    """The offsets of each default box."""

    def __init__(self, in_channels: Sequence[int], num_anchors: Sequence[int]) -> None:
        super().__init__(_convolutions(in_channels, num_anchors, 4), 4)


class SSDHead(nn.Module):
    """What each default box shows, and by how much to move and stretch it."""

    def __init__(
        self, in_channels: Sequence[int], num_anchors: Sequence[int], num_classes: int
    ) -> None:
        super().__init__()
        self.classification_head: nn.Module = SSDClassificationHead(
            in_channels, num_anchors, num_classes
        )
        self.regression_head: nn.Module = SSDRegressionHead(in_channels, num_anchors)

    def forward(self, x: Sequence[Tensor]) -> dict[str, Tensor]:
        return {
            "bbox_regression": self.regression_head(x),
            "cls_logits": self.classification_head(x),
        }


class SSD(Detector):
    """Classifies default boxes, laid out over the maps of a backbone, of pictures of one size.

    `size` is (width, height) and `num_classes` counts the background. A box is to show the true
    box that it overlaps by `iou_thresh`; it learns background, `1 / positive_fraction - 1` times
    for each that does, where it is most wrong. Detections are, of each class, the best
    `topk_candidates` of a score above `score_thresh`, in the end `detections_per_img`. `kwargs`
    are those of `GeneralizedRCNNTransform`. Called as `Detector`.
    """

    def __init__(
        self,
        backbone: nn.Module,
        anchor_generator: DefaultBoxGenerator,
        size: tuple[int, int],
        num_classes: int,
        image_mean: Sequence[float] | None = None,
        image_std: Sequence[float] | None = None,
        head: nn.Module | None = None,
        score_thresh: float = 0.01,
        nms_thresh: float = 0.45,
        detections_per_img: int = 200,
        iou_thresh: float = 0.5,
        topk_candidates: int = 400,
        positive_fraction: float = 0.25,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.anchor_generator = anchor_generator
        self.box_coder = BoxCoder(weights=(10.0, 10.0, 5.0, 5.0))
        if head is None:
            widths = getattr(backbone, "out_channels", None)
            widths = retrieve_out_channels(backbone, size) if widths is None else widths
            counts = anchor_generator.num_anchors_per_location()
            _assert(
                len(widths) == len(counts),
                f"The backbone has {len(widths)} maps, the anchor generator is for {len(counts)}.",
            )
            head = SSDHead(widths, counts, num_classes)
        self.head = head
        self.proposal_matcher = SSDMatcher(iou_thresh)
        given = {"size_divisible": 1, "fixed_size": size, **kwargs}
        self.transform = GeneralizedRCNNTransform(
            min(size), max(size), image_mean or list(MEAN), image_std or list(STD), **given
        )
        self.score_thresh = score_thresh
        self.nms_thresh = nms_thresh
        self.detections_per_img = detections_per_img
        self.topk_candidates = topk_candidates
        self.neg_to_pos_ratio = (1.0 - positive_fraction) / positive_fraction

    def compute_loss(
        self,
        targets: Sequence[Target],
        head_outputs: Mapping[str, Tensor],
        anchors: Sequence[Tensor],
        matched_idxs: Sequence[Tensor],
    ) -> Losses:
        """The losses by the number of boxes that match."""
        logits = head_outputs["cls_logits"]
        box_losses, labels = [], []
        for target, offsets, boxes, matches in zip(
            targets, head_outputs["bbox_regression"], anchors, matched_idxs
        ):
            rows = (matches >= 0).nonzero()[:, 0]
            truth = matches[rows]
            learned = self.box_coder.encode_single(target["boxes"][truth], boxes[rows])
            box_losses.append(F.smooth_l1_loss(offsets[rows], learned, reduction="sum"))
            label = target["labels"].new_zeros(len(boxes))
            label[rows] = target["labels"][truth]
            labels.append(label)
        label = stack(labels)
        entropy = F.cross_entropy(logits.flatten(0, 1), label.flatten(), reduction="none")
        entropy = entropy.view(label.shape)
        positive = label > 0
        # Where the background is most wrongly taken for something comes first.
        error = entropy.detach().masked_fill(positive, -float("inf"))
        rank = error.argsort(dim=1, descending=True).argsort(dim=1)
        negative = rank < self.neg_to_pos_ratio * positive.sum(1, keepdim=True)
        count = max(1, sum(int((matches >= 0).sum()) for matches in matched_idxs))
        return {
            "bbox_regression": stack(box_losses).sum() / count,
            "classification": (entropy[positive].sum() + entropy[negative].sum()) / count,
        }

    def _detect(
        self, images: ImageList, features: Mapping[str, Tensor], targets: Sequence[Target] | None
    ) -> tuple[Losses, list[Target]]:
        maps = list(features.values())
        outputs = self.head(maps)
        anchors = self.anchor_generator(images, maps)
        if not self.training:
            return {}, self.postprocess_detections(outputs, anchors, images.image_sizes)
        matches = [
            matches_of(self.proposal_matcher, box_iou, target["boxes"], boxes)
            for boxes, target in zip(anchors, targets or ())
        ]
        return self.compute_loss(targets or [], outputs, anchors, matches), []

    def postprocess_detections(
        self,
        head_outputs: Mapping[str, Tensor],
        image_anchors: Sequence[Tensor],
        image_shapes: Sequence[tuple[int, int]],
    ) -> list[Target]:
        """The best boxes, scores and labels of each picture."""
        detections = []
        scores = F.softmax(head_outputs["cls_logits"], dim=-1).transpose(1, 2)[:, 1:]
        for offsets, by_class, anchors, shape in zip(
            head_outputs["bbox_regression"], scores, image_anchors, image_shapes
        ):
            boxes = self.box_coder.decode_single(offsets, anchors)
            boxes = clip_boxes_to_image(boxes, shape)
            best = by_class.topk(min(self.topk_candidates, len(boxes)), dim=1)
            labels = arange(1, len(by_class) + 1, device=boxes.device)[:, None]
            keep = best.values > self.score_thresh
            score, label = best.values[keep], labels.expand_as(keep)[keep]
            box = boxes[best.indices[keep]]
            keep = batched_nms(box, score, label, self.nms_thresh)[: self.detections_per_img]
            detections.append({"boxes": box[keep], "scores": score[keep], "labels": label[keep]})
        return detections


def _step(width: int, inner: int, out: int, kernel: int = 3, **conv: Any) -> nn.Sequential:
    """A 1 x 1 convolution to `inner` channels, and another that makes the map smaller."""
    return nn.Sequential(
        nn.Conv2d(width, inner, kernel_size=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(inner, out, kernel_size=kernel, **conv),
        nn.ReLU(inplace=True),
    )


class SSDFeatureExtractorVGG(nn.Module):
    """The maps "0" to "5" of a VGG's features and more convolutions; of 512 pixels also "6"."""

    def __init__(self, backbone: nn.Sequential, highres: bool) -> None:
        super().__init__()
        pools = [i for i, layer in enumerate(backbone) if isinstance(layer, nn.MaxPool2d)]
        third, fourth = pools[2], pools[3]
        backbone[third].ceil_mode = True  # 38 pixels of 75
        self.scale_weight = nn.Parameter(full((512,), 20.0, dtype=float32))
        self.features = nn.Sequential(*backbone[:fourth])
        steps = [
            _step(1024, 256, 512, padding=1, stride=2),
            _step(512, 128, 256, padding=1, stride=2),
            _step(256, 128, 256),
            _step(256, 128, 256),
        ]
        if highres:
            steps.append(_step(256, 128, 256, kernel=4))
        _xavier_init(nn.ModuleList(steps))
        # The classifier's layers, as convolutions (Chen et al., DeepLab, 2014).
        classifier = nn.Sequential(
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=False),
            nn.Conv2d(512, 1024, kernel_size=3, padding=6, dilation=6),
            nn.ReLU(inplace=True),
            nn.Conv2d(1024, 1024, kernel_size=1),
            nn.ReLU(inplace=True),
        )
        _xavier_init(classifier)
        last = nn.Sequential(*backbone[fourth:-1], classifier)
        self.extra = nn.ModuleList([last, *steps])

    def forward(self, x: Tensor) -> OrderedDict[str, Tensor]:
        x = self.features(x)
        maps = [self.scale_weight.view(1, -1, 1, 1) * F.normalize(x)]
        for block in self.extra:
            x = block(x)
            maps.append(x)
        return OrderedDict((str(index), level) for index, level in enumerate(maps))


def _vgg_extractor(backbone: VGG, highres: bool, trainable_layers: int) -> SSDFeatureExtractorVGG:
    """A VGG of whose features all but the last of five stages are frozen."""
    features: Any = backbone.features
    pools = [i for i, layer in enumerate(features) if isinstance(layer, nn.MaxPool2d)]
    stages = [0, *pools[:-1], len(features)]
    _assert(
        0 <= trainable_layers < len(stages),
        f"trainable_layers should be in the range [0, {len(stages) - 1}]. "
        f"Instead got {trainable_layers}",
    )
    for layer in features[: stages[-1 - trainable_layers]]:
        _frozen(layer)
    return SSDFeatureExtractorVGG(features, highres)


def warn_of_size(kwargs: dict[str, Any]) -> None:
    """Takes a size out of the arguments of a builder that has one of its own."""
    if kwargs.pop("size", None) is not None:
        warnings.warn(
            "The size of the model is already fixed; ignoring the parameter.",
            stacklevel=level_outside(),
        )


@register_detector(SSD300_VGG16_Weights, backbone=VGG16_Weights)
def ssd300_vgg16(
    *,
    weights: WeightsEnum | None = None,
    num_classes: int | None = None,
    weights_backbone: WeightsEnum | None = VGG16_Weights.IMAGENET1K_FEATURES,
    trainable_backbone_layers: int | None = None,
    **kwargs: Any,
) -> SSD:
    """SSD of 300 pixels over a VGG-16, whose weights are downloaded if there are no others."""
    warn_of_size(kwargs)
    trained = weights is not None or weights_backbone is not None
    layers = _validate_trainable_layers(trained, trainable_backbone_layers, 5, 4)
    backbone = _vgg_extractor(vgg16(weights=weights_backbone), False, layers)
    anchors = DefaultBoxGenerator(
        [[2], [2, 3], [2, 3], [2, 3], [2], [2]],
        scales=[0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05],
        steps=[8, 16, 32, 64, 100, 300],
    )
    # As bytes less their mean: what its VGG was trained with.
    scale = {"image_mean": [0.48235, 0.45882, 0.40784], "image_std": [1.0 / 255.0] * 3}
    return SSD(backbone, anchors, (300, 300), num_classes or CLASSES, **{**scale, **kwargs})

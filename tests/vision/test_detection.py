"""Detectors against torchvision's: trees, losses, gradients, detections, mistakes of callers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.vision import models, ops
from tests.vision.zoo import (
    array,
    assert_same_gradients,
    assert_same_start,
    layout,
    needs_torchvision,
    oracle,
    same,
    tensor,
    twins,
)

pytestmark = needs_torchvision

NAMES = models.list_models(models.detection)


@pytest.fixture(autouse=True)
def operators() -> Iterator[None]:
    """torchvision's own may not load: `nms` has no other form, `roi_align` one to be compiled."""

    def nms(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
        return torch.from_numpy(array(ops.nms(tensor(boxes), tensor(scores), threshold)))

    boxes = oracle().ops.boxes
    module: Any = sys.modules[boxes.__name__.replace("boxes", "roi_align")]
    with (
        mock.patch.object(boxes, "nms", nms),
        mock.patch.object(module, "_roi_align", module._roi_align.__wrapped__),
    ):
        yield


@pytest.mark.parametrize("name", NAMES)
def test_state_dict(name: str) -> None:
    """On `meta`, where models cost nothing."""

    def build(m: Any) -> Any:
        with m.torch.device("meta"):
            return m.models.get_model(name, weights=None, weights_backbone=None)

    there, here = twins(build)
    assert layout(here) == layout(there)
    assert repr(here).replace("tensorflow_lite_clone", "torch") == repr(there)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("trained", ["weights", "weights_backbone"])
def test_trained_networks_are_partly_frozen(name: str, trained: str) -> None:
    def script(m: Any) -> Any:
        weights = {"weights": None, "weights_backbone": None, trained: "DEFAULT"}
        model: Any = m.nn.Module
        with (
            mock.patch.object(m.models.WeightsEnum, "get_state_dict", lambda *a, **k: {}),
            mock.patch.object(model, "load_state_dict", lambda *a, **k: None),
            m.torch.device("meta"),
        ):
            model = m.models.get_model(name, **weights)
        norms = [getattr(module, "eps", None) for module in model.modules()]
        return [parameter.requires_grad for parameter in model.parameters()], norms

    same(script)


def pyramid(m: Any, channels: int = 8) -> Any:
    """Maps "0" and "1", of a quarter and an eighth of the picture's sides."""

    class Backbone(m.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out_channels = channels
            self.fine = m.nn.Conv2d(3, channels, 5, 4, 2)
            self.coarse = m.nn.Conv2d(channels, channels, 3, 2, 1)

        def forward(self, x: Any) -> dict[str, Any]:
            fine = self.fine(x).tanh()
            return {"0": fine, "1": self.coarse(fine).tanh()}

    return Backbone()


def anchors(m: Any, ratios: tuple[float, ...] = (0.5, 1.0)) -> Any:
    sizes = ((12,), (24,)) if len(ratios) > 1 else ((4,), (8,))
    return m.models.detection.anchor_utils.AnchorGenerator(sizes, (ratios,) * 2)


def rcnn(m: Any, name: str, **parts: Any) -> Any:
    pools = {
        f"{kind}_roi_pool": m.ops.MultiScaleRoIAlign(["0", "1"], size, 2, canonical_scale=32)
        for kind, size in (("box", 3), ("mask", 4), ("keypoint", 4))
        if kind == "box" or kind in name.lower()
    }
    head = m.models.detection.faster_rcnn.TwoMLPHead(8 * 9, 16)
    predictor = m.models.detection.faster_rcnn.FastRCNNPredictor(16, 3)
    return getattr(m.models.detection, name)(
        pyramid(m), min_size=(48, 56), max_size=80, rpn_anchor_generator=anchors(m),
        rpn_pre_nms_top_n_train=40, rpn_post_nms_top_n_train=20, rpn_pre_nms_top_n_test=30,
        rpn_post_nms_top_n_test=10, rpn_batch_size_per_image=24, box_batch_size_per_image=12,
        box_detections_per_img=6, box_head=head, box_predictor=predictor, **pools, **parts,
    )  # fmt: skip


def mask_rcnn(m: Any) -> Any:
    parts = m.models.detection.mask_rcnn
    head = parts.MaskRCNNHeads(8, (4, 4), 1)
    return rcnn(m, "MaskRCNN", mask_head=head, mask_predictor=parts.MaskRCNNPredictor(4, 4, 3))


def keypoint_rcnn(m: Any) -> Any:
    parts = m.models.detection.keypoint_rcnn
    head = parts.KeypointRCNNHeads(8, (4,))
    predictor = parts.KeypointRCNNPredictor(4, 5)
    return rcnn(m, "KeypointRCNN", keypoint_head=head, keypoint_predictor=predictor)


def retina_v2(m: Any) -> Any:
    norm = lambda width: m.nn.GroupNorm(2, width)  # noqa: E731
    head = m.models.detection.retinanet.RetinaNetHead(8, 2, 3, norm)
    head.regression_head._loss_type = "giou"
    return m.models.detection.RetinaNet(
        pyramid(m), 3, 48, 80, anchor_generator=anchors(m), head=head, score_thresh=0.008
    )


def ssd(m: Any) -> Any:
    parts = m.models.detection.ssd
    boxes = m.models.detection.anchor_utils.DefaultBoxGenerator([[2], [2, 3]])
    head = parts.SSDHead([8, 8], boxes.num_anchors_per_location(), 3)
    return parts.SSD(
        pyramid(m), boxes, (64, 48), 3, head=head, topk_candidates=20, detections_per_img=8
    )


def ssdlite(m: Any) -> Any:
    norm = m.nn.BatchNorm2d
    parts = m.models.detection.ssdlite
    boxes = m.models.detection.anchor_utils.DefaultBoxGenerator([[2], [2]], steps=[4, 8])
    head = parts.SSDLiteHead([8, 8], boxes.num_anchors_per_location(), 3, norm)
    return m.models.detection.ssd.SSD(pyramid(m), boxes, (64, 64), 3, head=head)


SMALL: dict[str, Callable[[Any], Any]] = {
    "faster": lambda m: rcnn(m, "FasterRCNN"),
    "mask": mask_rcnn,
    "keypoint": keypoint_rcnn,
    "retina": lambda m: m.models.detection.RetinaNet(
        pyramid(m), 3, min_size=48, max_size=80, anchor_generator=anchors(m), score_thresh=0.008,
        topk_candidates=30, detections_per_img=8,
    ),
    "retina_v2": retina_v2,
    "ssd": ssd,
    "ssdlite": ssdlite,
    "fcos": lambda m: m.models.detection.FCOS(
        pyramid(m, 32), 3, min_size=48, max_size=80, anchor_generator=anchors(m, (1.0,)),
        score_thresh=0.06, topk_candidates=20, detections_per_img=8,
    ),
}  # fmt: skip


def pictures() -> tuple[list[torch.Tensor], list[dict[str, torch.Tensor]]]:
    """Three pictures with two, one and no things in them."""
    generator = torch.Generator().manual_seed(0)
    images, targets = [], []
    for (height, width), count in (((50, 60), 2), ((64, 48), 1), ((40, 40), 0)):
        options = {"generator": generator, "dtype": torch.float64}
        images.append(torch.rand(3, height, width, **options))
        corners = torch.rand(count, 2, **options) * 20
        sides = 10 + torch.rand(count, 2, **options) * 10
        masks = torch.rand(count, height, width, **options) > 0.4
        points = corners[:, None] + torch.rand(count, 5, 2, **options) * 25
        visible = (torch.rand(count, 5, 1, **options) > 0.3).double()
        targets.append(
            {
                "boxes": torch.cat([corners, corners + sides], 1),
                "labels": torch.arange(count) + 1,
                "masks": masks.to(torch.uint8),
                "keypoints": torch.cat([points, visible], 2).float(),
            }
        )
    return images, targets


def ours(values: Any) -> Any:
    """Lists and dictionaries of PyTorch's tensors, as ours."""
    if isinstance(values, dict):
        return {key: ours(value) for key, value in values.items()}
    return [ours(value) for value in values] if isinstance(values, list) else tensor(values)


def assert_same(here: Any, there: Any) -> None:
    assert list(here) == list(there)
    for key, expected in there.items():
        # Keypoints, their scores, and PyTorch's entropy of labels that are, are float32.
        exact = expected.dtype != torch.float32
        np.testing.assert_allclose(
            array(here[key]), array(expected), rtol=1e-6 if exact else 1e-4,
            atol=1e-9 if exact else 1e-4, err_msg=key,
        )  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_small_models(name: str) -> None:
    there, here = twins(SMALL[name])
    assert_same_start(there, here)
    there.double()
    here.double().load_state_dict({k: tensor(v) for k, v in there.state_dict().items()})
    images, targets = pictures()
    torch.manual_seed(1)
    tlc.manual_seed(1)
    expected, losses = there(images, targets), here(ours(images), ours(targets))
    assert_same(losses, expected)
    sum(expected.values()).backward()
    sum(losses.values()).backward()
    assert_same_gradients(there, here)
    found = here.eval()(ours(images))
    for mine, theirs in zip(found, there.eval()(images), strict=True):
        assert len(mine["boxes"]) > 0
        assert_same(mine, theirs)

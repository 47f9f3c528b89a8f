"""Detectors against torchvision's: trees, losses, gradients, detections, mistakes of callers."""

from __future__ import annotations

import importlib
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
    libraries,
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
def test_trained_networks_are_partly_frozen(name: str) -> None:
    trained = "weights_backbone" if name in WHOLE else "weights"

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


# Whose weights are tried as a whole for another of its kind.
WHOLE = ("fasterrcnn_resnet50_fpn", "fasterrcnn_mobilenet_v3_large_fpn", "maskrcnn_resnet50_fpn_v2")


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


def vgg_maps(m: Any) -> Any:
    layers = m.models.vgg.make_layers([4, "M", 4, "M", 4, "M", 512, "M", 512, "M"])
    return m.models.detection.ssd.SSDFeatureExtractorVGG(layers, highres=False)


def mobile_maps(m: Any) -> Any:
    features = m.models.mobilenet_v3_large(width_mult=0.25).features
    extractor = m.models.detection.ssdlite.SSDLiteFeatureExtractorMobileNet
    return extractor(features, 13, m.nn.BatchNorm2d, width_mult=0.25)


@pytest.mark.parametrize(("build", "side"), [(vgg_maps, 300), (mobile_maps, 64)])
def test_maps_of_single_shot_detectors(build: Any, side: int) -> None:
    there, here = twins(build)
    assert_same_start(there, here)
    x = torch.rand(1, 3, side, side)
    with torch.no_grad(), tlc.no_grad():
        maps, expected = here.eval()(tensor(x)), there.eval()(x)
    assert list(maps) == list(expected)
    for name, level in expected.items():
        np.testing.assert_allclose(array(maps[name]), array(level), rtol=1e-4, atol=1e-5)


def test_categories_of_weights() -> None:
    for name in NAMES:
        same(
            lambda m, name=name: [
                m.models.get_model_weights(name).DEFAULT.meta.get(key)
                for key in ("categories", "keypoint_names")
            ]
        )


BOX = [[2.0, 3.0, 20.0, 25.0]]
TARGETS: dict[str, Any] = {
    "none": lambda torch: None,
    "no boxes": lambda torch: [{}],
    "a list": lambda torch: [{"boxes": BOX, "labels": torch.ones(1).long()}],
    "one dimension": lambda torch: [{"boxes": torch.tensor(BOX[0])}],
    "no labels": lambda torch: [{"boxes": torch.tensor(BOX)}],
    "whole boxes": lambda torch: [
        {"boxes": torch.tensor(BOX).long(), "labels": torch.ones(1).long()}
    ],
    "broken labels": lambda torch: [{"boxes": torch.tensor(BOX), "labels": torch.ones(1)}],
    "no area": lambda torch: [
        {"boxes": torch.tensor([*BOX, [4.0, 5.0, 4.0, 9.0]]), "labels": torch.ones(2).long()}
    ],
    "nothing": lambda torch: [{"boxes": torch.zeros(0, 4), "labels": torch.zeros(0).long()}],
}


@pytest.mark.parametrize("kind", TARGETS)
def test_targets(kind: str) -> None:
    def script(m: Any) -> Any:
        m.torch.manual_seed(0)
        model = rcnn(m, "FasterRCNN")
        losses = model([m.torch.rand(3, 56, 56)], TARGETS[kind](m.torch))
        return {key: round(float(loss.detach()), 3) for key, loss in losses.items()}

    result = same(script)
    assert isinstance(result, dict) == (kind in ("nothing", "whole boxes"))


MISTAKES: list[Callable[[Any], Any]] = [
    lambda m: rcnn(m, "FasterRCNN").eval()([m.torch.ones(3)]),
    lambda m: rcnn(m, "FasterRCNN").eval()([m.torch.ones(3, 4)]),
    lambda m: rcnn(m, "FasterRCNN").eval()([m.torch.ones(3, 9, 9).byte()]),
    lambda m: rcnn(m, "FasterRCNN", num_classes=3),
    lambda m: m.models.detection.FasterRCNN(m.nn.ReLU(), 3),
    lambda m: m.models.detection.FasterRCNN(pyramid(m)),
    lambda m: m.models.detection.FasterRCNN(pyramid(m), 3, rpn_anchor_generator=1),
    lambda m: m.models.detection.FasterRCNN(pyramid(m), 3, box_roi_pool=1),
    lambda m: m.models.detection.MaskRCNN(pyramid(m), 3, mask_predictor=m.nn.ReLU()),
    lambda m: mask_rcnn(m).roi_heads.check_targets([{"boxes": 0, "labels": 0}]),
    lambda m: m.models.detection.KeypointRCNN(
        pyramid(m), 3, keypoint_predictor=m.nn.ReLU(), num_keypoints=4
    ),
    lambda m: m.models.detection.RetinaNet(m.nn.ReLU(), 3),
    lambda m: m.models.detection.FCOS(pyramid(m), 3, anchor_generator=1),
    lambda m: m.models.detection.FCOS(pyramid(m), 3, anchor_generator=anchors(m)),
    lambda m: m.models.detection.faster_rcnn.FastRCNNPredictor(4, 2)(m.torch.ones(1, 4, 2, 2)),
    lambda m: m.models.detection._utils.Matcher(0.3, 0.7),
    lambda m: m.models.detection._utils.Matcher(0.7, 0.3)(m.torch.ones(0, 2)),
    lambda m: m.models.detection._utils.Matcher(0.7, 0.3)(m.torch.ones(2, 0)),
    lambda m: m.models.detection.anchor_utils.DefaultBoxGenerator([[2]], steps=[1, 2]),
]


@pytest.mark.parametrize("index", range(len(MISTAKES)))
def test_mistakes(index: int) -> None:
    name, text = same(MISTAKES[index])
    assert name in ("AssertionError", "TypeError", "ValueError") and text


def backbone(m: Any, kind: str, *args: Any, **kwargs: Any) -> Any:
    build = getattr(m.models.detection.backbone_utils, f"{kind}_backbone")
    with m.torch.device("meta"):
        model = build(*args, **kwargs)
    frozen = [name for name, p in model.named_parameters() if not p.requires_grad]
    return repr(model).replace("tensorflow_lite_clone", "torch"), frozen


BACKBONES: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("resnet_fpn", "resnet18", False), {}),
    (("resnet_fpn",), {"backbone_name": "resnet18", "pretrained": False}),
    (
        ("resnet_fpn",),
        {"backbone_name": "resnet18", "weights": None, "trainable_layers": 5,
         "returned_layers": [2, 4]},
    ),
    (("resnet_fpn",), {"backbone_name": "resnet18", "weights": None, "trainable_layers": 6}),
    (("resnet_fpn",), {"backbone_name": "resnet18", "weights": None, "returned_layers": [5]}),
    (("mobilenet",), {"backbone_name": "mobilenet_v2", "weights": None, "fpn": False}),
    (("mobilenet",), {"backbone_name": "mobilenet_v3_small", "weights": None, "fpn": True,
                      "trainable_layers": 0, "returned_layers": [1, 3]}),
    (("mobilenet",), {"backbone_name": "mobilenet_v2", "weights": None, "fpn": True,
                      "trainable_layers": 9}),
    (("mobilenet",), {"backbone_name": "mobilenet_v2", "weights": None, "fpn": True,
                      "returned_layers": [9]}),
]  # fmt: skip


@pytest.mark.parametrize("index", range(len(BACKBONES)))
def test_backbones(index: int) -> None:
    args, kwargs = BACKBONES[index]
    same(lambda m: backbone(m, *args, **kwargs))


def test_names_of_nodes_of_backbones() -> None:
    def script(m: Any) -> Any:
        extraction = importlib.import_module(f"{m.models.__name__}.feature_extraction")
        with m.torch.device("meta"):
            model = m.models.detection.backbone_utils.resnet_fpn_backbone(
                backbone_name="resnet18", weights=None
            )
        created = extraction.create_feature_extractor(model, ["body.layer2", "fpn.interpolate"])
        shapes = [
            list(y.shape) for y in created(m.torch.ones(1, 3, 64, 64, device="meta")).values()
        ]
        return extraction.get_graph_node_names(model), shapes

    same(script)


def test_trained_layers_of_a_network_that_has_learned_nothing() -> None:
    def script(m: Any) -> Any:
        check = m.models.detection.backbone_utils._validate_trainable_layers
        return check(False, 2, 5, 3), check(True, None, 5, 3)

    same(script)
    same(lambda m: m.models.detection.backbone_utils._validate_trainable_layers(True, 9, 5, 3))


def test_older_states_of_heads() -> None:
    """Layers that are now in a block were not, before."""
    heads = models.detection.retinanet.RetinaNetHead(8, 2, 3), models.detection.rpn.RPNHead(8, 2)
    masks = models.detection.mask_rcnn.MaskRCNNHeads(8, (4, 4), 1)
    for head, old_name, new_name in (
        (heads[0].classification_head, "conv.4.weight", "conv.2.0.weight"),
        (heads[1], "conv.bias", "conv.0.0.bias"),
        (masks, "mask_fcn2.weight", "1.0.weight"),
    ):
        state = dict(head.state_dict())
        state[old_name] = state.pop(new_name) * 0 + 3
        head.load_state_dict(state)
        assert (head.state_dict()[new_name] == 3).all()


def test_pasted_masks_and_box_losses() -> None:
    generator = torch.Generator().manual_seed(0)
    options = {"generator": generator, "dtype": torch.float64}
    masks = torch.rand(4, 1, 5, 5, **options)
    # Inside, over two edges, outside, without an area.
    boxes = torch.tensor(
        [[2.0, 3, 9.5, 12], [-4, -3, 8, 30], [50, 50, 60, 60], [5, 5, 5, 5]]
    ).double()
    there = oracle().models.detection
    here = models.detection
    pasted = here.roi_heads.paste_masks_in_image(tensor(masks), tensor(boxes), (20, 17))
    expected = there.roi_heads.paste_masks_in_image(masks, boxes, (20, 17))
    np.testing.assert_allclose(array(pasted), array(expected), rtol=1e-6, atol=1e-7)
    truth = boxes + torch.rand(4, 4, **options) * 0.2 + torch.tensor([0.0, 0, 1, 1])
    for kind in ("l1", "smooth_l1", "giou", "diou", "ciou"):
        values = []
        for library, convert in ((there, lambda t: t), (here, tensor)):
            coder = library._utils.BoxCoder((1.0, 1.0, 2.0, 2.0))
            arguments = [convert(t) for t in (boxes[:2], truth[:2], masks[:2, 0, 0, :4])]
            values.append(library._utils._box_loss(kind, coder, *arguments, {"beta": 0.5}))
        np.testing.assert_allclose(float(values[1]), float(values[0]), rtol=1e-9)


def test_finetuning() -> None:
    """As the tutorial does it: other heads for other classes, then steps of training."""
    model = mask_rcnn(libraries()[1])
    heads = model.roi_heads
    width = heads.box_predictor.cls_score.in_features
    heads.box_predictor = models.detection.faster_rcnn.FastRCNNPredictor(width, 4)
    channels = heads.mask_predictor.conv5_mask.in_channels
    heads.mask_predictor = models.detection.mask_rcnn.MaskRCNNPredictor(channels, 6, 4)
    optimizer = tlc.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images, targets = (ours(values) for values in pictures())
    totals = []
    for _ in range(6):
        tlc.manual_seed(0)
        losses = model.double()(images, targets)
        total = sum(losses.values())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        totals.append(float(total))
    assert totals[-1] < totals[0]
    assert {int(label) for found in model.eval()(images) for label in found["labels"]} <= {1, 2, 3}

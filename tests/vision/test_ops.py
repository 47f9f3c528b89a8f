"""Operators against torchvision's Python parts, and where it has compiled ones, against loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.vision import ops
from tests.vision.zoo import (
    array,
    assert_same_run,
    assert_same_start,
    libraries,
    needs_torchvision,
    same,
    tensor,
    twins,
)


def boxes_of(count: int, seed: int = 0, size: float = 20.0, dtype: Any = np.float64) -> np.ndarray:
    """Random boxes (count, 4)."""
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, size, (count, 2))
    return np.concatenate([low, low + rng.uniform(1, size / 2, (count, 2))], 1).astype(dtype)


def close(function: Any, *inputs: np.ndarray, gradient: bool = True) -> None:
    """`function(ops, torch, *tensors)` is the same with both, and so is its gradient."""
    results = []
    for library in libraries():
        tensors = [library.torch.from_numpy(x.copy()) for x in inputs]
        for x in tensors:
            x.requires_grad_(gradient)
        library.torch.manual_seed(3)
        y = function(library.ops, library.torch, *tensors)
        if gradient:
            (y * y).sum().backward()
        grads = [None if x.grad is None else array(x.grad) for x in tensors]
        results.append((str(y.dtype).rpartition(".")[2], array(y), *grads))
    there, here = results
    assert here[0] == there[0]
    for value, expected in zip(here[1:], there[1:]):
        assert (value is None) == (expected is None)
        if value is not None:
            np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-11)


@needs_torchvision
@pytest.mark.parametrize(
    "name", ["box_iou", "generalized_box_iou", "distance_box_iou", "complete_box_iou"]
)
def test_overlaps(name: str) -> None:
    close(lambda o, t, a, b: getattr(o, name)(a, b), boxes_of(5), boxes_of(7, 1))


@needs_torchvision
@pytest.mark.parametrize("fmt", ["xyxy", "xywh", "cxcywh"])
def test_formats_of_overlaps(fmt: str) -> None:
    close(lambda o, t, a, b: o.box_iou(a, b, fmt), boxes_of(5), boxes_of(7, 1))
    close(lambda o, t, a: o.box_area(a, fmt), boxes_of(5))


@needs_torchvision
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "float16"])
@pytest.mark.parametrize(
    "name", ["box_area", "box_iou", "generalized_box_iou", "distance_box_iou", "complete_box_iou"]
)
def test_dtypes(name: str, dtype: str) -> None:
    def script(m: Any) -> Any:
        boxes = m.torch.tensor([[1, 2, 30, 40], [5, 6, 8, 60]]).to(getattr(m.torch, dtype))
        y = getattr(m.ops, name)(*[boxes] * (1 if name == "box_area" else 2))
        kind = str(y.dtype).rpartition(".")[2]
        return kind, [round(float(v), 4) for v in y.flatten().tolist()]

    same(script)


@needs_torchvision
@pytest.mark.parametrize("kind", ["generalized", "distance", "complete"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses_of_overlaps(kind: str, reduction: str) -> None:
    def loss(o: Any, t: Any, a: Any, b: Any) -> Any:
        return getattr(o, f"{kind}_box_iou_loss")(a, b, reduction)

    close(loss, boxes_of(12), boxes_of(12, 1, size=25))
    close(loss, np.array([1.0, 2, 3, 4]), np.array([1.5, 0, 2, 5]))
    close(loss, np.zeros((0, 4)), np.zeros((0, 4)))


@needs_torchvision
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(("alpha", "gamma"), [(0.25, 2), (-1, 2), (0.9, 0.5), (0, 0)])
def test_focal_loss(alpha: float, gamma: float, reduction: str) -> None:
    targets = (np.arange(12).reshape(3, 4) % 3 == 0) * 1.0
    close(
        lambda o, t, x: o.sigmoid_focal_loss(
            x, t.tensor(targets.tolist(), dtype=t.float64), alpha, gamma, reduction
        ),
        np.linspace(-3, 4, 12).reshape(3, 4),
    )


STRAIGHT = ["xyxy", "xywh", "cxcywh"]
ROTATED = ["xywhr", "cxcywhr", "xyxyxyxy"]


@needs_torchvision
@pytest.mark.parametrize("source", [*STRAIGHT, *ROTATED])
@pytest.mark.parametrize("target", [*STRAIGHT, *ROTATED, "nothing"])
def test_conversions(source: str, target: str) -> None:
    columns = {"xyxyxyxy": 8}.get(source, 5 if source in ROTATED else 4)

    def script(m: Any, whole: bool) -> Any:
        rows = [[3 * i + 7 * j % 5 + 1 for i in range(columns)] for j in range(4)]
        boxes = m.torch.tensor(rows) if whole else m.torch.tensor(rows).to(m.torch.float64) + 0.3
        y = m.ops.box_convert(boxes, source, target)
        return str(y.dtype)[-7:], [round(v, 5) for v in y.flatten().tolist()]

    same(lambda m: script(m, False))
    same(lambda m: script(m, True))


@needs_torchvision
def test_cleaning_of_boxes() -> None:
    boxes = (boxes_of(20) - 5).round(2)
    close(lambda o, t, a: o.clip_boxes_to_image(a, (12, 9)), boxes)
    close(lambda o, t, a: o.remove_small_boxes(a, 4.0), boxes, gradient=False)
    masks = np.random.default_rng(0).random((6, 7, 5)) > np.linspace(0.2, 1, 6)[:, None, None]
    close(lambda o, t, a: o.masks_to_boxes(a), masks * 1.0, gradient=False)
    close(lambda o, t, a: o.masks_to_boxes(a[:0]), masks * 1.0, gradient=False)


@needs_torchvision
@pytest.mark.parametrize("size", [1, 3, 5])
def test_dropped_blocks(size: int) -> None:
    x = np.linspace(1, 2, 240).reshape(2, 3, 8, 5)
    cubes = np.linspace(1, 2, 300).reshape(2, 1, 5, 5, 6)
    close(lambda o, t, a: o.drop_block2d(a, 0.3, size), x)
    close(lambda o, t, a: o.drop_block2d(a.clone(), 0.3, size, inplace=True), x)
    close(lambda o, t, a: o.drop_block3d(a, 0.3, size), cubes)
    close(lambda o, t, a: o.drop_block2d(a, 0.3, size, training=False), x)


@needs_torchvision
@pytest.mark.parametrize("mode", ["row", "batch"])
@pytest.mark.parametrize("p", [0.0, 0.4, 1.0])
def test_stochastic_depth(mode: str, p: float) -> None:
    x = np.linspace(1, 2, 30).reshape(10, 3)
    close(lambda o, t, a: o.stochastic_depth(a, p, mode), x)
    close(lambda o, t, a: o.stochastic_depth(a, p, mode, training=False), x)


@needs_torchvision
def test_bad_arguments() -> None:
    scripts = [
        lambda m: m.ops.box_area(m.torch.ones(1, 4), "nothing"),
        lambda m: m.ops.sigmoid_focal_loss(m.torch.ones(1), m.torch.ones(1), alpha=-2),
        lambda m: m.ops.sigmoid_focal_loss(m.torch.ones(1), m.torch.ones(1), reduction="x"),
        lambda m: m.ops.complete_box_iou_loss(m.torch.ones(4), m.torch.ones(4), reduction="x"),
        lambda m: m.ops.drop_block2d(m.torch.ones(1, 1, 4, 4), 2, 2),
        lambda m: m.ops.drop_block2d(m.torch.ones(1, 4, 4), 0.2, 2),
        lambda m: m.ops.drop_block2d(m.torch.ones(1, 1, 8, 4), 0.2, 9),
        lambda m: m.ops.drop_block3d(m.torch.ones(1, 4, 4), 0.2, 2),
        lambda m: m.ops.stochastic_depth(m.torch.ones(2), 2, "row"),
        lambda m: m.ops.stochastic_depth(m.torch.ones(2), 0.2, "column"),
        lambda m: m.ops.FeaturePyramidNetwork([0], 3),
        lambda m: m.ops.DeformConv2d(3, 4, 3, groups=2),
        lambda m: m.ops._utils.check_roi_boxes_shape([m.torch.ones(2, 5)]),
        lambda m: m.ops._utils.check_roi_boxes_shape(m.torch.ones(2, 4)),
        lambda m: m.ops._utils.check_roi_boxes_shape(3),
    ]
    for script in scripts:
        error, message = same(script)
        assert error.endswith("Error") and message


LAYERS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "conv2d": (lambda m: m.ops.Conv2dNormActivation(3, 4, kernel_size=5, dilation=2), (2, 3, 9, 8)),
    "conv2d_uneven": (
        lambda m: m.ops.Conv2dNormActivation(
            3, 6, kernel_size=(3, 5), dilation=(1, 2), groups=3, activation_layer=m.nn.GELU,
            inplace=None, bias=True,
        ),
        (2, 3, 9, 8),
    ),
    "conv2d_bare": (
        lambda m: m.ops.Conv2dNormActivation(
            3, 4, norm_layer=None, activation_layer=None, stride=2
        ),
        (2, 3, 9, 8),
    ),
    "conv3d": (lambda m: m.ops.Conv3dNormActivation(2, 4), (2, 2, 4, 5, 3)),
    "squeeze": (
        lambda m: m.ops.SqueezeExcitation(4, 2, scale_activation=m.nn.Hardsigmoid), (2, 4, 3, 5),
    ),
    "mlp": (
        lambda m: m.ops.MLP(
            5, [4, 3], norm_layer=m.nn.LayerNorm, dropout=0.3, activation_layer=m.nn.SELU
        ),
        (6, 5),
    ),
    "permute": (lambda m: m.nn.Sequential(m.nn.Linear(4, 3), m.ops.Permute([0, 2, 1])), (2, 5, 4)),
    "frozen": (
        lambda m: m.nn.Sequential(m.nn.Conv2d(2, 3, 1), m.ops.FrozenBatchNorm2d(3, eps=0.1)),
        (2, 2, 3, 4),
    ),
    "drop_block": (lambda m: m.nn.Sequential(m.nn.Conv2d(1, 2, 1), m.ops.DropBlock2d(0.3, 3)),
                   (2, 1, 6, 6)),
}  # fmt: skip


@needs_torchvision
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    build, size = LAYERS[name]
    there, here = twins(build)
    assert_same_start(there, here)
    assert_same_run(there, here, torch.randn(size))


@needs_torchvision
def test_frozen_norm_reads_the_state_of_a_norm() -> None:
    there, here = twins(lambda m: m.ops.FrozenBatchNorm2d(3))
    for library, layer in zip(libraries(), (there, here)):
        norm = library.nn.BatchNorm2d(3)
        layer.load_state_dict(norm.state_dict())
        assert "num_batches_tracked" not in layer.state_dict()


@needs_torchvision
def test_representations() -> None:
    for build in (
        lambda o: o.RoIAlign(3, 0.5, 2),
        lambda o: o.RoIPool((3, 2), 0.5),
        lambda o: o.PSRoIAlign(3, 0.5, 2),
        lambda o: o.MultiScaleRoIAlign(["a"], 3, 2),
        lambda o: o.DeformConv2d(2, 4, 3, padding=1, groups=2),
        lambda o: o.DeformConv2d(2, 4, 3, bias=False, stride=2, dilation=2),
        lambda o: o.DropBlock3d(0.1, 3),
        lambda o: o.StochasticDepth(0.1, "row"),
    ):
        same(lambda m, build=build: repr(build(m.ops)))


@needs_torchvision
@pytest.mark.parametrize("extra", [None, "LastLevelMaxPool", "LastLevelP6P7"])
def test_pyramids(extra: str | None) -> None:
    def build(m: Any) -> Any:
        pyramid = m.ops.feature_pyramid_network
        block = {"LastLevelP6P7": (4, 3)}.get(extra, ()) if extra else ()
        extra_blocks = getattr(pyramid, extra)(*block) if extra else None
        network = m.ops.FeaturePyramidNetwork([2, 4], 3, extra_blocks, m.nn.BatchNorm2d)

        class Named(m.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.network = network

            def forward(self, fine: Any, coarse: Any) -> Any:
                result = self.network({"fine": fine, "coarse": coarse})
                assert list(result)[:2] == ["fine", "coarse"]
                assert list(result)[2:] == {"LastLevelMaxPool": ["pool"]}.get(
                    extra, ["p6", "p7"] if extra else []
                )
                return tuple(result.values())

        return Named()

    there, here = twins(build)
    assert_same_start(there, here)
    assert_same_run(there, here, torch.randn(2, 2, 8, 9), torch.randn(2, 4, 4, 5))


def iou(a: np.ndarray, b: np.ndarray) -> float:
    sides = [min(a[2 + i], b[2 + i]) - max(a[i], b[i]) for i in range(2)]
    inter = max(sides[0], 0) * max(sides[1], 0)
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return inter / (sum(areas) - inter)


def slow_nms(boxes: np.ndarray, scores: np.ndarray, threshold: float) -> list[int]:
    kept: list[int] = []
    for index in sorted(range(len(boxes)), key=lambda i: (-scores[i], i)):
        if all(iou(boxes[index], boxes[other]) <= threshold for other in kept):
            kept.append(index)
    return kept


@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.5, 1.0])
def test_suppression(threshold: float) -> None:
    boxes, scores = boxes_of(60), np.random.default_rng(5).integers(0, 40, 60) / 40
    expected = slow_nms(boxes, scores, threshold)
    kept = ops.nms(tlc.tensor(boxes), tlc.tensor(scores), threshold)
    assert kept.dtype == tlc.int64
    assert kept.tolist() == expected
    assert (len(expected) < 60) == (threshold < 1)


def test_suppression_by_hand() -> None:
    # Of 2 x 2 and the same moved by 1: intersection 2, union 6.
    boxes = tlc.tensor([[0.0, 0, 2, 2], [1.0, 0, 3, 2], [5.0, 5, 6, 6]])
    scores = tlc.tensor([0.5, 0.9, 0.1])
    assert ops.nms(boxes, scores, 0.3).tolist() == [1, 2]
    assert ops.nms(boxes, scores, 0.34).tolist() == [1, 0, 2]
    # Strictly more than the threshold goes: two halves of a box overlap it by one half exactly.
    halves = tlc.tensor([[0.0, 0, 4, 4], [0.0, 0, 4, 2]])
    assert ops.nms(halves, tlc.tensor([2.0, 1.0]), 0.5).tolist() == [0, 1]
    assert ops.nms(tlc.zeros(0, 4), tlc.zeros(0), 0.5).tolist() == []
    # Boxes without an area overlap nothing.
    assert ops.nms(tlc.zeros(2, 4), tlc.zeros(2), 0.5).tolist() == [0, 1]
    for bad in ((tlc.zeros(4), tlc.zeros(1)), (tlc.zeros(2, 5), tlc.zeros(2))):
        with pytest.raises(RuntimeError, match="boxes should"):
            ops.nms(*bad, 0.5)
    for wrong in (tlc.zeros(2, 1), tlc.zeros(3)):
        with pytest.raises(RuntimeError, match="scores should"):
            ops.nms(tlc.zeros(2, 4), wrong, 0.5)


@pytest.mark.parametrize("way", ["batched_nms", "_batched_nms_vanilla"])
def test_suppression_by_category(way: str) -> None:
    boxes, scores = boxes_of(80), np.random.default_rng(5).integers(0, 30, 80) / 30
    categories = np.random.default_rng(6).integers(0, 4, 80)
    kept = [
        [int(i) for i in np.flatnonzero(categories == c)[slow_nms(
            boxes[categories == c], scores[categories == c], 0.2)]]
        for c in range(4)
    ]  # fmt: skip
    expected = sorted(sum(kept, []), key=lambda i: (-scores[i], i))
    function = getattr(ops.boxes, way)
    result = function(tlc.tensor(boxes), tlc.tensor(scores), tlc.tensor(categories), 0.2)
    assert result.tolist() == expected
    assert ops.batched_nms(tlc.zeros(0, 4), tlc.zeros(0), tlc.zeros(0), 0.5).tolist() == []


@needs_torchvision
def test_first_values_of_deformable_convolutions() -> None:
    assert_same_start(*twins(lambda m: m.ops.DeformConv2d(4, 6, 3, groups=2)))


def test_tensors_of_both_libraries() -> None:
    assert isinstance(tensor(torch.ones(2)), tlc.Tensor)

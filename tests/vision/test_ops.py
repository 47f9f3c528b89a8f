"""Operators against torchvision's Python parts, and where it has compiled ones, against loops."""

from __future__ import annotations

import math
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


def bilinear(plane: np.ndarray, y: float, x: float) -> float:
    """RoIAlign's: 0 further than a pixel outside, the edge's value up to there."""
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    fy, fx = y - top, x - left
    return float(
        plane[top, left] * (1 - fy) * (1 - fx) + plane[top, right] * (1 - fy) * fx
        + plane[bottom, left] * fy * (1 - fx) + plane[bottom, right] * fy * fx
    )  # fmt: skip


def slow_roi_align(
    x: np.ndarray, rois: np.ndarray, size: tuple[int, int], scale: float, ratio: int, aligned: bool
) -> np.ndarray:
    result = np.zeros((len(rois), x.shape[1], *size))
    for k, (picture, *corners) in enumerate(rois):
        x1, y1, x2, y2 = (corner * scale - (0.5 if aligned else 0) for corner in corners)
        sides = [y2 - y1, x2 - x1]
        if not aligned:
            sides = [max(side, 1.0) for side in sides]
        steps = [side / count for side, count in zip(sides, size)]
        grid = [ratio if ratio > 0 else math.ceil(step) for step in steps]
        for c, i, j in np.ndindex(x.shape[1], *size):
            samples = [
                bilinear(
                    x[int(picture), c],
                    y1 + (i + (a + 0.5) / grid[0]) * steps[0],
                    x1 + (j + (b + 0.5) / grid[1]) * steps[1],
                )
                for a in range(grid[0])
                for b in range(grid[1])
            ]
            result[k, c, i, j] = sum(samples) / max(len(samples), 1)
    return result


ROIS = np.array(
    [
        [0, 1.0, 2.0, 9.0, 7.5],
        [1, 0.2, 0.1, 0.7, 0.4],  # smaller than a pixel
        [0, -6.0, -4.0, 3.0, 30.0],  # outside on three sides
        [1, 12.0, 9.0, 11.0, 8.0],  # no box at all
        [0, 3.3, 1.7, 15.9, 4.1],
    ]
)


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [-1, 1, 3])
@pytest.mark.parametrize(("size", "scale"), [((2, 3), 1.0), ((3, 1), 0.5)])
def test_roi_align(size: tuple[int, int], scale: float, ratio: int, aligned: bool) -> None:
    data = np.random.default_rng(0).standard_normal((2, 3, 8, 11))
    x = tlc.tensor(data, requires_grad=True)
    y = ops.roi_align(x, tlc.tensor(ROIS), size, scale, ratio, aligned)
    expected = slow_roi_align(data, ROIS, size, scale, ratio, aligned)
    np.testing.assert_allclose(array(y), expected, rtol=1e-10, atol=1e-12)
    assert abs(expected).max() > 0.1
    # The operator is linear, so <y(v), w> = <v, gradient of <y, w>> for every v.
    w = np.random.default_rng(1).standard_normal(expected.shape)
    (y * tlc.tensor(w)).sum().backward()
    direction = np.random.default_rng(2).standard_normal(data.shape)
    moved = slow_roi_align(direction, ROIS, size, scale, ratio, aligned)
    assert (array(x.grad) * direction).sum() == pytest.approx((moved * w).sum(), rel=1e-9)


def test_roi_align_by_hand() -> None:
    # Interpolation of a ramp is the ramp: a bin's mean is its value in the bin's middle.
    ramp = tlc.arange(8.0).expand(1, 1, 8, 8)
    roi = tlc.tensor([[0.0, 1.0, 1.0, 5.0, 5.0]])
    assert ops.roi_align(ramp, roi, 2, sampling_ratio=2)[0, 0].tolist() == [[2.0, 4.0]] * 2
    aligned = ops.roi_align(ramp, roi, (1, 2), sampling_ratio=2, aligned=True)
    assert aligned[0, 0].tolist() == [[1.5, 3.5]]
    as_list = ops.RoIAlign((1, 2), 1.0, 2, aligned=True)(ramp, [roi[:, 1:]])
    assert as_list.tolist() == aligned.tolist()
    none = ops.roi_align(ramp, tlc.zeros(0, 5), 2)
    assert none.shape == (0, 1, 2, 2)
    with pytest.raises(RuntimeError, match="same type"):
        ops.roi_align(ramp, roi.double(), 2)


def test_position_sensitive_roi_align() -> None:
    data = np.random.default_rng(0).standard_normal((2, 12, 8, 11))
    y = ops.ps_roi_align(tlc.tensor(data), tlc.tensor(ROIS), (2, 3), 0.5, 2)
    every = slow_roi_align(data, ROIS, (2, 3), 0.5, 2, True)
    expected = np.zeros((len(ROIS), 2, 2, 3))
    for c, i, j in np.ndindex(2, 2, 3):
        expected[:, c, i, j] = every[:, (c * 2 + i) * 3 + j, i, j]
    np.testing.assert_allclose(array(y), expected, rtol=1e-10, atol=1e-12)
    with pytest.raises(RuntimeError, match="multiple"):
        ops.ps_roi_align(tlc.tensor(data), tlc.tensor(ROIS), 5)


def slow_roi_pool(
    x: np.ndarray, rois: np.ndarray, size: tuple[int, int], scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """The largest values, and the gradient of their sum."""
    result, grad = np.zeros((len(rois), x.shape[1], *size)), np.zeros_like(x)
    for k, (picture, *corners) in enumerate(rois):
        x1, y1, x2, y2 = (math.copysign(int(abs(c * scale) + 0.5), c) for c in corners)
        height, width = (max(b - a + 1, 1) for a, b in ((y1, y2), (x1, x2)))
        for c, i, j in np.ndindex(x.shape[1], *size):
            best = None
            for a, b in np.ndindex(*x.shape[2:]):
                down = (
                    math.floor(i * height / size[0])
                    <= a - y1
                    < math.ceil((i + 1) * height / size[0])
                )
                across = (
                    math.floor(j * width / size[1]) <= b - x1 < math.ceil((j + 1) * width / size[1])
                )
                value = x[int(picture), c, a, b]
                if down and across and (best is None or value > x[best]):
                    best = (int(picture), c, a, b)
            if best is not None:
                result[k, c, i, j] = x[best]
                grad[best] += 1
    return result, grad


@pytest.mark.parametrize(("size", "scale"), [((2, 3), 1.0), ((3, 1), 0.5)])
def test_roi_pool(size: tuple[int, int], scale: float) -> None:
    # Whole numbers, so that largest values are tied: the first one has the gradient.
    data = np.random.default_rng(0).integers(-4, 4, (2, 3, 8, 11)).astype(np.float64)
    x = tlc.tensor(data, requires_grad=True)
    y = ops.roi_pool(x, tlc.tensor(ROIS), size, scale)
    expected, grad = slow_roi_pool(data, ROIS, size, scale)
    assert array(y).tolist() == expected.tolist()
    y.sum().backward()
    assert array(x.grad).tolist() == grad.tolist()
    assert ops.RoIPool(size, scale)(x, tlc.tensor(ROIS)).tolist() == y.tolist()
    assert ops.roi_pool(x, tlc.zeros(0, 5, dtype=tlc.float64), 2).shape == (0, 3, 2, 2)


def test_levels_of_a_pyramid() -> None:
    maps = {name: tlc.randn(2, 3, side, side) for name, side in (("a", 64), ("b", 32), ("c", 16))}
    boxes = [tlc.tensor([[0.0, 0, 100, 100], [0.0, 0, 250, 250]]), tlc.tensor([[5.0, 5, 200, 150]])]
    pooler = ops.MultiScaleRoIAlign(["a", "b", "c"], 2, 2)
    y = pooler(maps, boxes, [(256, 256), (200, 256)])
    # Of sides 100, 250 and 168: floor(4 + log2(side / 224)) = 2, 4 and 3.
    expected = [
        ops.roi_align(maps["a"], tlc.tensor([[0, 0.0, 0, 100, 100]]), 2, 1 / 4, 2),
        ops.roi_align(maps["c"], tlc.tensor([[0, 0.0, 0, 250, 250]]), 2, 1 / 16, 2),
        ops.roi_align(maps["b"], tlc.tensor([[1, 5.0, 5, 200, 150]]), 2, 1 / 8, 2),
    ]
    assert y.tolist() == tlc.cat(expected).tolist()
    one = ops.MultiScaleRoIAlign(["b"], 2, 2)(maps, boxes, [(256, 256), (200, 256)])
    assert one[2].tolist() == expected[2][0].tolist()


@pytest.mark.parametrize("masked", [False, True])
def test_deformable_convolution(masked: bool) -> None:
    """Against a loop over its definition, with two groups of channels and of offsets."""
    rng = np.random.default_rng(0)
    x, weight = rng.standard_normal((2, 4, 6, 5)), rng.standard_normal((6, 2, 3, 2))
    offset = rng.standard_normal((2, 2 * 2 * 6, 3, 4)) * 1.5
    mask = rng.random((2, 2 * 6, 3, 4)) if masked else None
    bias = rng.standard_normal(6)
    stride, padding, dilation = (2, 1), (1, 0), (1, 1)

    def read(plane: np.ndarray, y: float, x: float) -> float:
        total = 0.0
        for a in (math.floor(y), math.floor(y) + 1):
            for b in (math.floor(x), math.floor(x) + 1):
                if 0 <= a < plane.shape[0] and 0 <= b < plane.shape[1]:
                    total += plane[a, b] * (1 - abs(y - a)) * (1 - abs(x - b))
        return total

    expected = np.zeros((2, 6, 3, 4)) + bias[:, None, None]
    for n, o, i, j in np.ndindex(2, 6, 3, 4):
        for c, a, b in np.ndindex(2, 3, 2):
            channel = o // 3 * 2 + c
            tap = channel // 2 * 6 + a * 2 + b
            y = i * stride[0] - padding[0] + a + offset[n, 2 * tap, i, j]
            z = j * stride[1] - padding[1] + b + offset[n, 2 * tap + 1, i, j]
            scale = mask[n, tap, i, j] if mask is not None else 1.0
            expected[n, o, i, j] += weight[o, c, a, b] * scale * read(x[n, channel], y, z)
    inputs = [tlc.tensor(value, requires_grad=True) for value in (x, offset, weight, bias)]
    modulation = None if mask is None else tlc.tensor(mask, requires_grad=True)
    result = ops.deform_conv2d(*inputs, stride, padding, dilation, modulation)
    np.testing.assert_allclose(array(result), expected, rtol=1e-9, atol=1e-10)
    (result**2).sum().backward()
    assert all(float(value.grad.abs().sum()) > 0 for value in inputs)


def test_deformable_convolution_without_offsets() -> None:
    layer = ops.DeformConv2d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2)
    x = tlc.randn(2, 4, 9, 8)
    expected = tlc.nn.functional.conv2d(x, layer.weight, layer.bias, 2, 1, 2, 2)
    offset = tlc.zeros(2, 18, *expected.shape[2:])
    np.testing.assert_allclose(array(layer(x, offset)), array(expected), rtol=1e-4, atol=1e-5)
    # One pixel further to the right, everywhere.
    offset[:, 1::2] = 1.0
    moved = tlc.nn.functional.pad(x, (0, 1))[..., 1:]
    expected = tlc.nn.functional.conv2d(moved, layer.weight, None, 2, 1, 2, 2)
    result = ops.deform_conv2d(x, offset, layer.weight, None, 2, 1, 2)
    np.testing.assert_allclose(
        array(result)[..., 1:], array(expected)[..., 1:], rtol=1e-4, atol=1e-5
    )
    for bad in (offset[:, :17], offset[..., 1:]):
        with pytest.raises(RuntimeError, match="offset"):
            layer(x, bad)


@needs_torchvision
def test_first_values_of_deformable_convolutions() -> None:
    assert_same_start(*twins(lambda m: m.ops.DeformConv2d(4, 6, 3, groups=2)))


def test_tensors_of_both_libraries() -> None:
    assert isinstance(tensor(torch.ones(2)), tlc.Tensor)

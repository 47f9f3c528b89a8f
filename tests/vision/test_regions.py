"""Pooling of regions and deformable convolution against slow loops over their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.vision import ops
from tests.vision.zoo import array


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

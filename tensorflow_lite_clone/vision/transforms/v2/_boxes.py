"""Geometric transforms of boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.ops.create.constructors import tensor
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.transforms._shapes import (
    borders,
    expanded_size,
    inverse_affine,
    perspective_coefficients,
)
from tensorflow_lite_clone.vision.tv_tensors import BoundingBoxes, BoundingBoxFormat

XYXY, XYWH = BoundingBoxFormat.XYXY, BoundingBoxFormat.XYWH
Size = tuple[int, int]


def corners_of(boxes: Tensor, format: BoundingBoxFormat) -> Tensor:
    """Boxes in any format as (left, top, right, bottom)."""
    if format is XYXY:
        return boxes
    corner, size = boxes[..., :2], boxes[..., 2:]
    if format is XYWH:
        return cat([corner, corner + size], -1)
    if size.is_floating_point():
        return cat([corner - size / 2, corner + size / 2], -1)
    start = corner - (size + 1).div(2, rounding_mode="floor")
    return cat([start, start + size], -1)


def from_corners(corners: Tensor, format: BoundingBoxFormat) -> Tensor:
    """Boxes (left, top, right, bottom) in any format."""
    if format is XYXY:
        return corners
    start, end = corners[..., :2], corners[..., 2:]
    if format is XYWH:
        return cat([start, end - start], -1)
    middle = start + end
    middle = middle / 2 if middle.is_floating_point() else middle.div(2, rounding_mode="floor")
    return cat([middle, end - start], -1)


def clamped(corners: Tensor, size: Size) -> Tensor:
    """Boxes cut off at the borders of a picture."""
    height, width = size
    x, y = corners[..., 0::2].clamp(0, width), corners[..., 1::2].clamp(0, height)
    return stack([x[..., 0], y[..., 0], x[..., 1], y[..., 1]], -1)


def made(
    boxes: BoundingBoxes, corners: Tensor, size: Size | None = None, clamp: bool = True
) -> Any:
    """Boxes like others, of corners on a canvas, by default the same one."""
    size = boxes.canvas_size if size is None else (int(size[0]), int(size[1]))
    if clamp:
        corners = clamped(corners, size)
    result = from_corners(corners, boxes.format).to(boxes.dtype)
    return boxes.like_me(result, canvas_size=size)


def plain_corners(boxes: BoundingBoxes) -> Tensor:
    """The corners as a plain tensor; floats if they may lie between integers."""
    plain = boxes.as_subclass(Tensor)
    if boxes.format is BoundingBoxFormat.CXCYWH and not plain.is_floating_point():
        plain = plain.to(float32)
    return corners_of(plain, boxes.format)


def hflip(boxes: BoundingBoxes) -> Any:
    left, top, right, bottom = plain_corners(boxes).unbind(-1)
    width = boxes.canvas_size[1]
    return made(boxes, stack([width - right, top, width - left, bottom], -1), clamp=False)


def vflip(boxes: BoundingBoxes) -> Any:
    left, top, right, bottom = plain_corners(boxes).unbind(-1)
    height = boxes.canvas_size[0]
    return made(boxes, stack([left, height - bottom, right, height - top], -1), clamp=False)


def shifted(boxes: BoundingBoxes, x: int, y: int, size: Size) -> Any:
    """Boxes moved onto another canvas."""
    corners = plain_corners(boxes)
    move = tensor([x, y, x, y], dtype=corners.dtype, device=corners.device)
    return made(boxes, corners + move, size)


def crop(boxes: BoundingBoxes, top: int, left: int, height: int, width: int) -> Any:
    return shifted(boxes, -left, -top, (height, width))


def pad(boxes: BoundingBoxes, padding: int | Sequence[int]) -> Any:
    left, top, right, bottom = borders(padding)
    height, width = boxes.canvas_size
    return shifted(boxes, left, top, (height + top + bottom, width + left + right))


def resize(boxes: BoundingBoxes, size: Size) -> Any:
    height, width = boxes.canvas_size
    factors = [size[1] / width, size[0] / height] * 2
    corners = plain_corners(boxes)
    ratios = tensor(factors, dtype=float32, device=corners.device)
    return made(boxes, (corners * ratios).to(corners.dtype), size, clamp=False)


def moved(boxes: BoundingBoxes, points_to: Any, size: Size | None = None) -> Any:
    """The boxes around the corners of boxes after these moved.

    `points_to` maps points (..., 2), floats, to where they move.
    """
    corners = plain_corners(boxes)
    if not corners.is_floating_point():
        corners = corners.to(float32)
    left, top, right, bottom = corners.unbind(-1)
    points = stack(
        [
            stack([x, y], -1)
            for x, y in [(left, top), (right, top), (right, bottom), (left, bottom)]
        ],
        -2,
    )
    points = points_to(points)
    return made(boxes, cat([points.amin(-2), points.amax(-2)], -1), size)


def linear_map(matrix: Sequence[float], points: Tensor) -> Tensor:
    """Points (..., 2) multiplied by a matrix of two rows (a, b, c)."""
    a, b, c, d, e, f = matrix
    x, y = points.unbind(-1)
    return stack([a * x + b * y + c, d * x + e * y + f], -1)


def inverted(matrix: Sequence[float]) -> list[float]:
    """The two rows of an affine map's inverse."""
    a, b, c, d, e, f = matrix
    determinant = a * e - b * d
    a, b, d, e = e / determinant, -b / determinant, -d / determinant, a / determinant
    return [a, b, -(a * c + b * f), d, e, -(d * c + e * f)]


def affine(
    boxes: BoundingBoxes,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Sequence[float],
    center: Sequence[float] | None,
) -> Any:
    height, width = boxes.canvas_size
    middle = [width * 0.5, height * 0.5] if center is None else center
    matrix = inverted(inverse_affine(middle, angle, translate, scale, shear))
    return moved(boxes, lambda points: linear_map(matrix, points))


def rotate(boxes: BoundingBoxes, angle: float, expand: bool, center: Sequence[float] | None) -> Any:
    height, width = boxes.canvas_size
    middle = [width * 0.5, height * 0.5] if center is None else center
    matrix = inverse_affine(middle, -angle, [0.0, 0.0], 1.0, [0.0, 0.0])
    forward = inverted(matrix)
    if not expand:
        return moved(boxes, lambda points: linear_map(forward, points))
    outline = tensor([[0, 0], [0, height], [width, height], [width, 0]], dtype=float32)
    left, top = linear_map(forward, outline).amin(0).tolist()
    forward[2] -= left
    forward[5] -= top
    size = expanded_size(matrix, height, width)
    return moved(boxes, lambda points: linear_map(forward, points), size)


def perspective(
    boxes: BoundingBoxes,
    startpoints: Sequence[Sequence[int]],
    endpoints: Sequence[Sequence[int]],
) -> Any:
    a, b, c, d, e, f, g, h = perspective_coefficients(endpoints, startpoints)

    def points_to(points: Tensor) -> Tensor:
        x, y = points.unbind(-1)
        return linear_map([a, b, c, d, e, f], points) / (g * x + h * y + 1)[..., None]

    return moved(boxes, points_to)

"""Sizes and matrices of geometric transforms: numbers only, no pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

TOLERANCE = 1e-4  # of a pixel; less than that beyond a whole number does not make a picture larger


def resized(
    height: int, width: int, size: Sequence[int] | int | None, max_size: int | None
) -> tuple[int, int]:
    """The (height, width) to resize to: `size` itself, or the shorter edge's new length.

    `max_size` then bounds the longer edge; alone, it is what the longer edge becomes.
    """
    if size is not None and not isinstance(size, int) and len(size) != 1:
        return int(size[0]), int(size[1])
    short, long = sorted((height, width))
    if size is None:
        assert max_size is not None
        new_short, new_long = int(max_size * short / long), max_size
    else:
        target = size if isinstance(size, int) else size[0]
        new_short, new_long = target, int(target * long / short)
        if max_size is not None:
            if max_size <= target:
                raise ValueError(
                    f"max_size = {max_size} must be strictly greater than the requested size for "
                    f"the smaller edge size = {size}"
                )
            if new_long > max_size:
                new_short, new_long = int(max_size * new_short / new_long), max_size
    return (new_long, new_short) if width <= height else (new_short, new_long)


def borders(padding: int | Sequence[int]) -> tuple[int, int, int, int]:
    """The padding (left, top, right, bottom) that is meant by one, two or four numbers."""
    if isinstance(padding, int):
        return padding, padding, padding, padding
    if len(padding) == 1:
        return borders(int(padding[0]))
    if len(padding) == 2:
        return padding[0], padding[1], padding[0], padding[1]
    left, top, right, bottom = padding
    return left, top, right, bottom


def inverse_affine(
    center: Sequence[float],
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Sequence[float],
) -> list[float]:
    """The six numbers that lead from a place in the result to its place in the picture.

    The picture is moved by T C R S Sh C^-1: translation, center, rotation, scale, shear. What is
    returned is the inverse's upper two rows.
    """
    turn, shear_x, shear_y = (math.radians(value) for value in (angle, *shear))
    (cx, cy), (tx, ty) = center, translate
    a = math.cos(turn - shear_y) / math.cos(shear_y)
    b = -math.cos(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) - math.sin(turn)
    c = math.sin(turn - shear_y) / math.cos(shear_y)
    d = -math.sin(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) + math.cos(turn)
    # The determinant of ((a, b), (c, d)) is 1.
    a, b, c, d = d / scale, -b / scale, -c / scale, a / scale
    return [
        a,
        b,
        a * (-cx - tx) + b * (-cy - ty) + cx,
        c,
        d,
        c * (-cx - tx) + d * (-cy - ty) + cy,
    ]


def expanded_size(matrix: Sequence[float], height: int, width: int) -> tuple[int, int]:
    """The (height, width) that holds all of a picture after it was moved around its middle."""
    corners = [
        (x * width / 2, y * height / 2, 1.0) for x, y in [(-1, -1), (-1, 1), (1, 1), (1, -1)]
    ]
    moved = np.array(corners, np.float32) @ np.array(matrix, np.float32).reshape(2, 3).T
    middle = np.array([width * 0.5, height * 0.5], np.float32)
    step = np.float32(TOLERANCE)
    low = np.floor(np.trunc((moved.min(0) + middle) / step) * step)
    high = np.ceil(np.trunc((moved.max(0) + middle) / step) * step)
    new_width, new_height = (high - low).astype(int).tolist()
    return new_height, new_width


def perspective_coefficients(
    startpoints: Sequence[Sequence[int]], endpoints: Sequence[Sequence[int]]
) -> list[float]:
    """The eight numbers (a ... h) of the map from the four end points to the start points.

    (x, y) goes to ((ax + by + c) / (gx + hy + 1), (dx + ey + f) / (gx + hy + 1)).
    """
    if len(startpoints) != 4 or len(endpoints) != 4:
        raise ValueError(
            "Please provide exactly four corners, got "
            f"{len(startpoints)} startpoints and {len(endpoints)} endpoints."
        )
    rows: list[Any] = []
    for (x, y), (u, v) in zip(endpoints, startpoints):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
    values = np.array(startpoints, np.float64).ravel()
    solution = np.linalg.lstsq(np.array(rows, np.float64), values, rcond=None)[0]
    return solution.astype(np.float32).tolist()

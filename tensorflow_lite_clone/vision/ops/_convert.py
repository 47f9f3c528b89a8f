"""Boxes from one format to another.

Formats: corners (xyxy), a corner and sides (xywh), centre and sides (cxcywh), the latter two with
an angle in degrees counterclockwise (xywhr, cxcywhr), and all four corners (xyxyxyxy).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.tensor import Tensor


def xywh_to_xyxy(boxes: Tensor) -> Tensor:
    x, y, w, h = boxes.unbind(-1)
    return stack([x, y, x + w, y + h], dim=-1)


def xyxy_to_xywh(boxes: Tensor) -> Tensor:
    x1, y1, x2, y2 = boxes.unbind(-1)
    return stack([x1, y1, x2 - x1, y2 - y1], dim=-1)


def cxcywh_to_xyxy(boxes: Tensor) -> Tensor:
    cx, cy, w, h = boxes.unbind(-1)
    return stack([cx - 0.5 * w, cy - 0.5 * h, cx + 0.5 * w, cy + 0.5 * h], dim=-1)


def xyxy_to_cxcywh(boxes: Tensor) -> Tensor:
    x1, y1, x2, y2 = boxes.unbind(-1)
    return stack([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1], dim=-1)


def rotated(convert: Callable[..., list[Tensor]]) -> Callable[[Tensor], Tensor]:
    """A conversion of columns in floating point; integer boxes are rounded at the end."""

    def converted(boxes: Tensor) -> Tensor:
        exact = boxes if boxes.is_floating_point() else boxes.float()
        result = stack(convert(*exact.unbind(-1)), dim=-1)
        return result if boxes.is_floating_point() else result.round().to(boxes.dtype)

    return converted


def _halfway(w: Tensor, h: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    """From the first corner to the centre."""
    angle = r * math.pi / 180.0
    cos, sin = angle.cos(), angle.sin()
    return w / 2 * cos + h / 2 * sin, h / 2 * cos - w / 2 * sin


@rotated
def cxcywhr_to_xywhr(cx: Tensor, cy: Tensor, w: Tensor, h: Tensor, r: Tensor) -> list[Tensor]:
    dx, dy = _halfway(w, h, r)
    return [cx - dx, cy - dy, w, h, r]


@rotated
def xywhr_to_cxcywhr(x: Tensor, y: Tensor, w: Tensor, h: Tensor, r: Tensor) -> list[Tensor]:
    dx, dy = _halfway(w, h, r)
    return [x + dx, y + dy, w, h, r]


@rotated
def xywhr_to_corners(x: Tensor, y: Tensor, w: Tensor, h: Tensor, r: Tensor) -> list[Tensor]:
    angle = r * math.pi / 180.0
    cos, sin = angle.cos(), angle.sin()
    x2, y2 = x + w * cos, y - w * sin
    return [x, y, x2, y2, x2 + h * sin, y2 + h * cos, x + h * sin, y + h * cos]


@rotated
def corners_to_xywhr(
    x1: Tensor, y1: Tensor, x2: Tensor, y2: Tensor,
    x3: Tensor, y3: Tensor, x4: Tensor, y4: Tensor,
) -> list[Tensor]:  # fmt: skip
    w = ((x2 - x1) ** 2 + (y2 - y1) ** 2).sqrt()
    h = ((x3 - x2) ** 2 + (y3 - y2) ** 2).sqrt()
    return [x1, y1, w, h, (y1 - y2).atan2(x2 - x1) * 180 / math.pi]


Conversion = Callable[[Tensor], Tensor]
# Each format's way to the middle one of its kind, and back.
STRAIGHT: dict[str, tuple[Conversion, Conversion]] = {
    "xywh": (xywh_to_xyxy, xyxy_to_xywh),
    "cxcywh": (cxcywh_to_xyxy, xyxy_to_cxcywh),
    "xyxy": (lambda boxes: boxes, lambda boxes: boxes),
}
ROTATED: dict[str, tuple[Conversion, Conversion]] = {
    "cxcywhr": (cxcywhr_to_xywhr, xywhr_to_cxcywhr),
    "xyxyxyxy": (corners_to_xywhr, xywhr_to_corners),
    "xywhr": (lambda boxes: boxes, lambda boxes: boxes),
}


def box_convert(boxes: Tensor, in_fmt: str, out_fmt: str) -> Tensor:
    """Boxes (..., 4), (..., 5) or (..., 8) in another format; a copy if it is the same.

    Raises ValueError for an unknown format, NotImplementedError between straight and rotated ones.
    """
    message = (
        f"Unsupported Bounding Box Conversions for given in_fmt {in_fmt} and out_fmt {out_fmt}"
    )
    if not {in_fmt, out_fmt} <= {*STRAIGHT, *ROTATED}:
        raise ValueError(message)
    if in_fmt == out_fmt:
        return boxes.clone()
    for kind in (STRAIGHT, ROTATED):
        if in_fmt in kind and out_fmt in kind:
            return kind[out_fmt][1](kind[in_fmt][0](boxes))
    raise NotImplementedError(message)

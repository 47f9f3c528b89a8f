"""Geometric transforms of tensors (..., C, H, W), whatever their device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.core.dtypes import float32, int64, uint8
from tensorflow_lite_clone.nn import functional as nn_functional
from tensorflow_lite_clone.ops.create.constructors import ones, tensor
from tensorflow_lite_clone.ops.create.progressions import arange, linspace
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.transforms._interpolation import InterpolationMode
from tensorflow_lite_clone.vision.transforms._shapes import (
    borders,
    expanded_size,
    inverse_affine,
    perspective_coefficients,
)

Fill = float | Sequence[float] | None
PAD_MODES = {"edge": "replicate", "reflect": "reflect"}


def as_batch(img: Tensor) -> Tensor:
    """The picture as a batch (N, C, H, W) of floats: its own dtype, else float32."""
    batch = img.reshape(-1, *img.shape[-3:])
    return batch if img.is_floating_point() else batch.to(float32)


def from_batch(batch: Tensor, like: Tensor) -> Tensor:
    """A batch in the dtype and with the leading dimensions of a picture, integers rounded."""
    result = batch.reshape(*like.shape[:-3], *batch.shape[-3:])
    return result if like.is_floating_point() else result.round().to(like.dtype)


def crop(img: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """A part of the picture; what lies outside is 0."""
    h, w = img.shape[-2:]
    right, bottom = left + width, top + height
    if left >= 0 and top >= 0 and right <= w and bottom <= h:
        return img[..., top:bottom, left:right]
    inside = img[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    edges = [
        max(min(right, 0) - left, 0),
        max(right - max(w, left), 0),
        max(min(bottom, 0) - top, 0),
        max(bottom - max(h, top), 0),
    ]
    return nn_functional.pad(inside, edges)


def pad(img: Tensor, padding: int | Sequence[int], fill: Fill, padding_mode: str) -> Tensor:
    """Borders of one value, or of the picture's own pixels; negative ones cut."""
    left, top, right, bottom = borders(padding)
    edges = [left, right, top, bottom]
    if padding_mode == "constant":
        values = [0.0] if fill is None else [fill] if isinstance(fill, int | float) else [*fill]
        if len(values) == 1:
            return nn_functional.pad(img, edges, value=float(values[0]))
        padded = [
            nn_functional.pad(img[..., i : i + 1, :, :], edges, value=float(value))
            for i, value in enumerate(values)
        ]
        return cat(padded, -3)
    if padding_mode == "symmetric":
        rows = mirrored(img.shape[-2], top, bottom, img.device)
        columns = mirrored(img.shape[-1], left, right, img.device)
        return img.index_select(-2, rows).index_select(-1, columns)
    batch = img.reshape(-1, *img.shape[-3:])
    padded_batch = nn_functional.pad(batch, edges, mode=PAD_MODES[padding_mode])
    return padded_batch.reshape(*img.shape[:-2], *padded_batch.shape[-2:])


def mirrored(size: int, before: int, after: int, device: Any) -> Tensor:
    """Indices along a dimension that is continued by its mirror image, edge pixels included."""
    index = arange(-before, size + after, dtype=int64, device=device) % (2 * size)
    return index.minimum(2 * size - 1 - index)


def resize(
    img: Tensor,
    size: tuple[int, int],
    mode: InterpolationMode,
    antialias: bool | None,
    bytes_as_they_are: bool = False,
) -> Tensor:
    """The picture in another size; bicubic integers stay in their range.

    Bytes are interpolated as floats and rounded, or in fixed point as they are.
    """
    smooth = mode in (InterpolationMode.BILINEAR, InterpolationMode.BICUBIC)
    fixed = bytes_as_they_are and img.dtype == uint8
    batch = nn_functional.interpolate(
        img.reshape(-1, *img.shape[-3:]) if fixed else as_batch(img),
        size=list(size),
        mode=mode.value,
        align_corners=False if smooth else None,
        antialias=bool(antialias) and smooth,
    )
    if fixed:
        return batch.reshape(*img.shape[:-3], *batch.shape[-3:])
    if mode is InterpolationMode.BICUBIC and not img.is_floating_point():
        batch = batch.clamp(0, 255)
    return from_batch(batch, img)


def hflip(img: Tensor) -> Tensor:
    return img.flip(-1)


def vflip(img: Tensor) -> Tensor:
    return img.flip(-2)


def sample(img: Tensor, grid: Tensor, mode: InterpolationMode, fill: Fill) -> Tensor:
    """The picture's values at the places of a grid (1, H, W, 2); `fill` where it has none."""
    batch = as_batch(img)
    grid = grid.to(batch.dtype).expand(len(batch), *grid.shape[1:])
    if fill is not None:
        # One more channel, of ones, tells how much of a pixel lies inside.
        batch = cat([batch, ones_like_channel(batch)], 1)
    batch = nn_functional.grid_sample(
        batch, grid, mode=mode.value, padding_mode="zeros", align_corners=False
    )
    if fill is not None:
        batch, inside = batch[:, :-1], batch[:, -1:]
        values = [float(fill)] if isinstance(fill, int | float) else [float(v) for v in fill]
        colour = tensor(values, dtype=batch.dtype, device=batch.device).reshape(1, -1, 1, 1)
        if mode is InterpolationMode.NEAREST:
            batch = batch.where(inside >= 0.5, colour)
        else:
            batch = batch * inside + (1 - inside) * colour
    return from_batch(batch, img)


def ones_like_channel(batch: Tensor) -> Tensor:
    """A channel of ones (N, 1, H, W)."""
    n, _, height, width = batch.shape
    return ones(n, 1, height, width, dtype=batch.dtype, device=batch.device)


def pixel_centres(height: int, width: int, start_x: float, start_y: float, like: Tensor) -> Tensor:
    """The points (H * W, 3) of a picture, (x, y, 1), counted from a start."""
    dtype = like.dtype if like.is_floating_point() else float32
    x = linspace(start_x, start_x + width - 1, width, dtype=dtype, device=like.device)
    y = linspace(start_y, start_y + height - 1, height, dtype=dtype, device=like.device)
    x, y = x.expand(height, width), y[:, None].expand(height, width)
    return stack([x, y, ones(height, width, dtype=dtype, device=like.device)], -1).reshape(-1, 3)


def affine_grid(
    img: Tensor, matrix: Sequence[float], size: tuple[int, int] | None = None
) -> Tensor:
    """The grid (1, H, W, 2) of a matrix that moves pixels around the picture's middle."""
    height, width = img.shape[-2:]
    new_height, new_width = size or (height, width)
    points = pixel_centres(new_height, new_width, 0.5 - new_width / 2, 0.5 - new_height / 2, img)
    theta = tensor(matrix, dtype=points.dtype, device=img.device).reshape(2, 3).T
    half = tensor([0.5 * width, 0.5 * height], dtype=points.dtype, device=img.device)
    return (points @ (theta / half)).reshape(1, new_height, new_width, 2)


def from_middle(img: Tensor, center: Sequence[float] | None) -> list[float]:
    """A place counted from the picture's middle, which is the default."""
    height, width = img.shape[-2:]
    return [0.0, 0.0] if center is None else [center[0] - width * 0.5, center[1] - height * 0.5]


def rotate(
    img: Tensor,
    angle: float,
    mode: InterpolationMode,
    expand: bool,
    center: Sequence[float] | None,
    fill: Fill,
) -> Tensor:
    """The picture turned counterclockwise by an angle in degrees."""
    middle = from_middle(img, center)
    matrix = inverse_affine(middle, -angle, [0.0, 0.0], 1.0, [0.0, 0.0])
    size = expanded_size(matrix, *img.shape[-2:]) if expand else None
    return sample(img, affine_grid(img, matrix, size), mode, fill)


def affine(
    img: Tensor,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Sequence[float],
    mode: InterpolationMode,
    fill: Fill,
    center: Sequence[float] | None,
) -> Tensor:
    """The picture turned clockwise, moved, scaled and sheared."""
    moved = [float(value) for value in translate]
    matrix = inverse_affine(from_middle(img, center), angle, moved, scale, shear)
    return sample(img, affine_grid(img, matrix), mode, fill)


def perspective(
    img: Tensor,
    startpoints: Sequence[Sequence[int]],
    endpoints: Sequence[Sequence[int]],
    mode: InterpolationMode,
    fill: Fill,
) -> Tensor:
    """The picture drawn such that four start points come to lie on the end points."""
    height, width = img.shape[-2:]
    points = pixel_centres(height, width, 0.5, 0.5, img)
    a, b, c, d, e, f, g, h = perspective_coefficients(startpoints, endpoints)
    above = tensor([[a, b, c], [d, e, f]], dtype=points.dtype, device=img.device).T
    below = tensor([[g, h, 1.0], [g, h, 1.0]], dtype=points.dtype, device=img.device).T
    half = tensor([0.5 * width, 0.5 * height], dtype=points.dtype, device=img.device)
    grid = points @ (above / half) / (points @ below) - 1
    return sample(img, grid.reshape(1, height, width, 2), mode, fill)


def elastic(img: Tensor, displacement: Tensor, mode: InterpolationMode, fill: Fill) -> Tensor:
    """The picture with every pixel moved by a displacement (1, H, W, 2), 2 being its size."""
    height, width = img.shape[-2:]
    x, y = (
        linspace((1 - n) / n, (n - 1) / n, n, dtype=displacement.dtype, device=img.device)
        for n in (width, height)
    )
    identity = stack([x.expand(height, width), y[:, None].expand(height, width)], -1)
    return sample(img, identity[None] + displacement.to(img.device), mode, fill)


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Any, inplace: bool) -> Tensor:
    """The picture with a rectangle of other values."""
    result = img if inplace else img.clone()
    result[..., i : i + h, j : j + w] = v
    return result

"""Showing pictures: grids of them, files, boxes and masks drawn on them."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, BinaryIO

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.dtypes import bool_, float32, uint8
from tensorflow_lite_clone.ops.create.constructors import full, tensor
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision._pillow import pillow
from tensorflow_lite_clone.vision.transforms._convert import pil_to_tensor, to_pil_image

__all__ = ["draw_bounding_boxes", "draw_segmentation_masks", "make_grid", "save_image"]

Colour = str | tuple[int, int, int]
TINY = 1e-5


@no_grad()
def make_grid(
    tensor: Tensor | list[Tensor],
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Tensor:
    """One picture (3, H, W) of a batch (N, C, H, W) or a list of pictures, `nrow` in a row.

    Grey ones become RGB. `normalize` shifts and scales to [0, 1], from `value_range` or the least
    and largest value, of all or with `scale_each` of each. `padding` is the width of the lines
    between them, `pad_value` their value.
    """
    pictures = tensor
    if isinstance(pictures, list):
        if not all(isinstance(picture, Tensor) for picture in pictures):
            raise TypeError("tensor or list of tensors expected, got a list with other things")
        pictures = stack(pictures)
    if not isinstance(pictures, Tensor):
        raise TypeError(f"tensor or list of tensors expected, got {type(tensor)}")
    if pictures.ndim == 2:
        pictures = pictures[None]
    if pictures.ndim == 3:
        pictures = pictures[None]
    if pictures.ndim == 4 and pictures.shape[1] == 1:
        pictures = cat([pictures] * 3, 1)
    if normalize:
        if value_range is not None and not isinstance(value_range, tuple):
            raise TypeError("value_range has to be a tuple (min, max) if specified. min and max")
        parts = [*pictures] if scale_each else [pictures]
        scaled = [_scaled(part, value_range) for part in parts]
        pictures = stack(scaled) if scale_each else scaled[0]
    if len(pictures) == 1:
        return pictures[0]
    count, channels, height, width = pictures.shape
    columns = min(nrow, count)
    rows = math.ceil(count / columns)
    height, width = height + padding, width + padding
    grid = full(
        (channels, rows * height + padding, columns * width + padding),
        pad_value,
        dtype=pictures.dtype,
        device=pictures.device,
    )
    for index, picture in enumerate(pictures):
        top = index // columns * height + padding
        left = index % columns * width + padding
        grid[:, top : top + height - padding, left : left + width - padding] = picture
    return grid


def _scaled(picture: Tensor, value_range: tuple[float, float] | None) -> Tensor:
    """The picture clamped to a range that is then [0, 1]."""
    low, high = value_range or (picture.min().item(), picture.max().item())
    return (picture.clamp(low, high) - low) / max(high - low, TINY)


@no_grad()
def save_image(
    tensor: Tensor | list[Tensor],
    fp: str | os.PathLike | BinaryIO,
    format: str | None = None,
    **kwargs: Any,
) -> None:
    """Writes `make_grid` of the pictures, floats in [0, 1], to a file; its name says the format."""
    grid = make_grid(tensor, **kwargs)
    pixels = (grid * 255 + 0.5).clamp(0, 255).to(uint8)
    to_pil_image(pixels.cpu()).save(fp, format=format)


def _expect_picture(image: Any) -> None:
    """TypeError or ValueError for what cannot be drawn on."""
    if not isinstance(image, Tensor):
        raise TypeError(f"The image must be a tensor, got {type(image)}")
    if not (image.dtype == uint8 or image.is_floating_point()):
        raise ValueError(f"The image dtype must be uint8 or float, got {image.dtype}")
    if image.ndim != 3:
        raise ValueError("Pass individual images, not batches")


def _colours(colours: Any, count: int) -> list[tuple[int, ...]]:
    """A colour for each of `count` things; by default colours that are easily told apart."""
    if colours is None:
        palette = (2**25 - 1, 2**15 - 1, 2**21 - 1)
        return [tuple(index * number % 255 for number in palette) for index in range(count)]
    if isinstance(colours, list):
        if len(colours) < count:
            raise ValueError(
                f"Number of colors must be equal or larger than the number of objects, but got "
                f"{len(colours)} < {count}."
            )
    elif isinstance(colours, str | tuple):
        colours = [colours] * count
    else:
        raise ValueError("colors must be a tuple or a string, or a list thereof")
    read = pillow().ImageColor.getrgb
    return [read(colour) if isinstance(colour, str) else tuple(colour) for colour in colours]


@no_grad()
def draw_bounding_boxes(
    image: Tensor,
    boxes: Tensor,
    labels: Sequence[str | None] | None = None,
    colors: Any = None,
    fill: bool | None = False,
    width: int = 1,
    font: str | None = None,
    font_size: int | None = None,
) -> Tensor:
    """The picture (1 or 3, H, W) in RGB with boxes (N, 4), (left, top, right, bottom), drawn.

    Args:
        image: uint8, or floats in [0, 1].
        boxes: in pixels.
        labels: a text for each box, or None.
        colors: one, or a list of one for each: names or (R, G, B).
        fill: whether a box is tinted.
        width: of the lines, in pixels.
        font: a TrueType file, by default Pillow's own font, which has one size.
        font_size: its size.
    """
    _expect_picture(image)
    if image.shape[0] not in (1, 3):
        raise ValueError("Only grayscale and RGB images are supported")
    if len(boxes) and ((boxes[:, 0] > boxes[:, 2]).any() or (boxes[:, 1] > boxes[:, 3]).any()):
        raise ValueError(
            "Boxes need to be in (xmin, ymin, xmax, ymax) format. Use "
            "torchvision.ops.box_convert to convert them"
        )
    count = len(boxes)
    if labels is not None and len(labels) != count:
        raise ValueError(
            f"The number of boxes ({count}) and labels ({len(labels)}) mismatch. Please specify "
            "labels for each box."
        )
    library = pillow()
    pixels = image if image.dtype == uint8 else (image * 255).to(uint8)
    picture = to_pil_image(pixels.expand(3, *image.shape[1:]))
    draw = library.ImageDraw.Draw(picture, "RGBA" if fill else None)
    letters = _font(font, font_size) if labels is not None else None
    places = boxes.to(float32).trunc().int().tolist()
    for index, (box, colour) in enumerate(zip(places, _colours(colors, count))):
        tint = (*colour, 100) if fill else None
        draw.rectangle(box, width=width, outline=colour, fill=tint)
        if labels is not None and labels[index] is not None:
            place = (box[0] + width + 1, box[1] + width + 1)
            draw.text(place, labels[index], fill=colour, font=letters)
    result = pil_to_tensor(picture)
    return result if image.dtype == uint8 else result.to(image.dtype) / 255


def _font(name: str | None, size: int | None) -> Any:
    """Pillow's own font, or one from a file."""
    fonts = pillow().ImageFont
    return fonts.load_default() if name is None else fonts.truetype(name, size or 10)


@no_grad()
def draw_segmentation_masks(
    image: Tensor, masks: Tensor, alpha: float = 0.8, colors: Any = None
) -> Tensor:
    """The picture (3, H, W) with bool masks (N, H, W) or (H, W) laid over it in colours.

    `alpha` is how much of the colour is seen: 0 none of it, 1 nothing of the picture. Where masks
    overlap the colour is black.
    """
    _expect_picture(image)
    if image.shape[0] != 3:
        raise ValueError("Pass an RGB image. Other Image formats are not supported")
    if masks.ndim == 2:
        masks = masks[None]
    if masks.ndim != 3:
        raise ValueError("masks must be of shape (H, W) or (batch_size, H, W)")
    if masks.dtype != bool_:
        raise ValueError(f"The masks must be of dtype bool. Got {masks.dtype}")
    if masks.shape[-2:] != image.shape[-2:]:
        raise ValueError("The image and the masks must have the same height and width")
    painted = image.clone()
    for mask, colour in zip(masks, _colours(colors, len(masks))):
        values = tensor(colour, dtype=image.dtype, device=image.device)
        if image.is_floating_point():
            values = values / 255
        painted = painted.where(~mask, values[:, None, None])
    painted = painted.masked_fill(masks.sum(0) > 1, 0)
    return (image * (1 - alpha) + painted * alpha).to(image.dtype)

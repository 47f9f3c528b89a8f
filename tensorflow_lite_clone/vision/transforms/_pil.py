"""Transforms of PIL images, by Pillow's own functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorflow_lite_clone.vision._pillow import pillow
from tensorflow_lite_clone.vision.transforms._interpolation import (
    InterpolationMode,
    pil_resampling,
)
from tensorflow_lite_clone.vision.transforms._shapes import (
    borders,
    inverse_affine,
    perspective_coefficients,
)

Fill = float | Sequence[float] | None
AFFINE, PERSPECTIVE = 0, 2  # Pillow's Transform.AFFINE and Transform.PERSPECTIVE
FLIP_LEFT_RIGHT, FLIP_TOP_BOTTOM = 0, 1
WITHOUT_HUE = ("1", "I", "F", "L")


def channels(img: Any) -> int:
    """The number of bands."""
    return len(img.getbands())


def fill_of(img: Any, fill: Fill) -> Any:
    """A fill as Pillow takes it: a number for one band, else one number for each band."""
    count = channels(img)
    if fill is None:
        fill = 0
    if isinstance(fill, int | float):
        values: tuple = (fill,) * count
    else:
        values = (*fill,) * count if len(fill) == 1 else (*fill,)
    if len(values) != count:
        raise ValueError(
            "The number of elements in 'fill' does not match the number of channels of the image "
            f"({len(values)} != {count})"
        )
    if img.mode != "F":
        values = tuple(int(value) for value in values)
    return values[0] if count == 1 else values


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    return img.crop((left, top, left + width, top + height))


def pad(img: Any, padding: int | Sequence[int], fill: Fill, padding_mode: str) -> Any:
    left, top, right, bottom = borders(padding)
    if padding_mode == "constant":
        # ImageOps asks for the colour as a tuple even of pictures with one band.
        colour = fill_of(img, fill)
        padded = pillow().ImageOps.expand(img, (left, top, right, bottom), colour)
        if img.mode == "P":
            padded.putpalette(img.getpalette())
        return padded
    cut = tuple(max(-side, 0) for side in (left, top, right, bottom))
    if any(cut):
        width, height = img.size
        img = img.crop((cut[0], cut[1], width - cut[2], height - cut[3]))
        left, top, right, bottom = (max(side, 0) for side in (left, top, right, bottom))
    palette = img.getpalette() if img.mode == "P" else None
    pixels = np.asarray(img)
    widths = [(top, bottom), (left, right), (0, 0)][: pixels.ndim]
    padded = pillow().Image.fromarray(np.pad(pixels, widths, mode=padding_mode))  # type: ignore[call-overload]
    if palette is not None:
        padded = padded.convert("P") if padded.mode != "L" else padded
        padded.putpalette(palette)
    return padded


def resize(img: Any, size: tuple[int, int], mode: InterpolationMode) -> Any:
    return img.resize(size[::-1], pil_resampling(mode))


def hflip(img: Any) -> Any:
    return img.transpose(FLIP_LEFT_RIGHT)


def vflip(img: Any) -> Any:
    return img.transpose(FLIP_TOP_BOTTOM)


def rotate(
    img: Any,
    angle: float,
    mode: InterpolationMode,
    expand: bool,
    center: Sequence[float] | None,
    fill: Fill,
) -> Any:
    middle = None if center is None else tuple(center)
    return img.rotate(angle, pil_resampling(mode), expand, middle, fillcolor=fill_of(img, fill))


def affine(
    img: Any,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Sequence[float],
    mode: InterpolationMode,
    fill: Fill,
    center: Sequence[float] | None,
) -> Any:
    middle = [side * 0.5 for side in img.size] if center is None else center
    matrix = inverse_affine(middle, angle, translate, scale, shear)
    return img.transform(
        img.size, AFFINE, matrix, pil_resampling(mode), fillcolor=fill_of(img, fill)
    )


def perspective(
    img: Any,
    startpoints: Sequence[Sequence[int]],
    endpoints: Sequence[Sequence[int]],
    mode: InterpolationMode,
    fill: Fill,
) -> Any:
    coefficients = perspective_coefficients(startpoints, endpoints)
    return img.transform(
        img.size, PERSPECTIVE, coefficients, pil_resampling(mode), fillcolor=fill_of(img, fill)
    )


def adjust_brightness(img: Any, factor: float) -> Any:
    return pillow().ImageEnhance.Brightness(img).enhance(factor)


def adjust_contrast(img: Any, factor: float) -> Any:
    return pillow().ImageEnhance.Contrast(img).enhance(factor)


def adjust_saturation(img: Any, factor: float) -> Any:
    return pillow().ImageEnhance.Color(img).enhance(factor)


def adjust_sharpness(img: Any, factor: float) -> Any:
    return pillow().ImageEnhance.Sharpness(img).enhance(factor)


def adjust_hue(img: Any, factor: float) -> Any:
    """Turns the hue, which Pillow keeps as a byte, so it wraps around at 256."""
    if img.mode in WITHOUT_HUE:
        return img
    hue, saturation, value = img.convert("HSV").split()
    rotated = np.asarray(hue) + np.array(int(factor * 255) % 256, np.uint8)
    parts = (pillow().Image.fromarray(rotated), saturation, value)
    return pillow().Image.merge("HSV", parts).convert(img.mode)


def adjust_gamma(img: Any, gamma: float, gain: float) -> Any:
    table = [(255 + 1 - 1e-3) * gain * (value / 255.0) ** gamma for value in range(256)]
    bent = img.convert("RGB").point([int(value) for value in table] * 3)
    return bent.convert(img.mode)


def invert(img: Any) -> Any:
    return pillow().ImageOps.invert(img)


def posterize(img: Any, bits: int) -> Any:
    return pillow().ImageOps.posterize(img, bits)


def solarize(img: Any, threshold: float) -> Any:
    return pillow().ImageOps.solarize(img, threshold)


def autocontrast(img: Any) -> Any:
    return pillow().ImageOps.autocontrast(img)


def equalize(img: Any) -> Any:
    return pillow().ImageOps.equalize(img)


def to_grayscale(img: Any, num_output_channels: int) -> Any:
    grey = img.convert("L")
    if num_output_channels == 1:
        return grey
    if num_output_channels != 3:
        raise ValueError("num_output_channels should be either 1 or 3")
    return pillow().Image.merge("RGB", (grey, grey, grey))

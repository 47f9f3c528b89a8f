"""The second version's transforms as functions.

They take PIL images, tensors (..., C, H, W), and the kinds of `tv_tensors`, and give what they are
given. Geometric ones treat masks (..., H, W) by nearest pixels, and move boxes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from tensorflow_lite_clone.core.dtypes import DType, float32, int32, uint8
from tensorflow_lite_clone.ops.create.constructors import empty_like
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision._pillow import is_pil
from tensorflow_lite_clone.vision.transforms import _shapes, _tensor
from tensorflow_lite_clone.vision.transforms import functional as v1
from tensorflow_lite_clone.vision.transforms._convert import (
    convert_image_dtype,
    pil_to_tensor,
    to_pil_image,
    to_tensor,
)
from tensorflow_lite_clone.vision.transforms._interpolation import (
    InterpolationMode,
    interpolation_of,
)
from tensorflow_lite_clone.vision.transforms.v2 import _boxes
from tensorflow_lite_clone.vision.tv_tensors import (
    BoundingBoxes,
    BoundingBoxFormat,
    Image,
    Mask,
    TVTensor,
    Video,
    wrap,
)

__all__ = [
    "InterpolationMode",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "adjust_sharpness",
    "affine",
    "autocontrast",
    "center_crop",
    "clamp_bounding_boxes",
    "convert_bounding_box_format",
    "convert_image_dtype",
    "crop",
    "elastic",
    "elastic_transform",
    "equalize",
    "erase",
    "five_crop",
    "gaussian_blur",
    "gaussian_noise",
    "get_dimensions",
    "get_image_size",
    "get_num_channels",
    "get_size",
    "grayscale_to_rgb",
    "hflip",
    "horizontal_flip",
    "invert",
    "is_pure_tensor",
    "normalize",
    "pad",
    "permute_channels",
    "perspective",
    "pil_to_tensor",
    "posterize",
    "resize",
    "resized_crop",
    "rgb_to_grayscale",
    "rotate",
    "solarize",
    "ten_crop",
    "to_dtype",
    "to_grayscale",
    "to_image",
    "to_pil_image",
    "to_tensor",
    "vertical_flip",
    "vflip",
]

NEAREST, BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR


def is_pure_tensor(inpt: Any) -> bool:
    """Whether it is a tensor of no kind of `tv_tensors`."""
    return isinstance(inpt, Tensor) and not isinstance(inpt, TVTensor)


def is_picture(inpt: Any) -> bool:
    """Whether it is a PIL image, a plain tensor, an `Image` or a `Video`."""
    return is_pil(inpt) or isinstance(inpt, Image | Video) or is_pure_tensor(inpt)


def unserved(name: str, inpt: Any) -> TypeError:
    """The error for what a function does not take."""
    return TypeError(f"Functional F.{name} does not support inputs of type {type(inpt)}")


def of_pictures(function: Callable) -> Callable:
    """A function of pictures alone, which keeps their kind; TypeError for masks and boxes."""

    @wraps(function)
    def wrapped(inpt: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_picture(inpt):
            raise unserved(function.__name__, inpt)
        if not isinstance(inpt, TVTensor):
            return function(inpt, *args, **kwargs)
        result = function(inpt.as_subclass(Tensor), *args, **kwargs)
        if isinstance(result, tuple):
            return tuple(wrap(part, like=inpt) for part in result)
        return wrap(result, like=inpt)

    wrapped.for_pictures = True  # type: ignore[attr-defined]
    return wrapped


def on_pixels(name: str, inpt: Any, function: Callable, masked: Callable | None = None) -> Any:
    """A geometric function of pictures, or of masks as pictures of one channel."""
    if isinstance(inpt, Mask):
        mask = inpt.as_subclass(Tensor)
        flat = mask.ndim == 2
        result = (masked or function)(mask[None] if flat else mask)
        return wrap(result[0] if flat else result, like=inpt)
    if isinstance(inpt, Image | Video):
        return wrap(function(inpt.as_subclass(Tensor)), like=inpt)
    if not is_picture(inpt):
        raise unserved(name, inpt)
    return function(inpt)


# Sizes


def get_size(inpt: Any) -> list[int]:
    """[H, W] of a picture or mask, or of the boxes' canvas."""
    if isinstance(inpt, BoundingBoxes):
        return list(inpt.canvas_size)
    return v1.get_dimensions(inpt)[1:]


def get_dimensions(inpt: Any) -> list[int]:
    """[C, H, W] of a picture."""
    return v1.get_dimensions(inpt)


def get_num_channels(inpt: Any) -> int:
    """The number of channels of a picture."""
    return v1.get_image_num_channels(inpt)


get_image_num_channels = get_num_channels


def get_image_size(inpt: Any) -> list[int]:
    """[W, H] of a picture."""
    return v1.get_image_size(inpt)


# Geometry


def horizontal_flip(inpt: Any) -> Any:
    """Left and right exchanged."""
    if isinstance(inpt, BoundingBoxes):
        return _boxes.hflip(inpt)
    return on_pixels("horizontal_flip", inpt, v1.hflip)


def vertical_flip(inpt: Any) -> Any:
    """Upside down."""
    if isinstance(inpt, BoundingBoxes):
        return _boxes.vflip(inpt)
    return on_pixels("vertical_flip", inpt, v1.vflip)


hflip, vflip = horizontal_flip, vertical_flip


def resize(
    inpt: Any,
    size: Any,
    interpolation: Any = BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """In another size: (H, W), the shorter edge's new length, or None for a longer one."""
    if isinstance(inpt, BoundingBoxes):
        height, width = inpt.canvas_size
        return _boxes.resize(inpt, _shapes.resized(height, width, size, max_size))
    mode = interpolation_of(interpolation, names=True)
    return on_pixels(
        "resize",
        inpt,
        lambda x: _resize(x, size, mode, max_size, antialias),
        lambda x: v1.resize(x, size, NEAREST, max_size),
    )


def _resize(
    inpt: Any, size: Any, mode: InterpolationMode, max_size: int | None, antialias: bool | None
) -> Any:
    """A picture in another size; bytes in fixed point."""
    if is_pil(inpt):
        return v1.resize(inpt, size, mode, max_size)
    new = v1.new_size(inpt, size, max_size)
    return inpt if new is None else _tensor.resize(inpt, new, mode, antialias, True)


def pad(inpt: Any, padding: Any, fill: Any = None, padding_mode: str = "constant") -> Any:
    """With borders; see `transforms.functional.pad`."""
    if isinstance(inpt, BoundingBoxes):
        return _boxes.pad(inpt, padding)
    return on_pixels(
        "pad", inpt, lambda x: v1.pad(x, padding, 0 if fill is None else fill, padding_mode)
    )


def crop(inpt: Any, top: int, left: int, height: int, width: int) -> Any:
    """A rectangle of it."""
    if isinstance(inpt, BoundingBoxes):
        return _boxes.crop(inpt, top, left, height, width)
    return on_pixels("crop", inpt, lambda x: v1.crop(x, top, left, height, width))


def center_crop(inpt: Any, output_size: Any) -> Any:
    """Its middle."""
    if isinstance(inpt, BoundingBoxes):
        height, width = v1.crop_size(output_size)
        top = round((inpt.canvas_size[0] - height) / 2)
        left = round((inpt.canvas_size[1] - width) / 2)
        return _boxes.crop(inpt, top, left, height, width)
    return on_pixels("center_crop", inpt, lambda x: v1.center_crop(x, output_size))


def resized_crop(
    inpt: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Any,
    interpolation: Any = BILINEAR,
    antialias: bool | None = True,
) -> Any:
    """A rectangle of it in another size."""
    part = crop(inpt, top, left, height, width)
    return resize(part, size, interpolation, antialias=antialias)


def rotate(
    inpt: Any,
    angle: float,
    interpolation: Any = NEAREST,
    expand: bool = False,
    center: Any = None,
    fill: Any = None,
) -> Any:
    """Turned counterclockwise by an angle in degrees."""
    if isinstance(inpt, BoundingBoxes):
        return _boxes.rotate(inpt, angle, expand, center)
    mode = interpolation_of(interpolation, names=True)
    return on_pixels(
        "rotate",
        inpt,
        lambda x: v1.rotate(x, angle, mode, expand, center, fill),
        lambda x: v1.rotate(x, angle, NEAREST, expand, center, fill),
    )


def affine(
    inpt: Any,
    angle: float,
    translate: Any,
    scale: float,
    shear: Any,
    interpolation: Any = NEAREST,
    fill: Any = None,
    center: Any = None,
) -> Any:
    """Turned clockwise, moved, scaled and sheared."""
    if isinstance(inpt, BoundingBoxes):
        shears = [shear, 0.0] if isinstance(shear, int | float) else shear
        return _boxes.affine(inpt, angle, translate, scale, shears, center)
    mode = interpolation_of(interpolation, names=True)
    return on_pixels(
        "affine",
        inpt,
        lambda x: v1.affine(x, angle, translate, scale, shear, mode, fill, center),
        lambda x: v1.affine(x, angle, translate, scale, shear, NEAREST, fill, center),
    )


def perspective(
    inpt: Any, startpoints: Any, endpoints: Any, interpolation: Any = BILINEAR, fill: Any = None
) -> Any:
    """Drawn such that four places come to lie on four others."""
    if isinstance(inpt, BoundingBoxes):
        return _boxes.perspective(inpt, startpoints, endpoints)
    mode = interpolation_of(interpolation, names=True)
    return on_pixels(
        "perspective",
        inpt,
        lambda x: v1.perspective(x, startpoints, endpoints, mode, fill),
        lambda x: v1.perspective(x, startpoints, endpoints, NEAREST, fill),
    )


def elastic(
    inpt: Any, displacement: Tensor, interpolation: Any = BILINEAR, fill: Any = None
) -> Any:
    """Each pixel taken from elsewhere; boxes are not served."""
    mode = interpolation_of(interpolation, names=True)
    return on_pixels(
        "elastic",
        inpt,
        lambda x: v1.elastic_transform(x, displacement, mode, fill),
        lambda x: v1.elastic_transform(x, displacement, NEAREST, fill),
    )


elastic_transform = elastic


def clamp_bounding_boxes(inpt: BoundingBoxes) -> Any:
    """Boxes cut off at the borders of their canvas."""
    return _boxes.made(inpt, _boxes.plain_corners(inpt))


def convert_bounding_box_format(
    inpt: Tensor,
    old_format: BoundingBoxFormat | None = None,
    new_format: BoundingBoxFormat | str | None = None,
) -> Any:
    """Boxes in another format; a plain tensor's `old_format` must be given."""
    if new_format is None:
        raise TypeError("convert_bounding_box_format() missing 1 required argument: 'new_format'")
    if isinstance(new_format, str):
        new_format = BoundingBoxFormat[new_format.upper()]
    if not isinstance(inpt, BoundingBoxes):
        if old_format is None:
            raise ValueError("For pure tensor inputs, `old_format` has to be passed.")
        return _boxes.from_corners(_boxes.corners_of(inpt, old_format), new_format)
    corners = _boxes.corners_of(inpt.as_subclass(Tensor), inpt.format)
    result = _boxes.from_corners(corners, new_format)
    return inpt.like_me(result, format=new_format)


# Pictures alone

five_crop = of_pictures(v1.five_crop)
ten_crop = of_pictures(v1.ten_crop)
adjust_brightness = of_pictures(v1.adjust_brightness)
adjust_contrast = of_pictures(v1.adjust_contrast)
adjust_gamma = of_pictures(v1.adjust_gamma)
adjust_hue = of_pictures(v1.adjust_hue)
adjust_saturation = of_pictures(v1.adjust_saturation)
adjust_sharpness = of_pictures(v1.adjust_sharpness)
autocontrast = of_pictures(v1.autocontrast)
gaussian_blur = of_pictures(v1.gaussian_blur)
invert = of_pictures(v1.invert)
solarize = of_pictures(v1.solarize)
rgb_to_grayscale = of_pictures(v1.rgb_to_grayscale)
to_grayscale = rgb_to_grayscale
normalize = of_pictures(v1.normalize)


@of_pictures
def erase(inpt: Any, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Any:
    """With a rectangle of other values; also of PIL images."""
    if is_pil(inpt):
        return to_pil_image(v1.erase(pil_to_tensor(inpt), i, j, h, w, v), mode=inpt.mode)
    return v1.erase(inpt, i, j, h, w, v, inplace)


@of_pictures
def posterize(inpt: Any, bits: int) -> Any:
    """With the upper bits of each channel; floats in [0, 1] keep `2**bits` levels."""
    if isinstance(inpt, Tensor) and inpt.is_floating_point():
        levels = 1 << bits
        return (inpt * levels).floor().clamp(0, levels - 1) / levels
    return v1.posterize(inpt, bits)


@of_pictures
def equalize(inpt: Any) -> Any:
    """With flat histograms, nearly; floats in [0, 1] by way of bytes."""
    if isinstance(inpt, Tensor) and inpt.is_floating_point():
        return convert_image_dtype(v1.equalize(convert_image_dtype(inpt, uint8)), inpt.dtype)
    return v1.equalize(inpt)


@of_pictures
def grayscale_to_rgb(inpt: Any) -> Any:
    """Three channels of one; others are left."""
    if get_num_channels(inpt) >= 3:
        return inpt
    if is_pil(inpt):
        return inpt.convert("RGB")
    return inpt[..., :1, :, :].expand(*inpt.shape[:-3], 3, *inpt.shape[-2:])


@of_pictures
def permute_channels(inpt: Any, permutation: list[int]) -> Any:
    """The channels in another order."""
    if is_pil(inpt):
        planes = pil_to_tensor(inpt)[permutation]
        return to_pil_image(planes, mode=inpt.mode)
    return inpt[..., permutation, :, :]


@of_pictures
def gaussian_noise(inpt: Any, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> Any:
    """With normal noise, of a size for values in [0, 1], and clipped to these; also on bytes."""
    if is_pil(inpt):
        raise unserved("gaussian_noise", inpt)
    if sigma < 0:
        raise ValueError(f"sigma shouldn't be negative. Got {sigma}")
    if inpt.is_floating_point():
        noisy = inpt + mean + empty_like(inpt).normal_() * sigma
        return noisy.clamp(0, 1) if clip else noisy
    noise = empty_like(inpt, dtype=float32).normal_() * sigma + mean
    noisy = inpt.to(int32) + (noise * 255).to(int32)
    return (noisy.clamp(0, 255) if clip else noisy).to(inpt.dtype)


@of_pictures
def _scaled(inpt: Any, dtype: DType) -> Any:
    return convert_image_dtype(inpt, dtype)


def to_dtype(inpt: Any, dtype: DType = float32, scale: bool = False) -> Any:
    """In another dtype; with `scale`, pictures keep their white, as `convert_image_dtype`."""
    if not isinstance(inpt, Tensor):
        raise unserved("to_dtype", inpt)
    if scale and is_picture(inpt):
        return _scaled(inpt, dtype)
    return inpt.to(dtype)


def to_image(inpt: Any) -> Image:
    """An `Image` of a PIL image, an array (H, W, C) or a tensor (..., C, H, W)."""
    if isinstance(inpt, np.ndarray):
        planes = np.atleast_3d(inpt).transpose(2, 0, 1)
        return Image(np.ascontiguousarray(planes))
    if is_pil(inpt) or is_pure_tensor(inpt) or isinstance(inpt, Image):
        return Image(inpt)
    raise TypeError(
        "Input can either be a pure Tensor, a numpy array, or a PIL image, but got "
        f"{type(inpt)} instead."
    )

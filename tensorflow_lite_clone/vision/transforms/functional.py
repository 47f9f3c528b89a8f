"""Transforms of pictures as functions, with torchvision's names.

A picture is a PIL image, or a tensor (..., C, H, W). Functions give the kind that they are given.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision._pillow import is_pil
from tensorflow_lite_clone.vision.transforms import _pil, _shapes, _tensor, _tensor_color
from tensorflow_lite_clone.vision.transforms._convert import (
    convert_image_dtype,
    normalize,
    pil_to_tensor,
    to_pil_image,
    to_tensor,
)
from tensorflow_lite_clone.vision.transforms._interpolation import (
    InterpolationMode,
    interpolation_of,
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
    "convert_image_dtype",
    "crop",
    "elastic_transform",
    "equalize",
    "erase",
    "five_crop",
    "gaussian_blur",
    "get_dimensions",
    "get_image_num_channels",
    "get_image_size",
    "hflip",
    "invert",
    "normalize",
    "pad",
    "perspective",
    "pil_to_tensor",
    "posterize",
    "resize",
    "resized_crop",
    "rgb_to_grayscale",
    "rotate",
    "solarize",
    "ten_crop",
    "to_grayscale",
    "to_pil_image",
    "to_tensor",
    "vflip",
]

Fill = float | Sequence[float] | None
NEAREST, BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR
PAD_MODES = ("constant", "edge", "reflect", "symmetric")


def kernels_of(img: Any, color: bool = False) -> Any:
    """The module that serves this kind of picture; TypeError for what is none."""
    if isinstance(img, Tensor):
        if img.ndim < 2:
            raise TypeError("Tensor is not a torch image.")
        return _tensor_color if color else _tensor
    if is_pil(img):
        return _pil
    raise TypeError(f"img should be PIL Image. Got {type(img)}")


def sampled_of(mode: Any, img: Any) -> InterpolationMode:
    """The mode, if tensors can be sampled so."""
    mode = interpolation_of(mode)
    if isinstance(img, Tensor) and mode not in (NEAREST, BILINEAR):
        raise ValueError(f"Interpolation mode '{mode.value}' is unsupported with Tensor input")
    return mode


def expect_fill(img: Any, fill: Fill) -> None:
    """ValueError if a tensor's fill has neither one value nor one for each channel."""
    if isinstance(img, Tensor) and isinstance(fill, list | tuple):
        channels = img.shape[-3]
        if len(fill) not in (1, channels):
            raise ValueError(
                "The number of elements in 'fill' cannot broadcast to match the number of "
                f"channels of the image ({len(fill)} != {channels})"
            )


# Sizes


def get_dimensions(img: Any) -> list[int]:
    """[C, H, W] of a picture."""
    if isinstance(img, Tensor):
        kernels_of(img)
        return [1 if img.ndim == 2 else img.shape[-3], *img.shape[-2:]]
    if is_pil(img):
        return [_pil.channels(img), img.height, img.width]
    raise TypeError(f"Unexpected type {type(img)}")


def get_image_size(img: Any) -> list[int]:
    """[W, H] of a picture."""
    return get_dimensions(img)[:0:-1]


def get_image_num_channels(img: Any) -> int:
    """The number of channels of a picture."""
    return get_dimensions(img)[0]


# Geometry


def resize(
    img: Any,
    size: int | Sequence[int],
    interpolation: Any = BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """The picture in another size: (H, W), or the new length of its shorter edge.

    `max_size` bounds the longer edge. PIL images are always smoothed before they shrink, tensors
    with `antialias`.
    """
    mode = interpolation_of(interpolation)
    new = new_size(img, size, max_size)
    if new is None:
        return img
    if isinstance(img, Tensor):
        return _tensor.resize(img, new, mode, antialias)
    if antialias is False:
        warnings.warn(
            "Anti-alias option is always applied for PIL Image input. Argument antialias is "
            "ignored.",
            stacklevel=level_outside(),
        )
    return _pil.resize(img, new, mode)


def new_size(img: Any, size: Any, max_size: int | None) -> tuple[int, int] | None:
    """The (H, W) that `resize` is asked for, or None if the picture has it."""
    _, height, width = get_dimensions(img)
    if isinstance(size, list | tuple):
        if len(size) not in (1, 2):
            raise ValueError(
                "Size must be an int or a 1 or 2 element tuple/list, not a "
                f"{len(size)} element tuple/list"
            )
        if max_size is not None and len(size) != 1:
            raise ValueError(
                "max_size should only be passed if size specifies the length of the smaller edge, "
                "i.e. size should be an int or a sequence of length 1 in torchscript mode."
            )
    new = _shapes.resized(height, width, size, max_size)
    return None if new == (height, width) else new


def pad(
    img: Any, padding: int | Sequence[int], fill: Fill = 0, padding_mode: str = "constant"
) -> Any:
    """The picture with borders.

    `padding` is one width, (left and right, top and bottom), or (left, top, right, bottom).
    `padding_mode` is "constant" (of `fill`), "edge", "reflect" (without the edge pixel) or
    "symmetric" (with it).
    """
    expect_padding(padding, fill, padding_mode)
    return kernels_of(img).pad(img, padding, fill, padding_mode)


def expect_padding(padding: Any, fill: Any, padding_mode: str) -> None:
    """TypeError or ValueError for arguments of `pad` that are none."""
    if not isinstance(padding, numbers.Number | tuple | list):
        raise TypeError("Got inappropriate padding arg")
    if not isinstance(fill, numbers.Number | tuple | list | None):
        raise TypeError("Got inappropriate fill arg")
    if isinstance(padding, tuple | list) and len(padding) not in (1, 2, 4):
        raise ValueError(
            "Padding must be an int or a 1, 2, or 4 element tuple, not a "
            f"{len(padding)} element tuple"
        )
    if padding_mode not in PAD_MODES:
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """A rectangle of the picture; what lies outside is 0."""
    return kernels_of(img).crop(img, top, left, height, width)


def crop_size(size: Any) -> Sequence[int]:
    """The (H, W) that is meant by a number, or by a sequence of one or two."""
    if isinstance(size, int | float):
        return int(size), int(size)
    return (size[0], size[0]) if len(size) == 1 else size


def center_crop(img: Any, output_size: int | Sequence[int]) -> Any:
    """The middle of the picture, with borders of 0 where it is too small."""
    new_height, new_width = crop_size(output_size)
    _, height, width = get_dimensions(img)
    missing_x, missing_y = max(new_width - width, 0), max(new_height - height, 0)
    if missing_x or missing_y:
        left, top = missing_x // 2, missing_y // 2
        img = pad(img, [left, top, missing_x - left, missing_y - top], fill=0)
        _, height, width = get_dimensions(img)
        if (new_height, new_width) == (height, width):
            return img
    top = round((height - new_height) / 2)
    left = round((width - new_width) / 2)
    return crop(img, top, left, new_height, new_width)


def resized_crop(
    img: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: int | Sequence[int],
    interpolation: Any = BILINEAR,
    antialias: bool | None = True,
) -> Any:
    """A rectangle of the picture in another size; `crop` and `resize`."""
    part = crop(img, top, left, height, width)
    return resize(part, size, interpolation, antialias=antialias)


def hflip(img: Any) -> Any:
    """The picture with left and right exchanged."""
    return kernels_of(img).hflip(img)


def vflip(img: Any) -> Any:
    """The picture upside down."""
    return kernels_of(img).vflip(img)


def five_crop(img: Any, size: int | Sequence[int]) -> tuple[Any, Any, Any, Any, Any]:
    """The four corners (top left, top right, bottom left, bottom right) and the middle."""
    corner = crop_size(size)
    if len(corner) != 2:
        raise ValueError("Please provide only two dimensions (h, w) for size.")
    h, w = corner
    _, height, width = get_dimensions(img)
    if w > width or h > height:
        raise ValueError(
            f"Requested crop size {tuple(corner)} is bigger than input size {(height, width)}"
        )
    return (
        crop(img, 0, 0, h, w),
        crop(img, 0, width - w, h, w),
        crop(img, height - h, 0, h, w),
        crop(img, height - h, width - w, h, w),
        center_crop(img, [h, w]),
    )


def ten_crop(img: Any, size: int | Sequence[int], vertical_flip: bool = False) -> tuple:
    """`five_crop` of the picture, and of the picture flipped."""
    flipped = vflip(img) if vertical_flip else hflip(img)
    return five_crop(img, size) + five_crop(flipped, size)


def rotate(
    img: Any,
    angle: float,
    interpolation: Any = NEAREST,
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = None,
) -> Any:
    """The picture turned counterclockwise by an angle in degrees.

    `expand` makes room for all of it; `center` is (x, y), by default the middle; `fill` is the
    colour of what was outside.
    """
    mode = sampled_of(interpolation, img)
    if not isinstance(angle, int | float):
        raise TypeError("Argument angle should be int or float")
    if center is not None and not isinstance(center, list | tuple):
        raise TypeError("Argument center should be a sequence")
    expect_fill(img, fill)
    return kernels_of(img).rotate(img, angle, mode, expand, center, fill)


def affine(
    img: Any,
    angle: float,
    translate: Sequence[int],
    scale: float,
    shear: float | Sequence[float],
    interpolation: Any = NEAREST,
    fill: Fill = None,
    center: Sequence[float] | None = None,
) -> Any:
    """The picture turned clockwise, moved by (x, y) pixels, scaled and sheared by (x, y) degrees.

    Turning and scaling leave `center` in place, by default the middle.
    """
    mode = sampled_of(interpolation, img)
    if not isinstance(angle, int | float):
        raise TypeError("Argument angle should be int or float")
    if not isinstance(translate, list | tuple):
        raise TypeError("Argument translate should be a sequence")
    if len(translate) != 2:
        raise ValueError("Argument translate should be a sequence of length 2")
    if scale <= 0:
        raise ValueError("Argument scale should be positive")
    if not isinstance(shear, numbers.Number | list | tuple):
        raise TypeError("Shear should be either a single value or a sequence of two values")
    shears = [shear, 0.0] if isinstance(shear, int | float) else [*shear]
    if len(shears) == 1:
        shears *= 2
    if len(shears) != 2:
        raise ValueError(f"Shear should be a sequence containing two values. Got {shear}")
    if center is not None and not isinstance(center, list | tuple):
        raise TypeError("Argument center should be a sequence")
    expect_fill(img, fill)
    return kernels_of(img).affine(img, angle, translate, scale, shears, mode, fill, center)


def perspective(
    img: Any,
    startpoints: Sequence[Sequence[int]],
    endpoints: Sequence[Sequence[int]],
    interpolation: Any = BILINEAR,
    fill: Fill = None,
) -> Any:
    """The picture drawn such that four places (x, y) of it come to lie on four others."""
    mode = sampled_of(interpolation, img)
    expect_fill(img, fill)
    return kernels_of(img).perspective(img, startpoints, endpoints, mode, fill)


def elastic_transform(
    img: Any, displacement: Tensor, interpolation: Any = BILINEAR, fill: Fill = None
) -> Any:
    """The picture with each pixel taken from elsewhere.

    `displacement` (1, H, W, 2) says by how much (x, y), the picture being 2 wide and high.
    """
    mode = interpolation_of(interpolation)
    if not isinstance(displacement, Tensor):
        raise TypeError("Argument displacement should be a Tensor")
    expected = (1, *get_dimensions(img)[1:], 2)
    if tuple(displacement.shape) != expected:
        raise ValueError(
            f"Argument displacement shape should be {expected}, but given {displacement.shape}"
        )
    if is_pil(img):
        moved = elastic_transform(pil_to_tensor(img), displacement, mode, fill)
        return to_pil_image(moved, mode=img.mode)
    expect_fill(img, fill)
    return _tensor.elastic(img, displacement, mode, fill)


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Tensor:
    """The tensor with the values `v` from row `i` and column `j` on, in `h` rows, `w` columns."""
    if not isinstance(img, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(img)}")
    return _tensor.erase(img, i, j, h, w, v, inplace)


# Colours


def adjusted(img: Any, name: str, factor: float) -> Any:
    """A picture with one property changed; ValueError for tensors and factors below 0."""
    if isinstance(img, Tensor) and factor < 0:
        raise ValueError(f"{name}_factor ({factor}) is not non-negative.")
    return getattr(kernels_of(img, True), f"adjust_{name}")(img, factor)


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """0 gives black, 1 the picture, 2 twice the brightness."""
    return adjusted(img, "brightness", brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """0 gives grey, 1 the picture, 2 twice the contrast."""
    return adjusted(img, "contrast", contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """0 gives a picture without colour, 1 the picture, 2 twice the colour."""
    return adjusted(img, "saturation", saturation_factor)


def adjust_sharpness(img: Any, sharpness_factor: float) -> Any:
    """0 gives a blurred picture, 1 the picture, 2 twice the sharpness."""
    return adjusted(img, "sharpness", sharpness_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Turns the circle of colours by a part in [-0.5, 0.5] of it."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    return kernels_of(img, True).adjust_hue(img, hue_factor)


def adjust_gamma(img: Any, gamma: float, gain: float = 1) -> Any:
    """`gain * img**gamma`, white being 1."""
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number")
    return kernels_of(img, True).adjust_gamma(img, gamma, gain)


def invert(img: Any) -> Any:
    """The negative."""
    return kernels_of(img, True).invert(img)


def posterize(img: Any, bits: int) -> Any:
    """Keeps the upper bits, 0 to 8, of each channel of bytes."""
    if not 0 <= bits <= 8:
        raise ValueError(f"The number if bits should be between 0 and 8. Got {bits}")
    return kernels_of(img, True).posterize(img, bits)


def solarize(img: Any, threshold: float) -> Any:
    """Inverts the values that are not below the threshold."""
    return kernels_of(img, True).solarize(img, threshold)


def autocontrast(img: Any) -> Any:
    """Stretches each channel to the whole range."""
    return kernels_of(img, True).autocontrast(img)


def equalize(img: Any) -> Any:
    """Gives each channel of bytes a flat histogram, nearly."""
    return kernels_of(img, True).equalize(img)


def to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """A PIL image without colour, in one channel or three."""
    if not is_pil(img):
        raise TypeError("Input should be PIL Image")
    return _pil.to_grayscale(img, num_output_channels)


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """A picture without colour, in one channel or three."""
    return kernels_of(img, True).to_grayscale(img, num_output_channels)


def gaussian_blur(
    img: Any, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None
) -> Any:
    """Smooths by a Gaussian of (x, y) pixels with these standard deviations.

    `sigma` is `0.15 * kernel_size + 0.35` by default. Beyond the border the picture is mirrored.
    """
    if not isinstance(kernel_size, int | list | tuple):
        raise TypeError(
            "kernel_size should be int or a sequence of integers. Got " + str(type(kernel_size))
        )
    sizes = [kernel_size] * 2 if isinstance(kernel_size, int) else [*kernel_size]
    if len(sizes) != 2:
        raise ValueError(f"If kernel_size is a sequence its length should be 2. Got {len(sizes)}")
    if any(size % 2 == 0 or size < 0 for size in sizes):
        raise ValueError(f"kernel_size should have odd and positive integers. Got {sizes}")
    if sigma is None:
        sigmas = [size * 0.15 + 0.35 for size in sizes]
    elif isinstance(sigma, int | float):
        sigmas = [float(sigma)] * 2
    elif isinstance(sigma, list | tuple):
        sigmas = [*sigma] * 2 if len(sigma) == 1 else [*sigma]
    else:
        raise TypeError(f"sigma should be either float or sequence of floats. Got {type(sigma)}")
    if len(sigmas) != 2:
        raise ValueError(f"If sigma is a sequence, its length should be 2. Got {len(sigmas)}")
    if any(value <= 0 for value in sigmas):
        raise ValueError(f"sigma should have positive values. Got {sigmas}")
    if kernels_of(img) is _pil:
        blurred = _tensor_color.gaussian_blur(pil_to_tensor(img), sizes, sigmas)
        return to_pil_image(blurred, mode=img.mode)
    return _tensor_color.gaussian_blur(img, sizes, sigmas)

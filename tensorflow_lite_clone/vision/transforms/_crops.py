"""Transforms that cut, pad, flip and resize."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.nn import Module
from tensorflow_lite_clone.vision.transforms import functional
from tensorflow_lite_clone.vision.transforms._base import (
    AttributeRepr,
    FunctionTransform,
    RandomFunctionTransform,
)
from tensorflow_lite_clone.vision.transforms._draws import (
    ATTEMPTS,
    CROP_SIZE,
    integer,
    pair_of,
    rectangle_sizes,
)
from tensorflow_lite_clone.vision.transforms._interpolation import (
    InterpolationMode,
    interpolation_of,
)


class Resize(FunctionTransform):
    """Resizes to (H, W), or to a length of the shorter edge; see `functional.resize`."""

    function = staticmethod(functional.resize)
    arguments = ("size", "interpolation", "max_size", "antialias")

    def __init__(
        self,
        size: int | Sequence[int],
        interpolation: Any = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if not isinstance(size, int | Sequence):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if isinstance(size, Sequence) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        self.size = size
        self.max_size = max_size
        self.interpolation = interpolation_of(interpolation)
        self.antialias = antialias


class CenterCrop(FunctionTransform):
    """Cuts out the middle; see `functional.center_crop`."""

    function = staticmethod(functional.center_crop)
    arguments = ("size",)

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = pair_of(size, CROP_SIZE)


class Pad(FunctionTransform):
    """Adds borders; see `functional.pad`."""

    function = staticmethod(functional.pad)
    arguments = ("padding", "fill", "padding_mode")

    def __init__(
        self, padding: int | Sequence[int], fill: Any = 0, padding_mode: str = "constant"
    ) -> None:
        super().__init__()
        functional.expect_padding(padding, fill, padding_mode)
        self.padding = padding
        self.fill = fill
        self.padding_mode = padding_mode


class RandomCrop(AttributeRepr):
    """Cuts out a part of a size (H, W) at a random place.

    The picture is padded first, as `functional.pad` does, by `padding` if it is given, and with
    `pad_if_needed` until it is large enough; else ValueError.
    """

    repr_fields = ("size", "padding")

    @staticmethod
    def get_params(img: Any, output_size: Sequence[int]) -> tuple[int, int, int, int]:
        """A random (top, left, height, width) for `crop`."""
        _, height, width = functional.get_dimensions(img)
        return crop_region(height, width, output_size)

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size = tuple(pair_of(size, CROP_SIZE))
        self.padding = padding
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = padding_mode

    def forward(self, img: Any) -> Any:
        """A random part of the picture."""
        if self.padding is not None:
            img = functional.pad(img, self.padding, self.fill, self.padding_mode)
        if self.pad_if_needed:
            _, height, width = functional.get_dimensions(img)
            for missing in ([max(self.size[1] - width, 0), 0], [0, max(self.size[0] - height, 0)]):
                if any(missing):
                    img = functional.pad(img, missing, self.fill, self.padding_mode)
        return functional.crop(img, *self.get_params(img, self.size))


def crop_region(height: int, width: int, size: Sequence[int]) -> tuple[int, int, int, int]:
    """A random (top, left, height, width) of a part; ValueError if it is larger than the whole."""
    h, w = size
    if h > height or w > width:
        raise ValueError(
            f"Required crop size {(h, w)} is larger than input image size {(height, width)}"
        )
    if (h, w) == (height, width):
        return 0, 0, h, w
    top = integer(0, height - h + 1)
    return top, integer(0, width - w + 1), h, w


class RandomHorizontalFlip(RandomFunctionTransform):
    """Exchanges left and right with probability `p`."""

    function = staticmethod(functional.hflip)


class RandomVerticalFlip(RandomFunctionTransform):
    """Turns the picture upside down with probability `p`."""

    function = staticmethod(functional.vflip)


class RandomResizedCrop(Module):
    """Cuts out a part of random size and shape, and resizes it (C. Szegedy et al., 2015).

    `scale` bounds its share of the area, `ratio` its width over its height.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3 / 4, 4 / 3),
        interpolation: Any = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size = pair_of(size, CROP_SIZE)
        if not isinstance(scale, Sequence):
            raise TypeError("Scale should be a sequence")
        if not isinstance(ratio, Sequence):
            raise TypeError("Ratio should be a sequence")
        self.interpolation = interpolation_of(interpolation)
        self.antialias = antialias
        self.scale = scale
        self.ratio = ratio

    @staticmethod
    def get_params(
        img: Any, scale: Sequence[float], ratio: Sequence[float]
    ) -> tuple[int, int, int, int]:
        """A random (top, left, height, width) for `crop`."""
        _, height, width = functional.get_dimensions(img)
        return resized_region(height, width, scale, ratio)

    def forward(self, img: Any) -> Any:
        """A random part of the picture, resized."""
        region = self.get_params(img, self.scale, self.ratio)
        return functional.resized_crop(
            img, *region, self.size, self.interpolation, antialias=self.antialias
        )

    def __repr__(self) -> str:
        scale, ratio = (tuple(round(x, 4) for x in values) for values in (self.scale, self.ratio))
        return (
            f"{type(self).__name__}(size={self.size}, scale={scale}, ratio={ratio}, "
            f"interpolation={self.interpolation.value}, antialias={self.antialias})"
        )


def resized_region(
    height: int, width: int, scale: Sequence[float], ratio: Sequence[float]
) -> tuple[int, int, int, int]:
    """A random (top, left, height, width); the middle, if no draw fits."""
    for _, (w, h) in zip(range(ATTEMPTS), rectangle_sizes(height * width, scale, ratio)):
        if 0 < w <= width and 0 < h <= height:
            top = integer(0, height - h + 1)
            return top, integer(0, width - w + 1), h, w
    h, w = height, width
    if width / height < min(ratio):
        h = round(width / min(ratio))
    elif width / height > max(ratio):
        w = round(height * max(ratio))
    return (height - h) // 2, (width - w) // 2, h, w


class FiveCrop(FunctionTransform):
    """Cuts out the corners and the middle, a tuple of five; see `functional.five_crop`."""

    function = staticmethod(functional.five_crop)
    arguments = ("size",)

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = pair_of(size, CROP_SIZE)


class TenCrop(FunctionTransform):
    """Cuts out corners and middle, of the picture and its mirror image: a tuple of ten."""

    function = staticmethod(functional.ten_crop)
    arguments = ("size", "vertical_flip")

    def __init__(self, size: int | Sequence[int], vertical_flip: bool = False) -> None:
        super().__init__()
        self.size = pair_of(size, CROP_SIZE)
        self.vertical_flip = vertical_flip

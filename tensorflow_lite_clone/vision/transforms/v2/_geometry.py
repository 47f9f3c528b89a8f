"""The second version's geometric transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tensorflow_lite_clone.vision.transforms import _crops, _shapes, _warps
from tensorflow_lite_clone.vision.transforms._draws import (
    CROP_SIZE,
    angles_of,
    expect_length,
    integer,
    pair_of,
)
from tensorflow_lite_clone.vision.transforms._interpolation import InterpolationMode
from tensorflow_lite_clone.vision.transforms.functional import expect_padding
from tensorflow_lite_clone.vision.transforms.v2 import functional
from tensorflow_lite_clone.vision.transforms.v2._transform import (
    RandomTransform,
    Transform,
    fill_for,
    size_of,
)
from tensorflow_lite_clone.vision.tv_tensors import BoundingBoxes, Mask

NEAREST, BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR
# What some transforms draw, in the order in which functions take it.
REGION = ("top", "left", "height", "width")
AMOUNTS = ("angle", "translate", "scale", "shear")
CORNERS = ("startpoints", "endpoints")


class RandomHorizontalFlip(RandomTransform):
    """Exchanges left and right with probability `p`."""

    function = staticmethod(functional.horizontal_flip)


class RandomVerticalFlip(RandomTransform):
    """Turns upside down with probability `p`."""

    function = staticmethod(functional.vertical_flip)


class Resize(Transform):
    """Resizes to (H, W), or to a length of the shorter edge, or of the longer one.

    With `size=None`, `max_size` is the longer edge's new length. See `functional.resize`.
    """

    function = staticmethod(functional.resize)
    arguments = ("size", "interpolation", "max_size", "antialias")

    def __init__(
        self,
        size: int | Sequence[int] | None,
        interpolation: Any = BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if isinstance(size, int):
            self.size: Any = [size]
        elif isinstance(size, Sequence) and len(size) in (1, 2):
            self.size = list(size)
        elif size is None:
            if not isinstance(max_size, int):
                raise ValueError(
                    f"max_size must be an integer when size is None, but got {max_size} instead."
                )
            self.size = None
        else:
            raise ValueError(
                "size can be an integer, a sequence of one or two integers, or None, but got "
                f"{size} instead."
            )
        self.interpolation = interpolation
        self.max_size = max_size
        self.antialias = antialias


class CenterCrop(Transform):
    """Cuts out the middle; see `functional.center_crop`."""

    function = staticmethod(functional.center_crop)
    arguments = ("size",)

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = pair_of(size, CROP_SIZE)


class Pad(Transform):
    """Adds borders; see `functional.pad`. `fill` may be a dict by type."""

    function = staticmethod(functional.pad)
    arguments = ("padding", "fill", "padding_mode")

    def __init__(
        self, padding: int | Sequence[int], fill: Any = 0, padding_mode: str = "constant"
    ) -> None:
        super().__init__()
        expect_padding(padding, 0, padding_mode)
        self.padding = padding if isinstance(padding, int) else list(padding)
        self.fill = fill
        self.padding_mode = padding_mode


class RandomCrop(Transform):
    """Cuts out a part of a size (H, W) at a random place, after padding.

    With `pad_if_needed` a picture that is too small is padded on both sides; else ValueError.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size = pair_of(size, CROP_SIZE)
        if padding is not None:
            expect_padding(padding, 0, padding_mode)
        self.padding = None if padding is None else list(_shapes.borders(padding))
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = padding_mode

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The padding, and the place in the padded picture."""
        height, width = size_of(flat_inputs)
        left, top, right, bottom = self.padding or (0, 0, 0, 0)
        crop_height, crop_width = self.size
        if self.pad_if_needed:
            across = max(crop_width - (width + left + right), 0)
            down = max(crop_height - (height + top + bottom), 0)
            left, right = left + across, right + across
            top, bottom = top + down, bottom + down
        height, width = height + top + bottom, width + left + right
        if height < crop_height or width < crop_width:
            raise ValueError(
                f"Required crop size {(crop_height, crop_width)} is larger than "
                f"{'padded ' if self.padding else ''}input image size {(height, width)}."
            )
        corner = [
            integer(0, have - want + 1) if have > want else 0
            for have, want in ((height, crop_height), (width, crop_width))
        ]
        return {"padding": [left, top, right, bottom], "region": (*corner, *self.size)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The part of the leaf."""
        if any(params["padding"]):
            fill = fill_for(self.fill, inpt)
            inpt = self.call(functional.pad, inpt, params["padding"], fill, self.padding_mode)
        return self.call(functional.crop, inpt, *params["region"])


class RandomResizedCrop(Transform):
    """Cuts out a part of random size and shape, and resizes it (C. Szegedy et al., 2015)."""

    function = staticmethod(functional.resized_crop)
    arguments = (*REGION, "size", "interpolation", "antialias")

    def __init__(
        self,
        size: int | Sequence[int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: Any = BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size = pair_of(size, CROP_SIZE)
        if not isinstance(scale, Sequence):
            raise TypeError("Scale should be a sequence")
        if not isinstance(ratio, Sequence):
            raise TypeError("Ratio should be a sequence")
        self.scale = scale
        self.ratio = ratio
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The place of the part."""
        region = _crops.resized_region(*size_of(flat_inputs), self.scale, self.ratio)
        return dict(zip(REGION, region))


class FiveCrop(Transform):
    """Cuts out the corners and the middle: five for one picture. Not for masks and boxes."""

    function = staticmethod(functional.five_crop)
    arguments: ClassVar[tuple[str, ...]] = ("size",)

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = pair_of(size, CROP_SIZE)

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """TypeError for masks and boxes."""
        if any(isinstance(leaf, Mask | BoundingBoxes) for leaf in flat_inputs):
            raise TypeError(
                f"BoundingBoxes'es and Mask's are not supported by {type(self).__name__}()"
            )


class TenCrop(FiveCrop):
    """Cuts out corners and middle of the picture and its mirror image: ten for one picture."""

    function = staticmethod(functional.ten_crop)
    arguments = ("size", "vertical_flip")

    def __init__(self, size: int | Sequence[int], vertical_flip: bool = False) -> None:
        super().__init__(size)
        self.vertical_flip = vertical_flip


class RandomRotation(Transform):
    """Turns by a random angle in degrees; see `functional.rotate`."""

    function = staticmethod(functional.rotate)
    arguments = ("angle", "interpolation", "expand", "center", "fill")

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: Any = NEAREST,
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.degrees = angles_of(degrees, "degrees")
        self.interpolation = interpolation
        self.expand = expand
        self.fill = fill
        if center is not None:
            expect_length(center, "center", (2,))
        self.center = center

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The angle."""
        return {"angle": _warps.RandomRotation.get_params(self.degrees)}


class RandomAffine(Transform):
    """Turns, moves, scales and shears by random amounts, as the first version's does."""

    function = staticmethod(functional.affine)
    arguments = (*AMOUNTS, "interpolation", "fill", "center")

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Any = NEAREST,
        fill: Any = 0,
        center: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        checked = _warps.RandomAffine(degrees, translate, scale, shear, center=center)
        self.degrees = checked.degrees
        self.translate = translate
        self.scale = scale
        self.shear = checked.shear
        self.interpolation = interpolation
        self.fill = fill
        self.center = center

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The amounts."""
        height, width = size_of(flat_inputs)
        ranges = (self.degrees, self.translate, self.scale, self.shear)
        return dict(zip(AMOUNTS, _warps.RandomAffine.get_params(*ranges, [width, height])))


class RandomPerspective(RandomTransform):
    """Draws as if seen from elsewhere, with probability `p`, as the first version's does."""

    function = staticmethod(functional.perspective)
    arguments = (*CORNERS, "interpolation", "fill")

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Any = BILINEAR,
        fill: Any = 0,
    ) -> None:
        super().__init__(p)
        if not 0 <= distortion_scale <= 1:
            raise ValueError("Argument distortion_scale value should be between 0 and 1")
        self.distortion_scale = distortion_scale
        self.interpolation = interpolation
        self.fill = fill

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The corners, and where they go."""
        height, width = size_of(flat_inputs)
        corners = _warps.RandomPerspective.get_params(width, height, self.distortion_scale)
        return dict(zip(CORNERS, corners))


class ElasticTransform(Transform):
    """Bends as seen through water, as the first version's does; boxes are not served."""

    function = staticmethod(functional.elastic)
    arguments = ("displacement", "interpolation", "fill")

    def __init__(
        self, alpha: Any = 50.0, sigma: Any = 5.0, interpolation: Any = BILINEAR, fill: Any = 0
    ) -> None:
        super().__init__()
        self.alpha = _warps.two_floats(alpha, "alpha")
        self.sigma = _warps.two_floats(sigma, "sigma")
        self.interpolation = interpolation
        self.fill = fill

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The displacement."""
        size = size_of(flat_inputs)
        displacement = _warps.ElasticTransform.get_params(self.alpha, self.sigma, size)
        return {"displacement": displacement}

"""Transforms that turn, shear and bend."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.nn import Module
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.transforms import functional
from tensorflow_lite_clone.vision.transforms._base import AttributeRepr
from tensorflow_lite_clone.vision.transforms._draws import (
    angles_of,
    chance,
    expect_length,
    integer,
    uniform,
)
from tensorflow_lite_clone.vision.transforms._interpolation import (
    InterpolationMode,
    interpolation_of,
)


def fill_of(fill: Any) -> Any:
    """A fill; None is 0, TypeError for what is no number or sequence."""
    if fill is None:
        return 0
    if not isinstance(fill, numbers.Number | Sequence):
        raise TypeError("Fill should be either a sequence or a number.")
    return fill


class RandomRotation(Module):
    """Turns by a random angle, in degrees between two bounds, or up to one in both directions.

    See `functional.rotate` for the other arguments.
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: Any = InterpolationMode.NEAREST,
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.degrees = angles_of(degrees, "degrees")
        if center is not None:
            expect_length(center, "center", (2,))
        self.center = center
        self.interpolation = interpolation_of(interpolation)
        self.expand = expand
        self.fill = fill_of(fill)

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """A random angle."""
        return uniform(float(degrees[0]), float(degrees[1]))

    def forward(self, img: Any) -> Any:
        """The picture, turned."""
        angle = self.get_params(self.degrees)
        return functional.rotate(
            img, angle, self.interpolation, self.expand, self.center, self.fill
        )

    def __repr__(self) -> str:
        center = "" if self.center is None else f", center={self.center}"
        return (
            f"{type(self).__name__}(degrees={self.degrees}, "
            f"interpolation={self.interpolation.value}, expand={self.expand}{center}, "
            f"fill={self.fill})"
        )


class RandomAffine(Module):
    """Turns, moves, scales and shears by random amounts.

    Args:
        degrees: bounds of the angle, or the largest in both directions.
        translate: the largest moves, as parts of width and height.
        scale: bounds of the factor.
        shear: bounds of the angle in x, or of those in x and y.

    See `functional.affine` for the other arguments.
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Any = InterpolationMode.NEAREST,
        fill: Any = 0,
        center: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.degrees = angles_of(degrees, "degrees")
        if translate is not None:
            expect_length(translate, "translate", (2,))
            if not all(0 <= part <= 1 for part in translate):
                raise ValueError("translation values should be between 0 and 1")
        if scale is not None:
            expect_length(scale, "scale", (2,))
            if not all(factor > 0 for factor in scale):
                raise ValueError("scale values should be positive")
        self.translate = translate
        self.scale = scale
        self.shear = None if shear is None else angles_of(shear, "shear", (2, 4))
        self.interpolation = interpolation_of(interpolation)
        self.fill = fill_of(fill)
        if center is not None:
            expect_length(center, "center", (2,))
        self.center = center

    @staticmethod
    def get_params(
        degrees: Sequence[float],
        translate: Sequence[float] | None,
        scale_ranges: Sequence[float] | None,
        shears: Sequence[float] | None,
        img_size: Sequence[int],
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:
        """Random (angle, (x, y), factor, (shear in x, shear in y)) for a picture of (W, H)."""
        angle = uniform(float(degrees[0]), float(degrees[1]))
        moves = (0, 0)
        if translate is not None:
            width, height = (float(part * side) for part, side in zip(translate, img_size))
            across = round(uniform(-width, width))
            moves = across, round(uniform(-height, height))
        factor = 1.0 if scale_ranges is None else uniform(scale_ranges[0], scale_ranges[1])
        shear_x = shear_y = 0.0
        if shears is not None:
            shear_x = uniform(shears[0], shears[1])
            if len(shears) == 4:
                shear_y = uniform(shears[2], shears[3])
        return angle, moves, factor, (shear_x, shear_y)

    def forward(self, img: Any) -> Any:
        """The picture, moved."""
        size = functional.get_image_size(img)
        amounts = self.get_params(self.degrees, self.translate, self.scale, self.shear, size)
        return functional.affine(
            img, *amounts, self.interpolation, fill=self.fill, center=self.center
        )

    def __repr__(self) -> str:
        text = f"{type(self).__name__}(degrees={self.degrees}"
        for name in ("translate", "scale", "shear"):
            value = getattr(self, name)
            text += "" if value is None else f", {name}={value}"
        if self.interpolation is not InterpolationMode.NEAREST:
            text += f", interpolation={self.interpolation.value}"
        text += "" if self.fill == 0 else f", fill={self.fill}"
        text += "" if self.center is None else f", center={self.center}"
        return text + ")"


class RandomPerspective(AttributeRepr):
    """Draws the picture as if seen from elsewhere, with probability `p`.

    Each corner moves inwards by up to `distortion_scale` of half the width and height.
    """

    repr_fields = ("p",)

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Any = InterpolationMode.BILINEAR,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.p = p
        self.interpolation = interpolation_of(interpolation)
        self.distortion_scale = distortion_scale
        self.fill = fill_of(fill)

    def forward(self, img: Any) -> Any:
        """The picture, distorted or not."""
        if not chance(self.p):
            return img
        _, height, width = functional.get_dimensions(img)
        corners = self.get_params(width, height, self.distortion_scale)
        return functional.perspective(img, *corners, self.interpolation, self.fill)

    @staticmethod
    def get_params(
        width: int, height: int, distortion_scale: float
    ) -> tuple[list[list[int]], list[list[int]]]:
        """The corners (x, y) from the top left clockwise, and random places for them."""
        across = int(distortion_scale * (width // 2)) + 1
        down = int(distortion_scale * (height // 2)) + 1
        right, bottom = width - 1, height - 1
        corners = [[0, 0], [right, 0], [right, bottom], [0, bottom]]
        moved = [
            [
                integer(0, across) if x == 0 else integer(width - across, width),
                integer(0, down) if y == 0 else integer(height - down, height),
            ]
            for x, y in [(0, 0), (1, 0), (1, 1), (0, 1)]
        ]
        return corners, moved


class ElasticTransform(Module):
    """Bends the picture as seen through water (P. Simard et al., 2003).

    Each pixel is taken from up to `alpha` pixels away, and `sigma` says how far neighbours move
    alike; both are a float, or one for x and one for y.
    """

    def __init__(
        self,
        alpha: float | Sequence[float] = 50.0,
        sigma: float | Sequence[float] = 5.0,
        interpolation: Any = InterpolationMode.BILINEAR,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.alpha = two_floats(alpha, "alpha")
        self.sigma = two_floats(sigma, "sigma")
        self.interpolation = interpolation_of(interpolation)
        if not isinstance(fill, int | float | list | tuple):
            raise TypeError(
                f"fill should be int or float or a list or tuple of them. Got {type(fill)}"
            )
        self.fill = [float(v) for v in (fill if isinstance(fill, list | tuple) else [fill])]

    @staticmethod
    def get_params(alpha: Sequence[float], sigma: Sequence[float], size: Sequence[int]) -> Tensor:
        """A random displacement (1, H, W, 2) of a picture (H, W)."""
        fields = []
        for amount, width, length in zip(alpha, sigma, (size[1], size[0])):
            noise = empty([1, 1, *size]).uniform_() * 2 - 1
            if width > 0:
                kernel = int(8 * width + 1) | 1  # odd
                noise = functional.gaussian_blur(noise, [kernel, kernel], list(sigma))
            fields.append(noise * amount / length)
        return cat(fields, 1).permute(0, 2, 3, 1)

    def forward(self, tensor: Any) -> Any:
        """The picture, bent."""
        _, height, width = functional.get_dimensions(tensor)
        displacement = self.get_params(self.alpha, self.sigma, [height, width])
        return functional.elastic_transform(tensor, displacement, self.interpolation, self.fill)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(alpha={self.alpha}, sigma={self.sigma}, "
            f"interpolation={self.interpolation}, fill={self.fill})"
        )


def two_floats(value: Any, name: str) -> list[float]:
    """Two floats, from one or a sequence."""
    if isinstance(value, float):
        return [value, value]
    if not isinstance(value, Sequence):
        raise TypeError(f"{name} should be float or a sequence of floats. Got {type(value)}")
    if len(value) != 2:
        raise ValueError(f"If {name} is a sequence its length should be 2. Got {len(value)}")
    for element in value:
        if not isinstance(element, float):
            raise TypeError(f"{name} should be a sequence of floats. Got {type(element)}")
    return list(value)

"""Transforms of colours, blurs, and erasing."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.ops.create.constructors import empty, tensor
from tensorflow_lite_clone.ops.random.sampling import randperm
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.transforms import functional
from tensorflow_lite_clone.vision.transforms._base import (
    AttributeRepr,
    FunctionTransform,
    RandomFunctionTransform,
)
from tensorflow_lite_clone.vision.transforms._draws import (
    ATTEMPTS,
    chance,
    integer,
    pair_of,
    rectangle_sizes,
    uniform,
)

Bounds = tuple[float, float] | None


def jitter_bounds(
    value: Any, name: str, center: float = 1, bound: tuple[float, float] = (0, float("inf"))
) -> Bounds:
    """The bounds of a random factor, from a sequence or its largest distance from the center.

    None if there is nothing to change.
    """
    if isinstance(value, numbers.Number):
        if value < 0:  # type: ignore[operator]
            raise ValueError(f"If {name} is a single number, it must be non negative.")
        low, high = float(center - value), float(center + value)  # type: ignore[operator]
        limits = [max(low, 0.0) if center == 1 else low, high]
    elif isinstance(value, list | tuple) and len(value) == 2:
        limits = [float(value[0]), float(value[1])]
    else:
        raise TypeError(f"{name} should be a single number or a list/tuple with length 2.")
    if not bound[0] <= limits[0] <= limits[1] <= bound[1]:
        raise ValueError(f"{name} values should be between {bound}, but got {limits}.")
    return None if limits[0] == limits[1] == center else (limits[0], limits[1])


class ColorJitter(AttributeRepr):
    """Changes brightness, contrast, saturation and hue by random factors, in random order.

    Each is a pair of bounds, or the largest distance from 1 (of the hue: from 0, up to 0.5).
    """

    repr_fields = ("brightness", "contrast", "saturation", "hue")

    def __init__(
        self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0
    ) -> None:
        super().__init__()
        self.brightness = jitter_bounds(brightness, "brightness")
        self.contrast = jitter_bounds(contrast, "contrast")
        self.saturation = jitter_bounds(saturation, "saturation")
        self.hue = jitter_bounds(hue, "hue", 0, (-0.5, 0.5))

    @staticmethod
    def get_params(
        brightness: Bounds, contrast: Bounds, saturation: Bounds, hue: Bounds
    ) -> tuple[Tensor, float | None, float | None, float | None, float | None]:
        """A random order of the four, and a random factor of each that is not None."""
        order = randperm(4)
        b, c, s, h = (
            None if bounds is None else uniform(bounds[0], bounds[1])
            for bounds in (brightness, contrast, saturation, hue)
        )
        return order, b, c, s, h

    def forward(self, img: Any) -> Any:
        """The picture with other colours."""
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        return jittered(img, order, factors)


ADJUSTMENTS = (
    functional.adjust_brightness,
    functional.adjust_contrast,
    functional.adjust_saturation,
    functional.adjust_hue,
)


def jittered(img: Any, order: Tensor, factors: Sequence[float | None]) -> Any:
    """The picture with its brightness, contrast, saturation, hue changed in an order."""
    for index in order.tolist():
        factor = factors[index]
        if factor is not None:
            img = ADJUSTMENTS[index](img, factor)
    return img


class Grayscale(FunctionTransform):
    """Takes the colours away, and leaves one channel or three."""

    function = staticmethod(functional.rgb_to_grayscale)
    arguments = ("num_output_channels",)

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels


def as_grayscale(img: Any) -> Any:
    """The picture without colours, in as many channels."""
    return functional.rgb_to_grayscale(img, functional.get_image_num_channels(img))


class RandomGrayscale(RandomFunctionTransform):
    """Takes the colours away with probability `p`; the number of channels stays."""

    function = staticmethod(as_grayscale)

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)


class RandomInvert(RandomFunctionTransform):
    """Makes the negative with probability `p`."""

    function = staticmethod(functional.invert)


class RandomPosterize(RandomFunctionTransform):
    """Keeps the upper `bits` of each channel with probability `p`."""

    function = staticmethod(functional.posterize)
    arguments = ("bits",)

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits


class RandomSolarize(RandomFunctionTransform):
    """Inverts the values that are not below `threshold`, with probability `p`."""

    function = staticmethod(functional.solarize)
    arguments = ("threshold",)

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold


class RandomAdjustSharpness(RandomFunctionTransform):
    """Changes the sharpness by a factor, with probability `p`."""

    function = staticmethod(functional.adjust_sharpness)
    arguments = ("sharpness_factor",)

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor


class RandomAutocontrast(RandomFunctionTransform):
    """Stretches each channel to the whole range with probability `p`."""

    function = staticmethod(functional.autocontrast)


class RandomEqualize(RandomFunctionTransform):
    """Equalizes the histogram of each channel with probability `p`."""

    function = staticmethod(functional.equalize)


class RandomErasing(AttributeRepr):
    """Overwrites a random rectangle of a tensor with probability `p` (Z. Zhong et al., 2017).

    Args:
        p: the probability.
        scale: bounds of the rectangle's share of the area.
        ratio: bounds of its height over its width.
        value: a number, one for each channel, or "random" for normal noise.
        inplace: overwrite the given tensor.
    """

    repr_fields = ("p", "scale", "ratio", "value", "inplace")

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(value, numbers.Number | str | tuple | list):
            raise TypeError("Argument value should be either a number or str or a sequence")
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
        if not isinstance(scale, Sequence):
            raise TypeError("Scale should be a sequence")
        if not isinstance(ratio, Sequence):
            raise TypeError("Ratio should be a sequence")
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError("Scale should be between 0 and 1")
        if not 0 <= p <= 1:
            raise ValueError("Random erasing probability should be between 0 and 1")
        self.p = p
        self.scale = scale
        self.ratio = ratio
        self.value: Any = value
        self.inplace = inplace

    @staticmethod
    def get_params(
        img: Tensor,
        scale: Sequence[float],
        ratio: Sequence[float],
        value: Sequence[float] | None = None,
    ) -> tuple[int, int, int, int, Tensor]:
        """A random (top, left, height, width, values) for `erase`; values None are noise.

        If no rectangle fits: all of the picture, with itself as values.
        """
        channels, height, width = img.shape[-3:]
        for _, (h, w) in zip(range(ATTEMPTS), rectangle_sizes(height * width, scale, ratio)):
            if h >= height or w >= width:
                continue
            if value is None:
                values = empty([channels, h, w]).normal_()
            else:
                values = tensor(value)[:, None, None]
            top = integer(0, height - h + 1)
            return top, integer(0, width - w + 1), h, w, values
        return 0, 0, height, width, img

    def values(self, channels: int) -> list[float] | None:
        """The value of each channel, or one for all; None for noise."""
        if isinstance(self.value, str):
            return None
        values = [*self.value] if isinstance(self.value, list | tuple) else [float(self.value)]
        if len(values) not in (1, channels):
            raise ValueError(
                "If value is a sequence, it should have either a single value or "
                f"{channels} (number of input channels)"
            )
        return values

    def forward(self, img: Tensor) -> Tensor:
        """The picture, with a rectangle erased or not."""
        if not chance(self.p):
            return img
        region = self.get_params(img, self.scale, self.ratio, self.values(img.shape[-3]))
        return functional.erase(img, *region, self.inplace)


class GaussianBlur(AttributeRepr):
    """Blurs by a random amount: `sigma` in pixels, a number or bounds.

    `kernel_size`, odd, is a number or (x, y); see `functional.gaussian_blur`.
    """

    repr_fields = ("kernel_size", "sigma")

    def __init__(
        self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)
    ) -> None:
        super().__init__()
        self.kernel_size = pair_of(
            kernel_size, "Kernel size should be a tuple/list of two integers"
        )
        if any(size <= 0 or size % 2 == 0 for size in self.kernel_size):
            raise ValueError("Kernel size value should be an odd and positive number.")
        if isinstance(sigma, numbers.Number):
            if sigma <= 0:  # type: ignore[operator]
                raise ValueError("If sigma is a single number, it must be positive.")
            sigma = (sigma, sigma)  # type: ignore[assignment]
        elif not (isinstance(sigma, Sequence) and len(sigma) == 2):
            raise ValueError("sigma should be a single number or a list/tuple with length 2.")
        elif not 0.0 < sigma[0] <= sigma[1]:
            raise ValueError("sigma values should be positive and of the form (min, max).")
        self.sigma: Any = sigma

    @staticmethod
    def get_params(sigma_min: float, sigma_max: float) -> float:
        """A random amount."""
        return uniform(sigma_min, sigma_max)

    def forward(self, img: Any) -> Any:
        """The picture, blurred."""
        sigma = self.get_params(self.sigma[0], self.sigma[1])
        return functional.gaussian_blur(img, self.kernel_size, [sigma, sigma])

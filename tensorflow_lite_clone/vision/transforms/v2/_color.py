"""The second version's transforms of colours, blurs, and erasing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.ops.create.constructors import empty, tensor
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.transforms import _color
from tensorflow_lite_clone.vision.transforms._draws import (
    ATTEMPTS,
    integer,
    rectangle_sizes,
    uniform,
)
from tensorflow_lite_clone.vision.transforms.v2 import functional
from tensorflow_lite_clone.vision.transforms.v2._transform import (
    RandomTransform,
    Transform,
    channels_of,
)


class Grayscale(Transform):
    """Takes the colours away, and leaves one channel or three."""

    function = staticmethod(functional.rgb_to_grayscale)
    arguments = ("num_output_channels",)

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels


class RGB(Transform):
    """Makes three channels of one."""

    function = staticmethod(functional.grayscale_to_rgb)


class RandomGrayscale(RandomTransform):
    """Takes the colours away with probability `p`; the number of channels stays."""

    function = staticmethod(functional.rgb_to_grayscale)
    arguments = ("num_output_channels",)

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The number of channels."""
        return {"num_output_channels": channels_of(flat_inputs)[0]}


class ColorJitter(Transform):
    """Changes brightness, contrast, saturation and hue by random factors, in random order."""

    function = staticmethod(functional.of_pictures(_color.jittered))
    arguments = ("order", "factors")

    def __init__(
        self, brightness: Any = None, contrast: Any = None, saturation: Any = None, hue: Any = None
    ) -> None:
        super().__init__()
        self.brightness = _color.jitter_bounds(brightness or 0, "brightness")
        self.contrast = _color.jitter_bounds(contrast or 0, "contrast")
        self.saturation = _color.jitter_bounds(saturation or 0, "saturation")
        self.hue = _color.jitter_bounds(hue or 0, "hue", 0, (-0.5, 0.5))

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The order and the factors."""
        bounds = (self.brightness, self.contrast, self.saturation, self.hue)
        order, *factors = _color.ColorJitter.get_params(*bounds)
        return {"order": order, "factors": factors}


class RandomInvert(RandomTransform):
    """Makes the negative with probability `p`."""

    function = staticmethod(functional.invert)


class RandomAutocontrast(RandomTransform):
    """Stretches each channel to the whole range with probability `p`."""

    function = staticmethod(functional.autocontrast)


class RandomEqualize(RandomTransform):
    """Equalizes the histogram of each channel with probability `p`."""

    function = staticmethod(functional.equalize)


class RandomPosterize(RandomTransform):
    """Keeps the upper `bits` of each channel with probability `p`."""

    function = staticmethod(functional.posterize)
    arguments = ("bits",)

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits


class RandomSolarize(RandomTransform):
    """Inverts the values that are not below `threshold`, with probability `p`."""

    function = staticmethod(functional.solarize)
    arguments = ("threshold",)

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold


class RandomAdjustSharpness(RandomTransform):
    """Changes the sharpness by a factor, with probability `p`."""

    function = staticmethod(functional.adjust_sharpness)
    arguments = ("sharpness_factor",)

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor


class GaussianBlur(Transform):
    """Blurs by a random amount: `sigma` in pixels, a number or bounds."""

    function = staticmethod(functional.gaussian_blur)
    arguments = ("kernel_size", "sigma")

    def __init__(
        self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)
    ) -> None:
        super().__init__()
        checked = _color.GaussianBlur(kernel_size, sigma)
        self.kernel_size = checked.kernel_size
        self.sigma = [float(value) for value in checked.sigma]

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The amount."""
        return {"sigma": [uniform(*self.sigma)] * 2}


class GaussianNoise(Transform):
    """Adds normal noise to tensors; see `functional.gaussian_noise`."""

    function = staticmethod(functional.gaussian_noise)
    arguments = ("mean", "sigma", "clip")

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> None:
        super().__init__()
        self.mean = mean
        self.sigma = sigma
        self.clip = clip


class RandomErasing(RandomTransform):
    """Overwrites a random rectangle with probability `p` (Z. Zhong et al., 2017).

    The arguments are the first version's. PIL images are served, too.
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0.0,
        inplace: bool = False,
    ) -> None:
        super().__init__(p)
        _color.RandomErasing(p, scale, ratio, value)  # which refuses what is wrong
        self.scale = scale
        self.ratio = ratio
        values = value if isinstance(value, list | tuple) else [value]
        self.value = None if isinstance(value, str) else [float(number) for number in values]
        self.inplace = inplace

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The rectangle and its values, or no place if none fits."""
        channels, height, width = channels_of(flat_inputs)
        if self.value is not None and len(self.value) not in (1, channels):
            raise ValueError(
                "If value is a sequence, it should have either a single value or "
                f"{channels} (number of inpt channels)"
            )
        for _, (h, w) in zip(
            range(ATTEMPTS), rectangle_sizes(height * width, self.scale, self.ratio)
        ):
            if h >= height or w >= width:
                continue
            if self.value is None:
                values: Tensor = empty([channels, h, w]).normal_()
            else:
                values = tensor(self.value)[:, None, None]
            top = integer(0, height - h + 1)
            return {"region": (top, integer(0, width - w + 1), h, w, values)}
        return {"region": None}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The leaf, with a rectangle erased."""
        if not functional.is_picture(inpt):
            warnings.warn(
                f"{type(self).__name__}() is currently passing through inputs of type "
                f"tv_tensors.{type(inpt).__name__}. This will likely change in the future.",
                stacklevel=level_outside(),
            )
        if params["region"] is None:
            return inpt
        return self.call(functional.erase, inpt, *params["region"], self.inplace)

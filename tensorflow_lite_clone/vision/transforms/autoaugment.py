"""Policies of augmentation: several random transforms of random strength."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.nn import Module
from tensorflow_lite_clone.ops.create.constructors import empty, tensor
from tensorflow_lite_clone.ops.create.progressions import arange, linspace
from tensorflow_lite_clone.ops.random.gamma import sample_dirichlet
from tensorflow_lite_clone.ops.random.sampling import randint
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.transforms import functional
from tensorflow_lite_clone.vision.transforms._draws import integer
from tensorflow_lite_clone.vision.transforms._interpolation import (
    InterpolationMode,
    interpolation_of,
)
from tensorflow_lite_clone.vision.transforms._policies import POLICIES, AutoAugmentPolicy

__all__ = ["AugMix", "AutoAugment", "AutoAugmentPolicy", "RandAugment", "TrivialAugmentWide"]

# What can be done: name -> (its strengths, weakest first, or None; whether either sign is meant).
Space = dict[str, tuple[list[float] | None, bool]]
WHITE = 255.0
BRIGHT = ("Brightness", "Color", "Contrast", "Sharpness")
COLOURS: dict[str, Callable[[Any, float], Any]] = {
    "Brightness": functional.adjust_brightness,
    "Color": functional.adjust_saturation,
    "Contrast": functional.adjust_contrast,
    "Sharpness": functional.adjust_sharpness,
}
PLAIN: dict[str, Callable[[Any], Any]] = {
    "AutoContrast": functional.autocontrast,
    "Equalize": functional.equalize,
    "Invert": functional.invert,
    "Identity": lambda img: img,
}


def apply(
    img: Any, name: str, strength: float, mode: InterpolationMode, fill: list[float] | None
) -> Any:
    """The picture after one step of a policy."""
    if name in PLAIN:
        return PLAIN[name](img)
    if name in COLOURS:
        return COLOURS[name](img, 1.0 + strength)
    if name == "Posterize":
        return functional.posterize(img, int(strength))
    if name == "Solarize":
        return functional.solarize(img, strength)
    if name == "Rotate":
        return functional.rotate(img, strength, mode, fill=fill)
    horizontal = name.endswith("X")
    if name.startswith("Translate"):
        move = [int(strength), 0] if horizontal else [0, int(strength)]
        return functional.affine(img, 0.0, move, 1.0, [0.0, 0.0], mode, fill)
    angle = math.degrees(math.atan(strength))
    shear = [angle, 0.0] if horizontal else [0.0, angle]
    # Pixels of the upper left corner stay: x' = x + strength * y.
    return functional.affine(img, 0.0, [0, 0], 1.0, shear, mode, fill, center=[0, 0])


def evenly(low: float, high: float, bins: int) -> list[float]:
    """Numbers from one to another."""
    return linspace(low, high, bins).tolist()


def bits_kept(most: int, fewer: int, bins: int) -> list[float]:
    """Numbers of bits, from `most` to `fewer` less."""
    return (most - (arange(bins) / ((bins - 1) / fewer)).round()).tolist()


def geometric(shear: float, across: float, down: float, angle: float, bins: int) -> Space:
    """Shears, moves and turns up to a largest strength in both directions."""
    largest = {"ShearX": shear, "ShearY": shear, "TranslateX": across, "TranslateY": down}
    return {
        name: (evenly(0.0, most, bins), True) for name, most in {**largest, "Rotate": angle}.items()
    }


def colours(most: float, bins: int) -> Space:
    """Changes of brightness, colour, contrast and sharpness."""
    return {name: (evenly(0.0, most, bins), True) for name in BRIGHT}


def tones(most: int, fewer: int, bins: int) -> Space:
    """Changes of the tonal curve."""
    return {
        "Posterize": (bits_kept(most, fewer, bins), False),
        "Solarize": (evenly(WHITE, 0.0, bins), False),
        "AutoContrast": (None, False),
        "Equalize": (None, False),
    }


class _Policy(Module):
    """What the policies share: how steps are drawn and applied."""

    repr_fields: tuple[str, ...] = ()

    def __init__(self, interpolation: Any, fill: Any) -> None:
        super().__init__()
        self.interpolation = interpolation_of(interpolation, names=True)
        self.fill = fill

    def fill_of(self, img: Any) -> list[float] | None:
        """The fill, one number for each channel of a tensor."""
        if isinstance(img, Tensor) and self.fill is not None:
            if isinstance(self.fill, int | float):
                return [float(self.fill)] * functional.get_image_num_channels(img)
            return [float(value) for value in self.fill]
        return self.fill

    def negative(self) -> bool:
        """Whether a strength of either sign is negative."""
        return bool(integer(0, 2))

    def augmented(self, img: Any) -> Any:
        """One picture after the policy."""
        raise NotImplementedError

    def forward(self, img: Any) -> Any:
        """The picture after the policy."""
        return self.augmented(img)

    def stepped(self, img: Any, name: str, strength: float) -> Any:
        """The picture after a step."""
        return apply(img, name, strength, self.interpolation, self.fill_of(img))

    def __repr__(self) -> str:
        fields = [f"{name}={getattr(self, name)}" for name in self.repr_fields]
        return f"{type(self).__name__}({', '.join(fields)})"


class AutoAugment(_Policy):
    """One of 25 policies found by search, each of two steps (E. D. Cubuk et al., CVPR 2019).

    PIL images, or uint8 tensors. `policy` says for which dataset; `fill` is the colour of what
    was outside.
    """

    repr_fields = ("policy", "fill")

    def __init__(
        self,
        policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: Any = InterpolationMode.NEAREST,
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation, fill)
        if policy not in POLICIES:
            raise ValueError(f"The provided policy {policy} is not recognized.")
        self.policy = policy

    @property
    def policies(self) -> list:
        """The policies: a pair of steps each, (name, probability, strength)."""
        return POLICIES[self.policy]

    @staticmethod
    def get_params(transform_num: int) -> tuple[int, Tensor, Tensor]:
        """A random policy, and for each of its steps a number in [0, 1) and a sign."""
        return integer(0, transform_num), empty(2).uniform_(), randint(2, (2,))

    def space(self, img: Any) -> Space:
        """What can be done with a picture."""
        _, height, width = functional.get_dimensions(img)
        return {
            **geometric(0.3, 150.0 / 331.0 * width, 150.0 / 331.0 * height, 30.0, 10),
            **colours(0.9, 10),
            **tones(8, 4, 10),
            "Invert": (None, False),
        }

    def augmented(self, img: Any) -> Any:
        """The picture after one of the policies."""
        number, chances, signs = self.get_params(len(self.policies))
        space = self.space(img)
        for index, (name, p, level) in enumerate(self.policies[number]):
            if chances[index] > p:
                continue
            strengths, signed = space[name]
            strength = strengths[level] if strengths and level is not None else 0.0
            if signed and not signs[index]:
                strength = -strength
            img = self.stepped(img, name, strength)
        return img


class _Drawn(_Policy):
    """Policies that draw what is done from all that can be done."""

    def draw(self, img: Any, space: Space, level: Callable[[], int]) -> Any:
        """The picture after a random step; `level` gives its strength's number in the list."""
        name = list(space)[integer(0, len(space))]
        strengths, signed = space[name]
        strength = strengths[level()] if strengths else 0.0
        if signed and self.negative():
            strength = -strength
        return self.stepped(img, name, strength)


class RandAugment(_Drawn):
    """`num_ops` random steps, all of one strength (E. D. Cubuk et al., 2019).

    The strength is `magnitude` of `num_magnitude_bins`. PIL images, or uint8 tensors.
    """

    repr_fields = ("num_ops", "magnitude", "num_magnitude_bins", "interpolation", "fill")

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Any = InterpolationMode.NEAREST,
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation, fill)
        self.num_ops = num_ops
        self.magnitude = magnitude
        self.num_magnitude_bins = num_magnitude_bins

    def augmented(self, img: Any) -> Any:
        """The picture after the steps."""
        bins = self.num_magnitude_bins
        _, height, width = functional.get_dimensions(img)
        space: Space = {
            "Identity": (None, False),
            **geometric(0.3, 150.0 / 331.0 * width, 150.0 / 331.0 * height, 30.0, bins),
            **colours(0.9, bins),
            **tones(8, 4, bins),
        }
        for _ in range(self.num_ops):
            img = self.draw(img, space, lambda: self.magnitude)
        return img


class TrivialAugmentWide(_Drawn):
    """One random step of random strength (S. G. Mueller and F. Hutter, ICCV 2021).

    PIL images, or uint8 tensors.
    """

    repr_fields = ("num_magnitude_bins", "interpolation", "fill")

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: Any = InterpolationMode.NEAREST,
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation, fill)
        self.num_magnitude_bins = num_magnitude_bins

    def augmented(self, img: Any) -> Any:
        """The picture after the step."""
        bins = self.num_magnitude_bins
        space: Space = {
            "Identity": (None, False),
            **geometric(0.99, 32.0, 32.0, 135.0, bins),
            **colours(0.99, bins),
            **tones(8, 6, bins),
        }
        return self.draw(img, space, lambda: integer(0, bins))


class AugMix(_Drawn):
    """The picture mixed with others that went through random steps (D. Hendrycks et al., 2020).

    Args:
        severity: the largest strength of a step, 1 to 10.
        mixture_width: how many others.
        chain_depth: the steps of each; -1 draws 1 to 3.
        alpha: the concentration of the weights.
        all_ops: with changes of brightness, contrast, colour and sharpness, which the paper
            leaves out as its tests have them.

    PIL images, or uint8 tensors (..., C, H, W).
    """

    repr_fields = (
        "severity",
        "mixture_width",
        "chain_depth",
        "alpha",
        "all_ops",
        "interpolation",
        "fill",
    )
    parameter_max = 10

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: Any = InterpolationMode.BILINEAR,
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation, fill)
        if not 1 <= severity <= self.parameter_max:
            raise ValueError(
                f"The severity must be between [1, {self.parameter_max}]. Got {severity} instead."
            )
        self.severity = severity
        self.mixture_width = mixture_width
        self.chain_depth = chain_depth
        self.alpha = alpha
        self.all_ops = all_ops

    def augmented(self, orig_img: Any) -> Any:
        """The mixture."""
        if not isinstance(orig_img, Tensor):
            mixed = self.augmented(functional.pil_to_tensor(orig_img))
            return functional.to_pil_image(mixed, orig_img.mode)
        height, width = orig_img.shape[-2:]
        bins = self.parameter_max
        space = {
            **geometric(0.3, width / 3.0, height / 3.0, 30.0, bins),
            **tones(4, 4, bins),
            **(colours(0.9, bins) if self.all_ops else {}),
        }
        batch = orig_img[(None,) * max(4 - orig_img.ndim, 0)]
        own, others = (part.to(batch.device) for part in self.weights(len(batch)))
        mix = own * batch
        for number in range(self.mixture_width):
            picture = batch
            depth = self.chain_depth if self.chain_depth > 0 else integer(1, 4)
            for _ in range(depth):
                picture = self.draw(picture, space, lambda: integer(0, self.severity))
            mix = mix + others[:, number].reshape(-1, 1, 1, 1) * picture
        return mix.reshape(orig_img.shape).to(orig_img.dtype)

    def weights(self, n: int) -> tuple[Tensor, Tensor]:
        """Random weights of N pictures (N, 1, 1, 1) and of those mixed with them (N, width)."""
        params, mixed = (
            self.simplex_points([self.alpha] * count, n) for count in (2, self.mixture_width)
        )
        return params[:, 0].reshape(-1, 1, 1, 1), mixed * params[:, 1:]

    @staticmethod
    def simplex_points(concentration: Sequence[float], n: int) -> Tensor:
        """N draws of weights whose sum is 1."""
        alphas = tensor(concentration, dtype=float32).expand(n, -1).contiguous()
        return sample_dirichlet(alphas)

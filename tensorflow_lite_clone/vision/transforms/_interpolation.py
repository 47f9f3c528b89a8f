"""How pixels between pixels are found."""

from __future__ import annotations

from enum import Enum
from typing import Any


class InterpolationMode(Enum):
    """Ways to interpolate; BOX, HAMMING and LANCZOS are for PIL images only."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


# Pillow's numbers of the modes, which older scripts pass.
PIL_NUMBERS = {
    InterpolationMode.NEAREST: 0,
    InterpolationMode.LANCZOS: 1,
    InterpolationMode.BILINEAR: 2,
    InterpolationMode.BICUBIC: 3,
    InterpolationMode.BOX: 4,
    InterpolationMode.HAMMING: 5,
}
MODES = {number: mode for mode, number in PIL_NUMBERS.items()}


def interpolation_of(value: Any, names: bool = False) -> InterpolationMode:
    """The mode that is meant by a mode or by Pillow's number, with `names` by its name too."""
    if isinstance(value, InterpolationMode):
        return value
    if isinstance(value, int) and int(value) in MODES:
        return MODES[int(value)]
    if names and isinstance(value, str):
        return InterpolationMode(value)
    raise TypeError(
        "Argument interpolation should be a InterpolationMode or a corresponding Pillow integer "
        f"constant, got {value!r}"
    )


def pil_resampling(mode: InterpolationMode) -> int:
    """Pillow's number of a mode; nearest pixels are exact there."""
    return 0 if mode is InterpolationMode.NEAREST_EXACT else PIL_NUMBERS[mode]

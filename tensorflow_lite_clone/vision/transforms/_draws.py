"""Random numbers of transforms, and the reading of their arguments."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.ops.create.constructors import empty, tensor
from tensorflow_lite_clone.ops.random.sampling import randint

ATTEMPTS = 10  # to find a rectangle that fits


def uniform(low: float, high: float) -> float:
    """A number between two others."""
    return empty(1).uniform_(low, high).item()


def integer(low: int, high: int) -> int:
    """An integer from `low` to below `high`."""
    return int(randint(low, high, (1,)))


def chance(p: float) -> bool:
    """True with probability `p`."""
    return bool(empty(1).uniform_() < p)


def rectangle_sizes(area: float, scale: Sequence[float], ratio: Sequence[float]) -> Any:
    """Endless draws of (a, b), two sides whose product is a part of the area.

    The part is uniform, and so is the logarithm of the quotient a / b.
    """
    log_ratio = tensor(list(ratio)).log().tolist()
    while True:
        part = area * uniform(scale[0], scale[1])
        quotient = empty(1).uniform_(*log_ratio).exp().item()
        yield round(math.sqrt(part * quotient)), round(math.sqrt(part / quotient))


def pair_of(size: Any, message: str) -> Any:
    """Two sizes, from a number or a sequence of one or two."""
    if isinstance(size, numbers.Number):
        return int(size), int(size)  # type: ignore[call-overload]
    if isinstance(size, Sequence) and len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError(message)
    return size


CROP_SIZE = "Please provide only two dimensions (h, w) for size."


def expect_length(value: Any, name: str, lengths: Sequence[int]) -> None:
    """TypeError or ValueError for what is no sequence of one of the lengths."""
    expected = " or ".join(map(str, lengths))
    if not isinstance(value, Sequence):
        raise TypeError(f"{name} should be a sequence of length {expected}.")
    if len(value) not in lengths:
        raise ValueError(f"{name} should be a sequence of length {expected}.")


def angles_of(value: Any, name: str, lengths: Sequence[int] = (2,)) -> list[float]:
    """Bounds of angles, from a sequence or from the largest of both signs."""
    if isinstance(value, numbers.Number):
        if value < 0:  # type: ignore[operator]
            raise ValueError(f"If {name} is a single number, it must be positive.")
        value = [-value, value]  # type: ignore[operator]
    expect_length(value, name, lengths)
    return [float(angle) for angle in value]

"""What parameters distributions have on every device: PyTorch's errors for others.

They raise RuntimeError for numbers outside the domain, NotImplementedError for dtypes that PyTorch
does not draw either.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.random_state import LARGEST, describe, unsupported
from tensorflow_lite_clone.core.dtypes import DType


def check_positive(function: str, name: str, value: float) -> None:
    """A scale or a rate."""
    if not value > 0:
        raise RuntimeError(f"{function} expects {name} > 0.0, but found {name}={value:g}")


def check_deviation(std: float) -> None:
    """The standard deviation of normal numbers."""
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def check_success(p: float) -> None:
    """The probability of success in trials that are repeated until then."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")


def check_probability(p: float) -> None:
    """The probability of an event."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")


def continuous(distribution: str, dtype: Any) -> np.dtype:
    """The floating dtype of a continuous distribution."""
    dtype, info = describe(dtype)
    if not info.is_floating_point:
        raise RuntimeError(
            f"{distribution} distribution is a continuous probability distribution. "
            f"dtype must be a floating point but you specified {info.short_name}"
        )
    return dtype


def check_uniform_bounds(low: float, high: float, info: DType) -> None:
    """The bounds of a uniform distribution over a floating dtype."""
    if not info.is_floating_point:
        raise unsupported("check_uniform_bounds", info)
    largest = LARGEST[info.name]
    for name, bound in (("from", low), ("to", high)):
        if not -largest <= bound <= largest:
            raise RuntimeError(f"{name} is out of bounds for {info!r}: {bound:g}")
    if not low <= high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    if high - low > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= {largest:g}, the largest {info!r}, "
            f"but found to={high:g} and from={low:g}"
        )


def check_multinomial(probabilities: Any, num_samples: int, replacement: bool, info: DType) -> None:
    """Shape and dtype of weights, of which `num_samples` are to be drawn."""
    if probabilities.ndim not in (1, 2):
        raise RuntimeError(f"prob_dist must be 1 or 2 dim, but has {probabilities.ndim}")
    if not info.is_floating_point:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {info.short_name}"
        )
    if num_samples <= 0:
        raise RuntimeError(f"cannot sample n_sample <= 0 samples, but got {num_samples}")
    categories = probabilities.shape[-1]
    if not replacement and num_samples > categories:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement: "
            f"{num_samples} > {categories}"
        )
    if categories > 1 << 24:
        raise RuntimeError(f"number of categories cannot exceed 2^24, but got {categories}")

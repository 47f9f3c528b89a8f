"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.distributions._half import Half
from tensorflow_lite_clone.distributions.normal import Normal
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """The distribution of abs(x), where x is normal of mean 0 and deviation `scale`.

    Source: N. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions 1, ch. 13.
    """

    _batched = ()

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)

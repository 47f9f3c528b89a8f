"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.normal import Normal
from tensorflow_lite_clone.distributions.transformed_distribution import TransformedDistribution
from tensorflow_lite_clone.distributions.transforms import AbsTransform
from tensorflow_lite_clone.ops.choice import where
from tensorflow_lite_clone.ops.create import zeros_like
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["HalfNormal"]


class HalfNormal(TransformedDistribution):
    """The distribution of abs(x), where x is normal of mean 0 and deviation `scale`.

    Source: N. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions 1, ch. 13.
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Normal

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> HalfNormal:
        return super().expand(batch_shape, self._get_checked_instance(HalfNormal, _instance))

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the normal distribution."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)

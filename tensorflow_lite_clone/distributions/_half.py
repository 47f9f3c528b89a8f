"""What distributions of absolute values share."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.transformed_distribution import TransformedDistribution
from tensorflow_lite_clone.distributions.transforms import AbsTransform
from tensorflow_lite_clone.ops.create.constructors import zeros_like
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.tensor import Tensor


class Half(TransformedDistribution):
    """The distribution of abs(x), where the density of x falls symmetrically on both sides of 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Any

    def __init__(self, base: Distribution, validate_args: bool | None) -> None:
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of x."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self._log_density(value)

    def _log_density(self, value: Tensor) -> Tensor:
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)

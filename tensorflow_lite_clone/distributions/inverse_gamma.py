"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.gamma import Gamma
from tensorflow_lite_clone.distributions.transformed_distribution import TransformedDistribution
from tensorflow_lite_clone.distributions.transforms import PowerTransform
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The distribution of 1 / x, where x is Gamma(concentration, rate).

    The mean is infinite for concentration <= 1, the variance for concentration <= 2.

    Source: N. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions 1, ch. 17.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma
    _batched = ()

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        inverse = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, inverse, validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The gamma distribution's shape."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The gamma distribution's inverse scale, the scale here."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()

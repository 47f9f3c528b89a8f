"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.utils import broadcast_all
from tensorflow_lite_clone.ops.create.constructors import ones_like, zeros_like
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Survival function (1 + k z)^(-1/k), where z = (x - loc) / scale and k = concentration.

    For k = 0 it is exp(-z). The support ends at loc - scale / k if k is negative. The mean is NaN
    for k >= 1, the variance for k >= 1/2.

    Source: S. Coles, An Introduction to Statistical Modeling of Extreme Values, 2001, ch. 4.
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    _batched = ("loc", "scale", "concentration")

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(self.loc.new_empty(self._extended_shape(sample_shape)).uniform_())

    def _split(self) -> tuple[Tensor, Tensor]:
        """Where k is zero, and k with ones there, to divide by."""
        k = self.concentration
        zero = k.isclose(zeros_like(k))
        return zero, where(zero, ones_like(k), k)

    def _z(self, x: Tensor) -> Tensor:
        """`x` in units of `scale` from `loc`."""
        return (x - self.loc) / self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        z = self._z(value)
        zero, k = self._split()
        return where(zero, -z, -(1 / k + 1) * (k * z).log1p()) - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of events above `value`."""
        self._check_value(value)
        z = self._z(value)
        zero, k = self._split()
        return where(zero, -z, -(k * z).log1p() / k)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of the cdf."""
        return (-self.log_survival_function(value).expm1()).log()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        zero, k = self._split()
        logs = (-value).log1p()
        return self.loc + self.scale * where(zero, -logs, (-k * logs).expm1() / k)

    @property
    def mean(self) -> Tensor:
        k = self.concentration
        return where(k < 1, self.loc + self.scale / (1 - k), math.nan)

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        finite = self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k))
        return where(k < 0.5, finite, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        """[loc, loc - scale / k], or without an upper end."""
        k = self.concentration
        upper = where(k < 0, self.loc - self.scale / k, math.inf)
        return constraints.interval(self.loc, upper)

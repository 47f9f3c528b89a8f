"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.exponential import Exponential
from tensorflow_lite_clone.distributions.transformed_distribution import TransformedDistribution
from tensorflow_lite_clone.distributions.transforms import AffineTransform, PowerTransform
from tensorflow_lite_clone.distributions.utils import broadcast_all, euler_constant
from tensorflow_lite_clone.ops.create.constructors import ones_like
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution: cdf 1 - exp(-(x / scale)^concentration).

    Source: N. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions 1, ch. 21.
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _batched = ("scale", "concentration", "concentration_reciprocal")

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self) -> Tensor:
        base = (self.concentration - 1) / self.concentration
        return self.scale * base**self.concentration_reciprocal

    @property
    def variance(self) -> Tensor:
        second = (1 + 2 * self.concentration_reciprocal).lgamma().exp()
        first = (1 + self.concentration_reciprocal).lgamma()
        return self.scale.pow(2) * (second - (2 * first).exp())

    def entropy(self) -> Tensor:
        shape = euler_constant * (1 - self.concentration_reciprocal)
        return shape + (self.scale * self.concentration_reciprocal).log() + 1

"""The log-normal distribution."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.normal import Normal
from tensorflow_lite_clone.distributions.transformed_distribution import TransformedDistribution
from tensorflow_lite_clone.distributions.transforms import ExpTransform
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """The distribution of exp(x), where x is normal of mean `loc` and deviation `scale`.

    Source: N. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions 1, ch. 14.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Normal
    _batched = ()

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        squares = self.scale.pow(2)
        return squares.expm1() * (2 * self.loc + squares).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc

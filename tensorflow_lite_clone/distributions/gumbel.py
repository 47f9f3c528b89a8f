"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.core.limits import finfo
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.transformed_distribution import TransformedDistribution
from tensorflow_lite_clone.distributions.transforms import AffineTransform, ExpTransform
from tensorflow_lite_clone.distributions.uniform import Uniform
from tensorflow_lite_clone.distributions.utils import broadcast_all, euler_constant, is_number
from tensorflow_lite_clone.ops.create import full_like, ones_like
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution of mode `loc`: cdf exp(-exp((loc - x) / scale)).

    Source: N. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions 2, ch. 22.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = finfo(self.loc.dtype)
        if is_number(loc) and is_number(scale):
            base = Uniform(limits.tiny, 1 - limits.eps, validate_args=validate_args)
        else:
            base = Uniform(
                full_like(self.loc, limits.tiny),
                full_like(self.loc, 1 - limits.eps),
                validate_args=validate_args,
            )
        transforms = [
            ExpTransform().inv,
            AffineTransform(0, -ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(self.loc, -self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Gumbel:
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc = self.loc.expand(batch_shape)
        new.scale = self.scale.expand(batch_shape)
        return super().expand(batch_shape, new)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)

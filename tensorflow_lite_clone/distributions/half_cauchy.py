"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.cauchy import Cauchy
from tensorflow_lite_clone.distributions.transformed_distribution import TransformedDistribution
from tensorflow_lite_clone.distributions.transforms import AbsTransform
from tensorflow_lite_clone.ops.choice import where
from tensorflow_lite_clone.ops.create import as_tensor, full, zeros_like
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """The distribution of abs(x), where x is Cauchy of median 0 and half width `scale`."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Cauchy

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> HalfCauchy:
        return super().expand(batch_shape, self._get_checked_instance(HalfCauchy, _instance))

    @property
    def scale(self) -> Tensor:
        """The half width of the Cauchy distribution."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        scale = self.scale
        return full(self._extended_shape(), math.inf, dtype=scale.dtype, device=scale.device)

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Any) -> Tensor:
        """As of other distributions; without validation, `value` may be a number."""
        if self._validate_args:
            self._validate_sample(value)
        value = as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)

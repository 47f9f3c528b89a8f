"""The Fisher-Snedecor distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.core.limits import finfo
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.gamma import Gamma
from tensorflow_lite_clone.distributions.utils import broadcast_all
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The F distribution: the ratio of two chi-squared variables, each divided by its degrees of
    freedom `df1` and `df2`.

    The mean is NaN for df2 <= 2, the variance for df2 <= 4, the mode for df1 <= 2.

    Source: N. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions 2, ch. 27.
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batched = ("df1", "df2", "_gamma1", "_gamma2")

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df2 <= 2, math.nan, self.df2 / (self.df2 - 2))

    @property
    def mode(self) -> Tensor:
        inside = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return where(self.df1 <= 2, math.nan, inside)

    @property
    def variance(self) -> Tensor:
        df1, df2 = self.df1, self.df2
        finite = 2 * df2.pow(2) * (df1 + df2 - 2) / (df1 * (df2 - 2).pow(2) * (df2 - 4))
        return where(df2 <= 4, math.nan, finite)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        tiny = finfo(self.df1.dtype).tiny
        numerator = self._gamma1.rsample(sample_shape)
        denominator = self._gamma2.rsample(sample_shape).clamp(min=tiny)
        return (numerator / denominator).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
        power = a * ratio.log() + (a - 1) * value.log()
        return power - (a + b) * (ratio * value).log1p() - log_beta

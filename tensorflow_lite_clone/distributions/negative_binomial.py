"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions._probabilities import OfOdds, OfProbabilities
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.gamma import Gamma
from tensorflow_lite_clone.distributions.utils import (
    lazy_property,
)
from tensorflow_lite_clone.ops.nn.activation_smooth import logsigmoid
from tensorflow_lite_clone.ops.random.sampling import poisson
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["NegativeBinomial"]


class NegativeBinomial(OfOdds, OfProbabilities, Distribution):
    """The number of successes, of the probabilities `probs` or of the log odds `logits`, before
    `total_count` failures.

    ValueError unless exactly one of the two is given.

    Source: N. Johnson, A. Kemp, S. Kotz, Univariate Discrete Distributions, ch. 5; samples are
    Poisson numbers of gamma distributed rates.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _batched = ("total_count", "probs", "logits")

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        total_count, param = self._take(probs, logits, total_count)
        self.total_count = total_count.type_as(param)
        super().__init__(param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    @lazy_property
    def _gamma(self) -> Gamma:
        # A count of 0 is allowed here, and makes a rate of 0.
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n = self.total_count
        log_power = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        log_choose = (n + value).lgamma() - (1.0 + value).lgamma() - n.lgamma()
        return log_power + log_choose.masked_fill(n + value == 0, 0.0)

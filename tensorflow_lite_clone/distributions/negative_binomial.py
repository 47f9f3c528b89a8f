"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions._odds import OfOdds
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.gamma import Gamma
from tensorflow_lite_clone.distributions.utils import (
    broadcast_all,
    check_one_given,
    is_number,
    lazy_property,
)
from tensorflow_lite_clone.ops.activation_smooth import logsigmoid
from tensorflow_lite_clone.ops.random import poisson
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["NegativeBinomial"]


class NegativeBinomial(OfOdds, Distribution):
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

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        check_one_given(probs, logits)
        parameter = logits if probs is None else probs
        total_count, self._param = broadcast_all(total_count, parameter)
        self.total_count = total_count.type_as(self._param)
        if probs is None:
            self.logits = self._param
        else:
            self.probs = self._param
        shape = Size() if is_number(parameter) else self._param.shape
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> NegativeBinomial:
        names = "total_count", "probs", "logits", "_param"
        return self._expanded(NegativeBinomial, batch_shape, _instance, *names)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._param.shape

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
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        log_power = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        log_choose = (n + value).lgamma() - (1.0 + value).lgamma() - n.lgamma()
        return log_power + log_choose.masked_fill(n + value == 0, 0.0)

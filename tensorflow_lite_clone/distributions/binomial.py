"""The binomial distribution."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions._probabilities import OfOdds, OfProbabilities
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.random.gamma import binomial
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Binomial"]


def _positive_part(x: Tensor) -> Tensor:
    """x.clamp(min=0), with the gradient 1/2 at 0."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(OfOdds, OfProbabilities, Distribution):
    """The number of successes in `total_count` trials, of the probabilities `probs` or of the log
    odds `logits`.

    ValueError unless exactly one of the two is given.

    Source: N. Johnson, A. Kemp, S. Kotz, Univariate Discrete Distributions, ch. 3.
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _batched = ("total_count", "probs", "logits")

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        total_count, param = self._take(probs, logits, total_count)
        self.total_count = total_count.type_as(param)
        super().__init__(param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        """The integers from 0 to `total_count`."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n = self.total_count
        log_choose = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        # log(1 + exp(logits)) without overflow
        softplus = _positive_part(self.logits) + (-self.logits.abs()).exp().log1p()
        return value * self.logits + log_choose - n * softplus

    def _single_count(self, function: str) -> int:
        """`total_count` if all its elements are equal, NotImplementedError otherwise."""
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{function}`.")
        return count

    def entropy(self) -> Tensor:
        self._single_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._single_count("enumerate_support")
        values = arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        return self._along_first(values, expand)

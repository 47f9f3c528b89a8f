"""The relaxed Bernoulli (binary concrete) distribution."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions._probabilities import OfOdds, OfProbabilities
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.transformed_distribution import TransformedDistribution
from tensorflow_lite_clone.distributions.transforms import SigmoidTransform
from tensorflow_lite_clone.distributions.utils import (
    broadcast_all,
    clamp_probs,
)
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(OfOdds, OfProbabilities, Distribution):
    """The logit of a `RelaxedBernoulli` number: (logits + logistic noise) / temperature.

    Source: C. Maddison, A. Mnih, Y. W. Teh, "The concrete distribution", 2017, appendix B.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _batched = ("probs", "logits")
    _unbatched = ("temperature",)

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        (param,) = self._take(probs, logits)
        super().__init__(param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(probs.new_empty(shape).uniform_())
        noise = u.log() - (-u).log1p()
        return (noise + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value.mul(self.temperature)
        return self.temperature.log() + diff - 2 * diff.exp().log1p()


class Relaxed(TransformedDistribution):
    """A distribution with samples like those of events, but with gradients."""

    base_dist: Any

    @property
    def temperature(self) -> Tensor:
        """The temperature; samples for small ones come close to the events."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """Log odds of two events, log probabilities of many."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities of the events."""
        return self.base_dist.probs


class RelaxedBernoulli(Relaxed):
    """Numbers of (0, 1) that come close to Bernoulli's for small temperatures, with gradients.

    `temperature` is a tensor. Sources: Maddison et al. (see `LogitRelaxedBernoulli`); E. Jang,
    S. Gu, B. Poole, "Categorical reparameterization with Gumbel-softmax", 2017.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _batched = ()

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

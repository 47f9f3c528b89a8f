"""The relaxed categorical (concrete) distribution."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.categorical import Categorical
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.transformed_distribution import TransformedDistribution
from tensorflow_lite_clone.distributions.transforms import ExpTransform
from tensorflow_lite_clone.distributions.utils import broadcast_all, clamp_probs
from tensorflow_lite_clone.ops.create import full_like
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a `RelaxedOneHotCategorical` point.

    Source: C. Maddison, A. Mnih, Y. W. Teh, "The concrete distribution", 2017, appendix C.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # the part of it whose exponentials sum to one
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        batch, event = self._categorical.batch_shape, self._categorical.param_shape[-1:]
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> ExpRelaxedCategorical:
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)
        return self._expanded(ExpRelaxedCategorical, batch_shape, new)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        """An empty tensor like the parameter's."""
        return self._categorical._new(*args, **kwargs)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        """The log probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(self.logits.new_empty(shape).uniform_())
        gumbels = -((-(u.log())).log())
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        count = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        counts = full_like(self.temperature, float(count))
        log_scale = counts.lgamma() + self.temperature.log() * (count - 1)
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + log_scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points of the simplex, near its corners for small temperatures, with gradients.

    `temperature` is a tensor. Sources: Maddison et al. (see `ExpRelaxedCategorical`); E. Jang,
    S. Gu, B. Poole, "Categorical reparameterization with Gumbel-softmax", 2017.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    base_dist: ExpRelaxedCategorical

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> RelaxedOneHotCategorical:
        new = self._get_checked_instance(RelaxedOneHotCategorical, _instance)
        return super().expand(batch_shape, new)

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs

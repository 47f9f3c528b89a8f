"""The relaxed categorical (concrete) distribution."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.categorical import OverCategories
from tensorflow_lite_clone.distributions.relaxed_bernoulli import Relaxed
from tensorflow_lite_clone.distributions.transforms import ExpTransform
from tensorflow_lite_clone.distributions.utils import broadcast_all, clamp_probs
from tensorflow_lite_clone.ops.create.constructors import full_like
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OverCategories):
    """The logarithm of a `RelaxedOneHotCategorical` point.

    Source: C. Maddison, A. Mnih, Y. W. Teh, "The concrete distribution", 2017, appendix C.
    """

    support = constraints.real_vector  # the part of it whose exponentials sum to one
    has_rsample = True
    _batched = ("_categorical",)
    _unbatched = ("temperature",)

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(self.logits.new_empty(shape).uniform_())
        gumbels = -((-(u.log())).log())
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        count = self.event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        counts = full_like(self.temperature, float(count))
        log_scale = counts.lgamma() + self.temperature.log() * (count - 1)
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + log_scale


class RelaxedOneHotCategorical(Relaxed):
    """Points of the simplex, near its corners for small temperatures, with gradients.

    `temperature` is a tensor. Sources: Maddison et al. (see `ExpRelaxedCategorical`); E. Jang,
    S. Gu, B. Poole, "Categorical reparameterization with Gumbel-softmax", 2017.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    _batched = ()

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

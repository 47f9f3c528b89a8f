"""The Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions._probabilities import OfOdds, OfProbabilities
from tensorflow_lite_clone.distributions.exp_family import ExponentialFamily
from tensorflow_lite_clone.distributions.utils import (
    broadcast_all,
)
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.nn.loss_elementwise import binary_cross_entropy_with_logits
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.ops.random.sampling import bernoulli
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Bernoulli"]


class Bernoulli(OfOdds, OfProbabilities, ExponentialFamily):
    """One with the probability `probs` (or of the log odds `logits`), else zero."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _batched = ("probs", "logits")

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (param,) = self._take(probs, logits)
        super().__init__(param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        """NaN where both events are equally likely."""
        likelier = (self.probs >= 0.5).to(self.probs)
        return where(self.probs == 0.5, math.nan, likelier)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return bernoulli(self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(2, dtype=self._param.dtype, device=self._param.device)
        return self._along_first(values, expand)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.probs.logit(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.exp().log1p()

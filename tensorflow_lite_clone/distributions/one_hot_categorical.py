"""Categorical distributions over one-hot vectors."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.categorical import OverCategories
from tensorflow_lite_clone.ops.create.constructors import eye
from tensorflow_lite_clone.ops.nn.embedding import one_hot
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(OverCategories):
    """One-hot vectors of K, with the probabilities of `Categorical`."""

    support = constraints.one_hot
    has_enumerate_support = True
    _batched = ("_categorical",)

    @property
    def _param(self) -> Tensor:
        """The parameter that was given."""
        return self._categorical._param

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return one_hot(self.probs.argmax(dim=-1), self.event_shape[0]).to(self.probs)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        indices = self._categorical.sample(sample_shape)
        return one_hot(indices, self.event_shape[0]).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = eye(self.event_shape[0], dtype=self._param.dtype, device=self._param.device)
        return self._along_first(values, expand)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose samples have the gradient of their probabilities.

    Source: Y. Bengio, N. Leonard, A. Courville, "Estimating or propagating gradients through
    stochastic neurons for conditional computation", 2013.
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())

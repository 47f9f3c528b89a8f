"""The categorical distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.limits import finfo
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions._probabilities import OfProbabilities, check_one_given
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.utils import (
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)
from tensorflow_lite_clone.ops.create.constructors import full
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.random.sampling import multinomial
from tensorflow_lite_clone.ops.shape.views import broadcast_tensors
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Categorical"]


class Categorical(OfProbabilities, Distribution):
    """Indices 0, ..., K-1 with the probabilities in the last dimension of `probs` or `logits`.

    Both are normalized: `probs` to the sum one, `logits` to log probabilities. ValueError if a
    parameter has no dimension.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _batched = ("probs", "logits")

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        check_one_given(probs, logits)
        given, name = (logits, "logits") if probs is None else (probs, "probs")
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is None:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        else:
            self.probs = probs / probs.sum(-1, keepdim=True)
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    @property
    def _num_events(self) -> int:
        return self._param.shape[-1]

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        """0, ..., K-1"""
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self):
        """The log probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self):
        """The probabilities."""
        return logits_to_probs(self.logits)

    def _undefined(self) -> Tensor:
        """NaN, of the batch's shape."""
        probs = self.probs
        return full(self._extended_shape(), math.nan, dtype=probs.dtype, device=probs.device)

    @property
    def mean(self) -> Tensor:
        return self._undefined()

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return self._undefined()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            samples = multinomial(rows, sample_shape.numel(), True).T
        return samples.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        index, logs = broadcast_tensors(value.to(dtypes.int64).unsqueeze(-1), self.logits)
        return logs.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)  # 0 * -inf is 0 here
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self._num_events, dtype=dtypes.int64, device=self._param.device)
        return self._along_first(values, expand)


class OverCategories(Distribution):
    """A distribution over vectors: a number for each event of a `Categorical`, which it holds."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _categorical: Categorical

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        batch, event = self._categorical.batch_shape, self._categorical.param_shape[-1:]
        super().__init__(batch, event, validate_args=validate_args)

    @property
    def logits(self) -> Tensor:
        """The log probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

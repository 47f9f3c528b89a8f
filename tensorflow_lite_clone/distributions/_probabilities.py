"""What distributions that are given `probs` or `logits` share."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)
from tensorflow_lite_clone.tensor import Tensor


def check_one_given(probs: Any, logits: Any) -> None:
    """ValueError unless exactly one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class OfProbabilities:
    """A distribution that was given `probs` or `logits`, which have one shape and dtype."""

    @property
    def _param(self: Any) -> Tensor:
        """One of the two that is there already."""
        return self.probs if "probs" in vars(self) else self.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.shape


class OfOdds:
    """A distribution of two events, given `probs` or log odds `logits`; each follows from the
    other."""

    def _take(self, probs: Any, logits: Any, *others: Any) -> tuple[Tensor, ...]:
        """Keep the one that is given; returns `others` and it, broadcast with each other.

        ValueError unless exactly one is given.
        """
        check_one_given(probs, logits)
        name, given = ("logits", logits) if probs is None else ("probs", probs)
        values = broadcast_all(*others, given)
        setattr(self, name, values[-1])
        return values

    @lazy_property
    def logits(self: Any) -> Any:
        """The log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self: Any) -> Any:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

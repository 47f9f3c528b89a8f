"""What distributions of two events share: probabilities and log odds, each from the other."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributions.utils import (
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


class OfOdds:
    """A distribution that was given `probs` or `logits`; the other follows when asked for."""

    @lazy_property
    def logits(self: Any) -> Any:
        """The log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self: Any) -> Any:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

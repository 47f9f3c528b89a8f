"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions._probabilities import OfOdds, OfProbabilities
from tensorflow_lite_clone.distributions.exp_family import ExponentialFamily
from tensorflow_lite_clone.distributions.utils import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
)
from tensorflow_lite_clone.ops.create.constructors import ones_like, zeros_like
from tensorflow_lite_clone.ops.nn.loss_elementwise import binary_cross_entropy_with_logits
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(OfOdds, OfProbabilities, ExponentialFamily):
    """Numbers of [0, 1] of density C(p) p^x (1 - p)^(1 - x), p = `probs` or sigmoid(`logits`).

    Between the two limits `lims`, where the formulas divide zero by zero, Taylor series about
    p = 1/2 take their place.

    Source: G. Loaiza-Ganem, J. Cunningham, "The continuous Bernoulli: fixing a pervasive error
    in variational autoencoders", 2019.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = ("probs", "logits")
    _unbatched = ("_lims",)

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        (param,) = self._take(probs, logits)
        if probs is not None:
            # Before the values are clamped, and in either case, as PyTorch does.
            valid = self.arg_constraints["probs"].check(param)
            if validate_args is not None and not valid.all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(param)
        self._lims = lims
        super().__init__(param.shape, validate_args=validate_args)

    def _outside_unstable_region(self) -> Tensor:
        """Where the formulas hold."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        """The probabilities, and elsewhere a limit, at which the formulas have finite values."""
        limit = self._lims[0] * ones_like(self.probs)
        return where(self._outside_unstable_region(), self.probs, limit)

    def _cont_bern_log_norm(self) -> Tensor:
        """log C(p) = log(2 atanh(1 - 2p) / (1 - 2p))."""
        p = self._cut_probs()
        half = 0.5 * ones_like(p)
        # Each branch gets arguments at which it is finite, or its gradient would be NaN.
        below, above = where(p <= 0.5, p, 0 * p), where(p >= 0.5, p, ones_like(p))
        ratio = where(p <= 0.5, (-2 * below).log1p(), (2 * above - 1).log())
        exact = ((-p).log1p() - p.log()).abs().log() - ratio
        x = (self.probs - half) ** 2
        series = math.log(2) + (4 / 3 + 104 / 45 * x) * x
        return where(self._outside_unstable_region(), exact, series)

    @property
    def mean(self) -> Tensor:
        p = self._cut_probs()
        exact = p / (2 * p - 1) + 1 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        series = 0.5 + (1 / 3 + 16 / 45 * x**2) * x
        return where(self._outside_unstable_region(), exact, series)

    @property
    def variance(self) -> Tensor:
        p = self._cut_probs()
        exact = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / ((-p).log1p() - p.log()) ** 2
        x = (self.probs - 0.5) ** 2
        series = 1 / 12 - (1 / 15 - 128 / 945 * x) * x
        return where(self._outside_unstable_region(), exact, series)

    @lazy_property
    def probs(self):
        """p, clamped to the open interval."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(self.probs.new_empty(shape).uniform_())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        logits, value = broadcast_all(self.logits, value)
        crossed = binary_cross_entropy_with_logits(logits, value, reduction="none")
        return -crossed + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        p = self._cut_probs()
        exact = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        inside = where(self._outside_unstable_region(), exact, value)
        below_one = where(value >= 1, ones_like(inside), inside)
        return where(value <= 0, zeros_like(inside), below_one)

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut_probs()
        logs = (-p + value * (2 * p - 1)).log1p() - (-p).log1p()
        exact = logs / (p.log() - (-p).log1p())
        return where(self._outside_unstable_region(), exact, value)

    def entropy(self) -> Tensor:
        log_zero, log_one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log_zero - log_one) - self._cont_bern_log_norm() - log_zero

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """log((exp(x) - 1) / x)"""
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = where(outside, x, (self._lims[0] - 0.5) * ones_like(x))
        exact = (cut.exp() - 1).abs().log() - cut.abs().log()
        series = 0.5 * x + x**2 / 24 - x**4 / 2880
        return where(outside, exact, series)

"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.exp_family import ExponentialFamily
from tensorflow_lite_clone.ops.nn.embedding import one_hot
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.ops.random.gamma import sample_dirichlet
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution over the simplex, of the concentrations ``(..., categories)``.

    ValueError if `concentration` has no dimension.

    Source: S. Kotz, N. Balakrishnan, N. Johnson, Continuous Multivariate Distributions 1, ch. 49.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = ("concentration",)

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        """Where the density is largest; a corner of the simplex if all concentrations are below
        one, NaN if there is no such place."""
        excess = (self.concentration - 1).clamp(min=0.0)
        inside = excess / excess.sum(-1, True)
        corner = one_hot(inside.argmax(-1), inside.shape[-1]).to(inside.dtype)
        return where((self.concentration < 1).all(-1, True), corner, inside)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return (
            (self.concentration - 1.0).xlogy(value).sum(-1)
            + self.concentration.sum(-1).lgamma()
            - self.concentration.lgamma().sum(-1)
        )

    def entropy(self) -> Tensor:
        categories = self.concentration.shape[-1]
        total = self.concentration.sum(-1)
        return (
            self.concentration.lgamma().sum(-1)
            - total.lgamma()
            - (categories - total) * total.digamma()
            - ((self.concentration - 1.0) * self.concentration.digamma()).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()

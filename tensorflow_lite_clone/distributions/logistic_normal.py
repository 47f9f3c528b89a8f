"""The logistic normal distribution."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.independent import Independent
from tensorflow_lite_clone.distributions.normal import Normal
from tensorflow_lite_clone.distributions.transformed_distribution import TransformedDistribution
from tensorflow_lite_clone.distributions.transforms import StickBreakingTransform
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Points of the simplex: stick breaking of independent normal numbers.

    The last dimension of `loc` and `scale`, K - 1, belongs to the event, which has K.

    Source: J. Aitchison, S. Shen, "Logistic-normal distributions", Biometrika 67, 1980.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    base_dist: Independent
    _batched = ()

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The means of the normal numbers."""
        return self.base_dist.base_dist.loc  # type: ignore[attr-defined]

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the normal numbers."""
        return self.base_dist.base_dist.scale  # type: ignore[attr-defined]

"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.gamma import Gamma
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The distribution of the sum of `df` squared standard normal variables: Gamma(df / 2, 1 / 2).

    Source: N. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions 1, ch. 18.
    """

    arg_constraints = {"df": constraints.positive}
    _batched = ("concentration", "rate")

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2

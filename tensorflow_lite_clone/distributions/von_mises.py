"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone import special
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.utils import broadcast_all, lazy_property
from tensorflow_lite_clone.ops.create.constructors import zeros_like
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles in [-pi, pi): density exp(concentration cos(x - loc)) / (2 pi I0(concentration)).

    Source: K. Mardia, P. Jupp, Directional Statistics, 2000, 3.5.4.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        kappa = self.concentration
        # log I0(kappa) = log(exp(-kappa) I0(kappa)) + kappa does not overflow.
        logs = kappa * ((value - self.loc).cos() - 1)
        return logs - math.log(2 * math.pi) - special.i0e(kappa).log()

    @lazy_property
    def _loc(self):
        return self.loc.to(dtypes.float64)

    @lazy_property
    def _concentration(self):
        return self.concentration.to(dtypes.float64)

    @lazy_property
    def _proposal_r(self):
        """The parameter of the wrapped Cauchy proposals; its Taylor series for small kappa."""
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Samples by rejection, computed in float64.

        Source: D. Best, N. Fisher, "Efficient simulation of the von Mises distribution", 1979.
        """
        shape = self._extended_shape(sample_shape)
        kappa, r = self._concentration, self._proposal_r
        with no_grad():
            x = self._loc.new_empty(shape)
            done = zeros_like(x, dtype=dtypes.bool_)
            while not done.all():
                u1, u2, u3 = x.new_empty((3,) + shape).uniform_().unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                x = where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
            angle = (x + math.pi + self._loc) % (2 * math.pi) - math.pi
        return angle.to(self.loc.dtype)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """A new distribution of the expanded parameters."""
        loc = self.loc.expand(batch_shape)
        concentration = self.concentration.expand(batch_shape)
        validate_args = self.__dict__.get("_validate_args")
        return type(self)(loc, concentration, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The circular mean."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self):
        """The circular variance, 1 - I1(concentration) / I0(concentration)."""
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)

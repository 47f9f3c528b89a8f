"""Transforms of each number by itself."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.core.limits import finfo
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions._transform import Transform, WithoutParameters, widened
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.utils import (
    _sum_rightmost,
    broadcast_all,
    is_number,
    lazy_property,
)
from tensorflow_lite_clone.ops.create.constructors import full_like
from tensorflow_lite_clone.ops.nn.activation_smooth import softplus
from tensorflow_lite_clone.ops.shape.memory import broadcast_shapes
from tensorflow_lite_clone.tensor import Tensor


class ExpTransform(WithoutParameters):
    """y = exp(x)."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x^exponent for positive x; `exponent` broadcasts."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def _recached(self, cache_size: int) -> Transform:
        return PowerTransform(self.exponent, cache_size)

    @lazy_property
    def sign(self):
        """The exponent's."""
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    __hash__ = None

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def clipped_sigmoid(x: Tensor) -> Tensor:
    """sigmoid(x) in the open interval."""
    return _clipped(x.sigmoid())


def _clipped(y: Tensor) -> Tensor:
    """`y` between the smallest positive normal number and the largest below one."""
    limits = finfo(y.dtype)
    return y.clamp(min=limits.tiny, max=1.0 - limits.eps)


class SigmoidTransform(WithoutParameters):
    """y = 1 / (1 + exp(-x)), clipped to the open interval; its inverse is the logit."""

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        y = _clipped(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(WithoutParameters):
    """y = log(1 + exp(x)), and x where it is above 20."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(WithoutParameters):
    """y = tanh(x). With ``cache_size=1`` an inverse near -1 and 1 stays exact."""

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log(1 - tanh(x)^2) without cancellation: 2 (log 2 - x - softplus(-2x))."""
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(WithoutParameters):
    """y = abs(x); its pseudoinverse gives the non-negative one."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale x, over events of `event_dim` dimensions; numbers or tensors broadcast."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """Real events of `event_dim` dimensions."""
        return widened(constraints.real, self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """The domain."""
        return self.domain

    def _recached(self, cache_size: int) -> Transform:
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AffineTransform)
            and _same(self.loc, other.loc)
            and _same(self.scale, other.scale)
        )

    __hash__ = None

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if is_number(self.scale):
            logs = full_like(x, math.log(abs(self.scale)))
        else:
            logs = self.scale.abs().log()
        # A scale that broadcasts over the event counts once, as in PyTorch.
        batch = x.shape[: x.ndim - self.event_dim]
        return _sum_rightmost(logs, self.event_dim).expand(batch)

    def forward_shape(self, shape: Any) -> Any:
        return broadcast_shapes(shape, _shape(self.loc), _shape(self.scale))

    inverse_shape = forward_shape


def _shape(value: Any) -> Any:
    """The shape of a tensor or a number."""
    return getattr(value, "shape", ())


def _same(value: Any, other: Any) -> bool:
    """Whether two numbers or tensors are equal everywhere."""
    if is_number(value) and is_number(other):
        return value == other
    return bool((value == other).all())


class CumulativeDistributionTransform(Transform):
    """y = `distribution`'s cdf of x: the probability integral transform."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        """The distribution's support."""
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)

    def _recached(self, cache_size: int) -> Transform:
        return CumulativeDistributionTransform(self.distribution, cache_size)

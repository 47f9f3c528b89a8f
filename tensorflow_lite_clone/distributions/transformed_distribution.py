"""The image of a distribution under transforms."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions._transform import widened
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.independent import Independent
from tensorflow_lite_clone.distributions.transforms import ComposeTransform, Transform
from tensorflow_lite_clone.distributions.utils import _sum_rightmost
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of ``transforms[-1](... transforms[0](x))`` with x of `base_distribution`.

    log p(y) = log p(x) - log abs(det dy/dx). The base is expanded where a transform broadcasts.
    ValueError if `transforms` is no transform or list of transforms, or if the base has too few
    dimensions.
    """

    arg_constraints: dict[str, Any] = {}
    _batched: tuple[str, ...] = ()

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = _as_list(transforms)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        domain_dim, codomain_dim = transform.domain.event_dim, transform.codomain.event_dim
        if len(base_shape) < domain_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {domain_dim}, but got "
                f"{base_shape}."
            )
        shape = Size(transform.forward_shape(base_shape))
        expanded = Size(transform.inverse_shape(shape))
        if base_shape != expanded:
            batch = expanded[: len(expanded) - base_event_dim]
            base_distribution = base_distribution.expand(batch)
        if domain_dim > base_event_dim:
            base_distribution = Independent(base_distribution, domain_dim - base_event_dim)
        self.base_dist = base_distribution
        event_dim = max(codomain_dim, base_event_dim + codomain_dim - domain_dim)
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.transforms = self.transforms
        shape = Size(batch_shape) + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        base = self.base_dist
        new.base_dist = base.expand(Size(shape)[: len(shape) - len(base.event_shape)])
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        """The last transform's codomain, or the base's support."""
        if not self.transforms:
            return self.base_dist.support
        return widened(self.transforms[-1].codomain, len(self.event_shape))

    @property
    def has_rsample(self) -> bool:
        """The base distribution's."""
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self._mapped(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._mapped(self.base_dist.rsample(sample_shape))

    def _mapped(self, value: Tensor) -> Tensor:
        """The image of `value` under all transforms."""
        for transform in self.transforms:
            value = transform(value)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        event_dim = len(self.event_shape)
        logs: Any = 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(value)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            term = transform.log_abs_det_jacobian(x, value)
            logs = logs - _sum_rightmost(term, event_dim - transform.domain.event_dim)
            value = x
        base = self.base_dist
        return logs + _sum_rightmost(base.log_prob(value), event_dim - len(base.event_shape))

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """1 - value where the transforms together decrease."""
        sign = math.prod([transform.sign for transform in self.transforms])
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        """The base's, of the value mapped back; NotImplementedError for several dimensions."""
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._mapped(self.base_dist.icdf(self._monotonize_cdf(value)))


def _as_list(transforms: Any) -> list[Transform]:
    """`transforms` as a list; ValueError if there is something else in it."""
    if isinstance(transforms, Transform):
        return [transforms]
    if not isinstance(transforms, list):
        raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
    if not all(isinstance(transform, Transform) for transform in transforms):
        raise ValueError("transforms must be a Transform or a list of Transforms")
    return transforms

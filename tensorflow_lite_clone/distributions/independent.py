"""Dimensions of a batch read as dimensions of the event."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.utils import _sum_rightmost
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Independent"]


class Independent(Distribution):
    """`base_distribution` with the last `reinterpreted_batch_ndims` batch dimensions in the event.

    Log densities and entropies are summed over them. ValueError if the batch has fewer.
    """

    arg_constraints: dict[str, Any] = {}
    _batched = ("base_dist",)
    _unbatched = ("reinterpreted_batch_ndims",)

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {len(batch)}"
            )
        shape = batch + base_distribution.event_shape
        event_dim = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        cut = len(shape) - event_dim
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    @property
    def has_rsample(self) -> bool:
        """The base distribution's."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:
        """The base distribution's, if no dimension is reinterpreted."""
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self):
        """The base distribution's, with wider events."""
        base = self.base_dist.support
        count = self.reinterpreted_batch_ndims
        return constraints.independent(base, count) if count else base

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """NotImplementedError if dimensions are reinterpreted: the product grows exponentially."""
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"

"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.distributions._half import Half
from tensorflow_lite_clone.distributions.cauchy import Cauchy
from tensorflow_lite_clone.ops.create.constructors import as_tensor, full
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """The distribution of abs(x), where x is Cauchy of median 0 and half width `scale`."""

    _batched = ()

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        scale = self.scale
        return full(self._extended_shape(), math.inf, dtype=scale.dtype, device=scale.device)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def _log_density(self, value: Any) -> Tensor:
        """Without validation, `value` may be a number."""
        return super()._log_density(
            as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        )

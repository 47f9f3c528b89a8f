"""Optimizers whose state is spread over processes."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.optim.post_localSGD_optimizer import (
    PostLocalSGDOptimizer,
)
from tensorflow_lite_clone.distributed.optim.zero_redundancy_optimizer import (
    ZeroRedundancyOptimizer,
)

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]

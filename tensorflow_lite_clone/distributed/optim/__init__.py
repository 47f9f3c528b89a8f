"""Optimizers of several processes, as ``torch.distributed.optim``."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from tensorflow_lite_clone.distributed.optim.zero_redundancy_optimizer import (
    ZeroRedundancyOptimizer,
)

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]


class DistributedOptimizer:
    """An optimizer of parameters in other processes: NotImplementedError, as calls of them are."""

    def __init__(self, optimizer_class: Any, params_rref: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("DistributedOptimizer works over torch.distributed.rpc")

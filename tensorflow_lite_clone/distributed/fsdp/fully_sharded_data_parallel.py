"""PyTorch's place of the wrapper around a model that is cut."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.fsdp import (
    FullyShardedDataParallel,
    ShardingStrategy,
    StateDictType,
)

__all__ = ["FullyShardedDataParallel", "ShardingStrategy", "StateDictType"]

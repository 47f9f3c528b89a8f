"""Models cut over processes, as ``torch.distributed.fsdp``: there are none in a world of one.

Packages ask whether a module is a `FullyShardedDataParallel`; no module is. Cutting one raises
NotImplementedError. What only says how to cut can be made.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.nn.modules.module import Module

__all__ = [
    "CPUOffloadPolicy",
    "FSDPModule",
    "FullyShardedDataParallel",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "ShardingStrategy",
    "StateDictType",
    "fully_shard",
]


class ShardingStrategy(Enum):
    """What is cut."""

    FULL_SHARD = 1
    SHARD_GRAD_OP = 2
    NO_SHARD = 3
    HYBRID_SHARD = 4
    _HYBRID_SHARD_ZERO2 = 5


class StateDictType(Enum):
    """What a state dictionary holds."""

    FULL_STATE_DICT = 1
    LOCAL_STATE_DICT = 2
    SHARDED_STATE_DICT = 3


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes to calculate, add up and give in."""

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    output_dtype: DType | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """What lies on the CPU between its uses: nothing."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """What lies on the CPU between its uses: all."""

    pin_memory: bool = True


def _refuse() -> NotImplementedError:
    return NotImplementedError("a model cut over processes: there is one process here")


class FullyShardedDataParallel(Module):
    """A module of which each process has a part."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise _refuse()


class FSDPModule:
    """What `fully_shard` makes a module be."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise _refuse()


def fully_shard(module: Any, **options: Any) -> Any:
    """Cut a module over processes: NotImplementedError."""
    raise _refuse()

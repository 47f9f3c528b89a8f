"""Models whose parameters are cut over processes, as ``torch.distributed.fsdp``."""

from __future__ import annotations

from tensorflow_lite_clone.distributed import norms  # noqa: F401  (which are entered)
from tensorflow_lite_clone.distributed.fsdp import api
from tensorflow_lite_clone.distributed.fsdp._fully_shard import (
    FSDPModule,
    UnshardHandle,
    fully_shard,
    register_fsdp_forward_method,
)
from tensorflow_lite_clone.distributed.fsdp._shards import Sharded, ShardedParameter
from tensorflow_lite_clone.distributed.fsdp._state_dicts import whole_state_dict
from tensorflow_lite_clone.distributed.fsdp.api import *  # noqa: F403
from tensorflow_lite_clone.distributed.fsdp.fully_sharded_data_parallel import (
    FullyShardedDataParallel,
)

__all__ = [
    "FSDPModule",
    "FullyShardedDataParallel",
    "Sharded",
    "ShardedParameter",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
    "whole_state_dict",
    *api.__all__,
]

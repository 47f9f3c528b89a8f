"""Programs of several processes, as ``torch.distributed``; so far in a world of one process.

A program that is written for several, and is started as one, runs: its collectives leave tensors as
they are, and its wrappers call the model. A world of more raises NotImplementedError.
"""

from __future__ import annotations

from tensorflow_lite_clone.distributed import (
    collectives,
    constants,
    device_mesh,
    distributed_c10d,
    elastic,
)
from tensorflow_lite_clone.distributed.collectives import *  # noqa: F403
from tensorflow_lite_clone.distributed.collectives import _all_gather_base, _reduce_scatter_base
from tensorflow_lite_clone.distributed.constants import default_pg_timeout
from tensorflow_lite_clone.distributed.device_mesh import DeviceMesh, init_device_mesh
from tensorflow_lite_clone.distributed.distributed_c10d import *  # noqa: F403
from tensorflow_lite_clone.distributed.errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
)
from tensorflow_lite_clone.distributed.process_group import Backend, Work
from tensorflow_lite_clone.distributed.process_group import ReduceOp as reduce_op
from tensorflow_lite_clone.distributed.store import (
    FileStore,
    HashStore,
    PrefixStore,
    Store,
)
from tensorflow_lite_clone.distributed.tcp_store import TCPStore

__all__ = [
    "Backend",
    "DeviceMesh",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "HashStore",
    "PrefixStore",
    "Store",
    "TCPStore",
    "Work",
    "_all_gather_base",
    "_reduce_scatter_base",
    "constants",
    "default_pg_timeout",
    "device_mesh",
    "distributed_c10d",
    "elastic",
    "init_device_mesh",
    "reduce_op",
    *collectives.__all__,
    *distributed_c10d.__all__,
]

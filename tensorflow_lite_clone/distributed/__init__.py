"""Programs of several processes, as ``torch.distributed``.

Processes meet at a store (`rendezvous`) and form groups. A group's tensors are carried by an
engine (`communicator`): NCCL between GPUs, MPI or shared memory between processes on CPUs. A
program that is written for several processes, and is started as one, runs, too.
"""

from __future__ import annotations

from tensorflow_lite_clone.core.compat_path import mount_compat
from tensorflow_lite_clone.distributed import (
    collectives,
    constants,
    device_mesh,
    distributed_c10d,
    elastic,
    objects,
    point_to_point,
    sync_batch_norm,  # noqa: F401  (which is provided)
)
from tensorflow_lite_clone.distributed.collectives import *  # noqa: F403
from tensorflow_lite_clone.distributed.collectives import (
    _all_gather_base,
    _coalescing_manager,
    _CoalescingManager,
    _reduce_scatter_base,
)
from tensorflow_lite_clone.distributed.constants import default_pg_timeout
from tensorflow_lite_clone.distributed.device_mesh import DeviceMesh, init_device_mesh
from tensorflow_lite_clone.distributed.distributed_c10d import *  # noqa: F403
from tensorflow_lite_clone.distributed.distributed_c10d import _rank_not_in_group
from tensorflow_lite_clone.distributed.errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
)
from tensorflow_lite_clone.distributed.grad_bucket import GradBucket
from tensorflow_lite_clone.distributed.objects import *  # noqa: F403
from tensorflow_lite_clone.distributed.point_to_point import *  # noqa: F403
from tensorflow_lite_clone.distributed.process_group import Backend
from tensorflow_lite_clone.distributed.store import (
    FileStore,
    HashStore,
    PrefixStore,
    Store,
)
from tensorflow_lite_clone.distributed.tcp_store import TCPStore
from tensorflow_lite_clone.distributed.work import ReduceOp as reduce_op
from tensorflow_lite_clone.distributed.work import Work

# PyTorch has all of them in one module.
_PRIVATE = "_CoalescingManager", "_all_gather_base", "_coalescing_manager", "_reduce_scatter_base"
for _module, _names in (
    (collectives, (*collectives.__all__, *_PRIVATE)),
    (objects, objects.__all__),
    (point_to_point, point_to_point.__all__),
):
    for _name in _names:
        setattr(distributed_c10d, _name, getattr(_module, _name))

mount_compat(__path__, __name__)  # noqa: F405

__all__ = [
    "Backend",
    "DeviceMesh",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GradBucket",
    "HashStore",
    "PrefixStore",
    "Store",
    "TCPStore",
    "Work",
    "_CoalescingManager",
    "_all_gather_base",
    "_coalescing_manager",
    "_rank_not_in_group",
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
    *objects.__all__,
    *point_to_point.__all__,
]

"""Which engine carries the tensors of a group, by the backend that a program names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tensorflow_lite_clone.distributed import mpi, nccl
from tensorflow_lite_clone.distributed.communicator import Alone, Communicator
from tensorflow_lite_clone.distributed.process_group import Backend
from tensorflow_lite_clone.distributed.shared_memory import SharedMemory
from tensorflow_lite_clone.distributed.store import Store

Maker = Callable[[], Communicator]


def by_device(backend: str | None) -> dict[str, Backend]:
    """The backend of each kind of device. ValueError for a name that is not known.

    One name serves what it can: ``nccl`` GPUs, the others both; None is ``cpu:gloo,cuda:nccl``.
    """
    if backend is None or not backend:
        return {kind: Backend(name) for kind, name in Backend.default_device_backend_map.items()}
    chosen = {}
    for part in backend.lower().split(","):
        kind, _, name = part.rpartition(":")
        if name not in Backend.backend_list[1:]:
            raise ValueError(f"Unknown backend type {name}")
        kinds = [kind] if kind else ["cuda"] if name == Backend.NCCL else ["cpu", "cuda"]
        chosen.update(dict.fromkeys(kinds, Backend(name)))
    return chosen


def makers(
    chosen: dict[str, Backend],
    ranks: Sequence[int],
    rank: int,
    world_size: int,
    timeout: float,
    store: Store,
    name: str,
) -> dict[str, Maker]:
    """What makes the engine for each kind of device; one that serves several kinds is made once.

    `rank` is this process's number among `ranks`, `name` is the group's.
    """
    single = partial(Alone, ranks, rank, timeout)
    on_hosts: Maker
    if mpi.is_launched(world_size):
        on_hosts = partial(mpi.MpiCommunicator, ranks, rank, timeout)
    else:
        on_hosts = partial(SharedMemory, ranks, rank, timeout, store, f"{name}/peers")
    made: dict[str, Maker] = {}
    for kind, backend in chosen.items():
        if len(ranks) == 1:
            made[kind] = single
        elif backend == Backend.NCCL:
            made[kind] = partial(nccl.Nccl, ranks, rank, timeout, store, f"{name}/nccl")
        elif backend == Backend.MPI:
            made[kind] = partial(mpi.MpiCommunicator, ranks, rank, timeout)
        else:
            made[kind] = on_hosts
    return made

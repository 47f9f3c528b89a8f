"""The process group of this program, and questions about groups."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.distributed import engines, mpi, nccl
from tensorflow_lite_clone.distributed.constants import default_pg_timeout
from tensorflow_lite_clone.distributed.elastic.multiprocessing.errors import record_uncaught
from tensorflow_lite_clone.distributed.process_group import Backend, ProcessGroup
from tensorflow_lite_clone.distributed.rendezvous import adopt_launcher, rendezvous
from tensorflow_lite_clone.distributed.store import PrefixStore, Store
from tensorflow_lite_clone.distributed.work import ReduceOp
from tensorflow_lite_clone.utils.data import distributed as sampling

__all__ = [
    "GroupMember",
    "ProcessGroup",
    "ReduceOp",
    "destroy_process_group",
    "get_backend",
    "get_backend_config",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
]

#: The first group that was made is the whole world.
_groups: list[ProcessGroup] = []
_pg_map = _groups  # where Lightning looks whether a group is there
#: The names of the groups so far, also of those that this process is no member of.
_names: list[str] = []
#: How many groups of some ranks there were so far that only these ranks know of.
_alone: dict[tuple[int, ...], int] = {}


class _World(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802  (PyTorch's name)
        """The group of all processes, None before `init_process_group`."""
        return _groups[0] if _groups else None


class group(metaclass=_World):  # noqa: N801  (PyTorch's name)
    """``group.WORLD`` is the group of all processes."""


class GroupMember(metaclass=_World):
    """What `new_group` gives to processes outside of the group."""

    NON_GROUP_MEMBER = -100


def is_available() -> bool:
    """Whether this package has `torch.distributed`: yes, for one process."""
    return True


def is_initialized() -> bool:
    """Whether there is a process group."""
    return bool(_groups)


def is_gloo_available() -> bool:
    """Whether groups can be asked for by the name ``gloo``."""
    return True


def is_backend_available(backend: str) -> bool:
    """Whether groups can be asked for by a name."""
    return backend.lower() in Backend.backend_list[1:]


def is_nccl_available() -> bool:
    """Whether there are GPUs and CuPy's NCCL."""
    return nccl.is_available()


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    return mpi.is_available()


def is_ucc_available() -> bool:
    """Whether there is UCC: no."""
    return False


is_xccl_available = is_ucc_available


def is_torchelastic_launched() -> bool:
    """Whether a launcher started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Meet the other processes of this program and make the group of them all.

    `backend` is ``nccl`` (GPUs), ``mpi``, ``gloo`` (MPI where the program was started under it,
    shared memory within one host otherwise), or one for each kind of device, by default
    ``cpu:gloo,cuda:nccl``. Processes meet at `store`, or where `init_method` says: ``env://``
    (by default: the environment of a launcher), ``tcp://HOST:PORT``, ``file://PATH``. With
    ``mpi`` (also as in ``cpu:mpi,cuda:nccl``), and where MPI's launcher tells no address, they meet
    over MPI.

    Raises:
        ValueError: a group exists, rank or size is missing, or the backend is unknown.
        RuntimeError: processes did not come within `timeout`, or the backend cannot be used.
    """
    if _groups:
        raise ValueError("trying to initialize the default process group twice!")
    record_uncaught()
    if store is not None and init_method is not None:
        raise ValueError("Cannot specify both init_method and store.")
    chosen = engines.by_device(backend)
    timeout = timeout or default_pg_timeout
    unsaid = rank < 0 and store is None and init_method in (None, "env://")
    if unsaid:
        adopt_launcher(os.environ)
    if unsaid and (Backend.MPI in chosen.values() or _over_mpi_only()):
        store, rank, world_size = mpi.meet(timeout)
    elif store is None:
        store, rank, world_size = rendezvous(init_method or "env://", rank, world_size, timeout)
    elif world_size < 1 or rank < 0:
        raise ValueError("both world_size and rank must be given when there is a store")
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is outside of a world of {world_size}")
    if Backend.NCCL in chosen.values() and backend is not None and world_size > 1:
        nccl.expect_available()
    name = group_name or "default_pg"
    _names[:] = [name]
    _alone.clear()
    _make_group(chosen, backend, range(world_size), rank, world_size, timeout, store, name)
    sampling.group = lambda: (get_world_size(), get_rank())


def _over_mpi_only() -> bool:
    """Whether the launcher has told no address, and is MPI's."""
    return "MASTER_ADDR" not in os.environ and mpi.is_launched()


def _make_group(
    chosen: dict[str, Backend],
    backend: str | None,
    ranks: Sequence[int],
    rank: int,
    world_size: int,
    timeout: timedelta,
    store: Store,
    name: str,
) -> ProcessGroup:
    """A group of which this process is the member `rank`."""
    within = PrefixStore(name, store)
    makers = engines.makers(chosen, ranks, rank, world_size, timeout.total_seconds(), within, name)
    shown = Backend(backend or ",".join(chosen.values()))
    made = ProcessGroup(shown, chosen, name, ranks, rank, makers, within, timeout)
    _groups.append(made)
    return made


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Close a group; the default one with all others."""
    if group is None or (_groups and group is _groups[0]):
        _world()
        for each in reversed(_groups):
            each.close()
        _groups.clear()
        sampling.group = None
    elif group in _groups:
        group.close()
        _groups.remove(group)
    else:
        raise ValueError("Invalid process group specified or has been destroyed.")


def _world() -> ProcessGroup:
    if not _groups:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return _groups[0]


def _get_default_group() -> ProcessGroup:
    return _world()


def _rank_not_in_group(group: Any) -> bool:
    """Whether this process is outside of a group that `new_group` gave; Ignite asks."""
    return group == GroupMember.NON_GROUP_MEMBER


def group_of(group: Any, what: str = "") -> ProcessGroup | None:
    """The group that an argument means; None, with a warning, where this process is outside."""
    world = _world()
    if group == GroupMember.NON_GROUP_MEMBER:
        if what:
            warnings.warn(
                f"Running {what} on global rank {world.rank()} which does not belong to the given "
                "group.",
                stacklevel=level_outside(),
            )
        return None
    return world if group is None else group


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """A group of some of the processes, which all have to ask for in the same order.

    With `use_local_synchronization` only its members ask. Processes that are no members get
    `GroupMember.NON_GROUP_MEMBER`. Raises ValueError for ranks that are not there or occur twice.
    """
    world = _world()
    ranks = range(world.size()) if ranks is None else ranks
    for rank in ranks:
        if not 0 <= rank < world.size():
            raise ValueError(
                f"Rank {rank} is out of range. Valid ranks are 0 to {world.size() - 1} "
                f"(world_size={world.size()})"
            )
    members = sorted(ranks) if sort_ranks else list(ranks)
    if len(set(members)) != len(members):
        raise ValueError(f"ranks occur twice: {members}")
    if use_local_synchronization:  # others may have made more or fewer groups by now
        count = _alone[tuple(members)] = _alone.get(tuple(members), 0) + 1
        name = f"local_{'_'.join(map(str, members))}_{count}"
    else:
        name = str(len(_names))
        _names.append(name)
    if world.rank() not in members:
        return GroupMember.NON_GROUP_MEMBER
    chosen = engines.by_device(backend or world.config)
    return _make_group(
        chosen, backend or world.name(), members, members.index(world.rank()), world.size(),
        timeout or world.timeout, world.store, name,
    )  # fmt: skip


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """The world cut into groups of `group_size` ranks that follow each other, and this one's.

    By default they have as many processes as there are GPUs. Raises ValueError for a size that
    does not divide the world's.
    """
    if group_size is None:
        if not nccl.device_count():
            raise ValueError(
                "Default group size only takes effect when CUDA is available. If your subgroup "
                "using a backend that does not depend on CUDA, please pass in 'group_size' "
                "correctly."
            )
        group_size = nccl.device_count()
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    size = get_world_size()
    if size < group_size:
        raise ValueError(
            f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})"
        )
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by '{group_size=}'")
    parts = [list(range(start, start + group_size)) for start in range(0, size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """This process's group (None if there is none) and all groups of the listed ranks.

    Raises ValueError for no groups, and for a rank that is in two.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    place: dict[int, int] = {}
    for index, ranks in enumerate(ranks_per_subgroup_list):
        for rank in ranks:
            if rank in place:
                raise ValueError(
                    f"Rank {rank} has appeared in both subgroup {list(ranks)} and "
                    f"{list(ranks_per_subgroup_list[place[rank]])}"
                )
            place[rank] = index
    groups = [
        new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        for ranks in ranks_per_subgroup_list
    ]
    own = place.get(get_rank())
    return None if own is None else groups[own], groups


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process in a group, -1 outside of it."""
    found = group_of(group)
    return -1 if found is None else found.rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes a group has; -1 outside of it."""
    found = group_of(group)
    return -1 if found is None else found.size()


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """The name by which a group was asked for."""
    found = group_of(group)
    if found is None:
        raise ValueError("Invalid process group specified")
    return found.backend


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """The names of the backends by device."""
    found = group_of(group)
    if found is None:
        raise ValueError("Invalid process group specified")
    return found.config


def get_default_backend_for_device(device: str | Device) -> str:
    """The name of the backend that PyTorch uses on a device."""
    kind = str(device).partition(":")[0]
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The numbers in the world of a group's processes."""
    return list((group or _world()).ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The number in the world of the process with a number in a group."""
    if not 0 <= group_rank < group.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return group.ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number in a group of the process with a number in the world."""
    if global_rank not in group.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return group.ranks.index(global_rank)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine: ``LOCAL_RANK`` in the environment."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError(
            "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
            "`get_node_local_rank` to work, assuming you are not running in a multi-device context "
            "and want the code to run locally instead."
        )
    return int(fallback_rank)


def get_pg_count() -> int:
    """How many groups there are."""
    return len(_groups)


_default_pg_timeout = default_pg_timeout

"""Saves by all processes together, as ``torch.distributed.checkpoint.state_dict_saver``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.distributed import distributed_c10d
from tensorflow_lite_clone.distributed.checkpoint._exchange import Exchange
from tensorflow_lite_clone.distributed.checkpoint.api import CheckpointException
from tensorflow_lite_clone.distributed.checkpoint.default_planner import DefaultSavePlanner
from tensorflow_lite_clone.distributed.checkpoint.filesystem import FileSystemWriter
from tensorflow_lite_clone.distributed.checkpoint.metadata import Metadata
from tensorflow_lite_clone.distributed.checkpoint.planner import SavePlan, SavePlanner
from tensorflow_lite_clone.distributed.checkpoint.staging import AsyncStager, BlockingAsyncStager
from tensorflow_lite_clone.distributed.checkpoint.stateful import Stateful
from tensorflow_lite_clone.distributed.checkpoint.storage import StorageWriter, WriteResult

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(Enum):
    """Who writes; a thread does, in either case."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """The Futures of the copy and of the checkpoint."""

    staging_completion: Future[None]
    upload_completion: Future[None]


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Write a state dict to the folder `checkpoint_id`; all processes of the group call it.

    Values are tensors, DTensors, objects that are sharded (see `Sharded` in `_shards`),
    dictionaries and lists of these, what ``torch.save`` can write, and at the top objects with a
    `state_dict`.
    Each process writes its boxes of what is sharded. What several processes have under the same
    name is taken to be equal, and written once; so states that differ need names that differ.

    The checkpoint appears, in the place of one that was there, when all have written. Without a
    process group, or with `no_dist`, this process saves alone.

    Raises:
        CheckpointException: a process has failed. The same on all processes; what was there before
            is there still.
        RuntimeError: there is neither a `checkpoint_id` nor a `storage_writer`.
    """
    if not use_collectives:
        raise NotImplementedError("processes agree on what each writes: use_collectives=False")
    single = is_alone(no_dist, "save")
    writer = _writer(checkpoint_id, storage_writer)
    return _save(lambda: _states(state_dict), writer, process_group, single, 0, planner)


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: AsyncStager | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future | AsyncSaveResponse:
    """As `save`, while the caller goes on: copies to host memory, and writes the copy in a thread.

    Gives a Future of what `save` gives; its `result` raises what `save` raises. Saves follow each
    other in the order of the calls. An `async_stager` that gives a Future of the copy makes this
    give an `AsyncSaveResponse`, and what is saved must stay as it is until the copy is there.

    The thread talks to other processes in a group of its own, over gloo.
    """
    if not use_collectives:
        raise NotImplementedError("processes agree on what each writes: use_collectives=False")
    single = is_alone(no_dist, "save")
    writer = _writer(checkpoint_id, storage_writer)
    group = None if single else _group_of_threads(process_group)
    stager = async_stager or (writer if isinstance(writer, AsyncStager) else BlockingAsyncStager())
    staged: Any = Future()
    try:
        staged = stager.stage(_states(state_dict))
    except BaseException as error:  # for the thread to tell the other processes, too
        staged.set_exception(error)
        return _thread().submit(_save, staged.result, writer, group, single, 0, planner)
    if not isinstance(staged, Future):
        return _thread().submit(_save, lambda: staged, writer, group, single, 0, planner)
    written = _thread().submit(_save, staged.result, writer, group, single, 0, planner)
    return AsyncSaveResponse(staged, written)  # type: ignore[arg-type]


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    """An older form of `save`, which does not ask objects for their `state_dict`."""
    warnings.warn(
        "`save_state_dict` is deprecated and will be removed in future versions."
        "Please use `save` instead.",
        FutureWarning,
        stacklevel=level_outside(),
    )
    storage_writer.reset()
    return _save(
        lambda: state_dict, storage_writer, process_group, no_dist, coordinator_rank, planner
    )


def _save(
    states: Callable[[], dict[str, Any]],
    writer: StorageWriter,
    process_group: Any,
    no_dist: bool,
    coordinator_rank: int,
    planner: SavePlanner | None,
) -> Metadata:
    exchange = Exchange(process_group, not no_dist, coordinator_rank)
    planner = planner or DefaultSavePlanner()
    agreed: list[Metadata] = []  # on the coordinator

    def plan_own() -> SavePlan:
        planner.set_up_planner(
            states(), storage_meta=writer.storage_meta(), is_coordinator=exchange.is_coordinator
        )
        writer.set_up_storage_writer(exchange.is_coordinator)
        return writer.prepare_local_plan(planner.create_local_plan())

    def plan_all(plans: list[SavePlan]) -> list[SavePlan]:
        plans, metadata = planner.create_global_plan(plans)
        agreed.append(metadata)
        return writer.prepare_global_plan(plans)

    def finish(results: list[list[WriteResult]]) -> Metadata:
        writer.finish(agreed[0], results)
        return agreed[0]

    try:
        plan = exchange.reduce_scatter("plan", plan_own, plan_all)
        return exchange.all_reduce(
            "write", lambda: writer.write_data(planner.finish_plan(plan), planner).wait(), finish
        )
    except CheckpointException:
        if exchange.is_coordinator:
            writer.abandon()
        raise


def _states(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The state dict with the states of the objects in it."""
    return {
        key: value.state_dict() if isinstance(value, Stateful) else value
        for key, value in state_dict.items()
    }


def _writer(checkpoint_id: str | os.PathLike | None, writer: StorageWriter | None) -> StorageWriter:
    if writer is None:
        expect_id(checkpoint_id)
        return FileSystemWriter(checkpoint_id or "")
    writer.reset(checkpoint_id)
    return writer


def expect_id(checkpoint_id: str | os.PathLike | None) -> None:
    """RuntimeError unless there is one."""
    if not checkpoint_id:
        raise RuntimeError(
            "`checkpoint_id` must be specified if storage_reader/storage_writer is None."
        )


def is_alone(no_dist: bool, what: str) -> bool:
    """Whether this process saves or loads alone; a warning where nobody asked for that."""
    if not no_dist and not distributed_c10d.is_initialized():
        warnings.warn(
            "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is "
            f"to {what} in a single process.",
            stacklevel=level_outside(),
        )
        return True
    return no_dist


@cache
def _thread() -> ThreadPoolExecutor:
    """The thread that writes; it ends with the process, when all is written."""
    return ThreadPoolExecutor(1, thread_name_prefix="checkpoint")


_groups: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _group_of_threads(process_group: Any) -> Any:
    """A group of the same processes, for that thread alone: calls of others would get mixed up."""
    group = process_group or distributed_c10d.group.WORLD
    if group not in _groups:
        _groups[group] = distributed_c10d.new_group(
            distributed_c10d.get_process_group_ranks(group),
            backend="gloo",
            use_local_synchronization=True,
        )
    return _groups[group]

"""Loads by all processes together, as ``torch.distributed.checkpoint.state_dict_loader``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.distributed.checkpoint._exchange import Exchange
from tensorflow_lite_clone.distributed.checkpoint.default_planner import DefaultLoadPlanner
from tensorflow_lite_clone.distributed.checkpoint.filesystem import FileSystemReader
from tensorflow_lite_clone.distributed.checkpoint.planner import LoadPlan, LoadPlanner
from tensorflow_lite_clone.distributed.checkpoint.state_dict_saver import expect_id, is_alone
from tensorflow_lite_clone.distributed.checkpoint.stateful import Stateful
from tensorflow_lite_clone.distributed.checkpoint.storage import StorageReader

__all__ = ["load", "load_state_dict"]


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_reader: StorageReader | None = None,
    planner: LoadPlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Fill a state dict from the folder `checkpoint_id`; all processes of the group call it.

    Tensors are written in place, each process's boxes from whatever files have them, so the world
    may be of another size than the one that saved. Other values are replaced. Objects with a
    `load_state_dict` are asked for their state, which is filled, and then given it. What the
    checkpoint has beyond `state_dict` is left.

    Raises:
        CheckpointException: a process has failed; the same on all processes. Its `failures` have a
            RuntimeError for names that the checkpoint lacks and for damaged files, a ValueError
            for tensors of another shape, a FileNotFoundError where there is no checkpoint.
        RuntimeError: there is neither a `checkpoint_id` nor a `storage_reader`.
    """
    single = is_alone(no_dist, "load")
    reader = storage_reader
    if reader is None:
        expect_id(checkpoint_id)
        reader = FileSystemReader(checkpoint_id or "")
    else:
        reader.reset(checkpoint_id)
    # Asking for a state may need all processes: in the same order on each.
    names = sorted(state_dict)
    objects = {key: state_dict[key] for key in names if isinstance(state_dict[key], Stateful)}
    filled = dict(state_dict)

    def states() -> dict[str, Any]:
        filled.update({key: value.state_dict() for key, value in objects.items()})
        return filled

    _load(states, reader, process_group, single, 0, planner)
    for key, state in filled.items():
        if key in objects:
            objects[key].load_state_dict(state)
        else:
            state_dict[key] = state


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    """An older form of `load`, which does not ask objects for their `state_dict`."""
    warnings.warn(
        "`load_state_dict` is deprecated and will be removed in future versions. "
        "Please use `load` instead.",
        FutureWarning,
        stacklevel=level_outside(),
    )
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    # Programs that turn checkpoints into single files call it, to be spared the warning above.
    _load(lambda: state_dict, storage_reader, process_group, no_dist, coordinator_rank, planner)


def _load(
    states: Callable[[], dict[str, Any]],
    reader: StorageReader,
    process_group: Any,
    no_dist: bool,
    coordinator_rank: int,
    planner: LoadPlanner | None,
) -> None:
    exchange = Exchange(process_group, not no_dist, coordinator_rank)
    planner = planner or DefaultLoadPlanner()

    def plan_own() -> LoadPlan:
        state_dict = states()
        metadata = reader.read_metadata()
        planner.set_up_planner(state_dict, metadata, exchange.is_coordinator)
        reader.set_up_storage_reader(metadata, exchange.is_coordinator)
        return reader.prepare_local_plan(planner.create_local_plan())

    def plan_all(plans: list[LoadPlan]) -> list[LoadPlan]:
        return reader.prepare_global_plan(planner.create_global_plan(plans))

    plan = exchange.reduce_scatter("plan", plan_own, plan_all)
    exchange.all_gather("read", lambda: reader.read_data(planner.finish_plan(plan), planner).wait())

"""The state of an optimizer from a checkpoint, as ``torch.distributed.checkpoint.optimizer``."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from tensorflow_lite_clone.distributed.checkpoint.planner import LoadPlanner
from tensorflow_lite_clone.distributed.checkpoint.state_dict_loader import _load_state_dict
from tensorflow_lite_clone.distributed.checkpoint.storage import StorageReader
from tensorflow_lite_clone.distributed.distributed_c10d import is_initialized

__all__ = ["load_sharded_optimizer_state_dict"]


def load_sharded_optimizer_state_dict(
    model_state_dict: dict[str, Any],
    optimizer_key: str,
    storage_reader: StorageReader,
    planner: LoadPlanner | None = None,
) -> dict[str, Any]:
    """``{optimizer_key: state}`` of what ``FSDP.optim_state_dict`` gave, and was saved.

    ``FSDP.optim_state_dict_to_load`` takes the state. Its tensors are whole, on the CPU, so the
    model's state dict says nothing more.
    """
    state_dict: dict[str, Any] = {}
    planner = planner or _EmptyStateDictLoadPlanner({optimizer_key})
    _load_state_dict(state_dict, storage_reader, planner=planner, no_dist=not is_initialized())
    return state_dict

"""Between folders and files of ``torch.save``, as ``torch.distributed.checkpoint.format_utils``."""

from __future__ import annotations

import os
from typing import Any

from tensorflow_lite_clone import serialization
from tensorflow_lite_clone.distributed.checkpoint import _nested
from tensorflow_lite_clone.distributed.checkpoint.default_planner import DefaultLoadPlanner
from tensorflow_lite_clone.distributed.checkpoint.filesystem import FileSystemReader
from tensorflow_lite_clone.distributed.checkpoint.metadata import TensorStorageMetadata
from tensorflow_lite_clone.distributed.checkpoint.state_dict_loader import load
from tensorflow_lite_clone.distributed.checkpoint.state_dict_saver import save
from tensorflow_lite_clone.ops.create import empty

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(
    dcp_checkpoint_dir: str | os.PathLike, torch_save_path: str | os.PathLike
) -> None:
    """Write all that a checkpoint of any number of processes has to one file, in this process."""
    metadata = FileSystemReader(dcp_checkpoint_dir).read_metadata()
    flat: dict[str, Any] = {
        name: empty(stored.size, dtype=stored.properties.dtype)
        if isinstance(stored, TensorStorageMetadata)
        else None
        for name, stored in metadata.state_dict_metadata.items()
    }
    planner = DefaultLoadPlanner(flatten_state_dict=False)
    load(flat, checkpoint_id=dcp_checkpoint_dir, planner=planner, no_dist=True)
    paths = metadata.planner_data
    serialization.save(flat if paths is None else _nested.nested(flat, paths), torch_save_path)


def torch_save_to_dcp(
    torch_save_path: str | os.PathLike, dcp_checkpoint_dir: str | os.PathLike
) -> None:
    """Write what a file has as a checkpoint, in this process.

    The file is read as by ``torch.load(weights_only=True)``.
    """
    state_dict = serialization.load(torch_save_path, "cpu", weights_only=True)
    save(state_dict, checkpoint_id=dcp_checkpoint_dir, no_dist=True)

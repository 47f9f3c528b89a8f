"""Checkpoints that all processes write and read, as ``torch.distributed.checkpoint``."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.checkpoint import (
    api,
    default_planner,
    filesystem,
    format_utils,
    metadata,
    optimizer,
    planner,
    planner_helpers,
    staging,
    state_dict,
    state_dict_loader,
    state_dict_saver,
    stateful,
    storage,
    utils,
)
from tensorflow_lite_clone.distributed.checkpoint.api import CheckpointException
from tensorflow_lite_clone.distributed.checkpoint.default_planner import (
    DefaultLoadPlanner,
    DefaultSavePlanner,
)
from tensorflow_lite_clone.distributed.checkpoint.filesystem import (
    FileSystemReader,
    FileSystemWriter,
)
from tensorflow_lite_clone.distributed.checkpoint.hf_storage import (
    HuggingFaceStorageReader,
    HuggingFaceStorageWriter,
)
from tensorflow_lite_clone.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from tensorflow_lite_clone.distributed.checkpoint.optimizer import (
    load_sharded_optimizer_state_dict,
)
from tensorflow_lite_clone.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
)
from tensorflow_lite_clone.distributed.checkpoint.state_dict_loader import load, load_state_dict
from tensorflow_lite_clone.distributed.checkpoint.state_dict_saver import (
    async_save,
    save,
    save_state_dict,
)
from tensorflow_lite_clone.distributed.checkpoint.storage import StorageReader, StorageWriter

__all__ = [
    "BytesStorageMetadata",
    "CheckpointException",
    "ChunkStorageMetadata",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "HuggingFaceStorageReader",
    "HuggingFaceStorageWriter",
    "LoadPlan",
    "LoadPlanner",
    "Metadata",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "StorageReader",
    "StorageWriter",
    "TensorStorageMetadata",
    "WriteItem",
    "api",
    "async_save",
    "default_planner",
    "filesystem",
    "format_utils",
    "load",
    "load_sharded_optimizer_state_dict",
    "load_state_dict",
    "metadata",
    "optimizer",
    "planner",
    "planner_helpers",
    "save",
    "save_state_dict",
    "staging",
    "state_dict",
    "state_dict_loader",
    "state_dict_saver",
    "stateful",
    "storage",
    "utils",
]

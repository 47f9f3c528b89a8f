"""Between folders and files of ``torch.save``, as ``torch.distributed.checkpoint.format_utils``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tensorflow_lite_clone import serialization
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributed import distributed_c10d
from tensorflow_lite_clone.distributed.checkpoint import _nested
from tensorflow_lite_clone.distributed.checkpoint._shards import is_tensor, shape_of
from tensorflow_lite_clone.distributed.checkpoint.default_planner import (
    DefaultLoadPlanner,
    _EmptyStateDictLoadPlanner,
)
from tensorflow_lite_clone.distributed.checkpoint.filesystem import FileSystemReader, give
from tensorflow_lite_clone.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from tensorflow_lite_clone.distributed.checkpoint.planner import LoadPlan, LoadPlanner, ReadItem
from tensorflow_lite_clone.distributed.checkpoint.state_dict import from_first
from tensorflow_lite_clone.distributed.checkpoint.state_dict_loader import _load_state_dict
from tensorflow_lite_clone.distributed.checkpoint.state_dict_saver import save
from tensorflow_lite_clone.distributed.checkpoint.storage import StorageReader
from tensorflow_lite_clone.futures import Future
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "BroadcastingTorchSaveReader",
    "DynamicMetaLoadPlanner",
    "dcp_to_torch_save",
    "torch_save_to_dcp",
]


def dcp_to_torch_save(
    dcp_checkpoint_dir: str | os.PathLike, torch_save_path: str | os.PathLike
) -> None:
    """Write all that a checkpoint of any number of processes has to one file, in this process."""
    state_dict: dict[str, Any] = {}
    reader = FileSystemReader(dcp_checkpoint_dir)
    _load_state_dict(state_dict, reader, planner=_EmptyStateDictLoadPlanner(), no_dist=True)
    serialization.save(state_dict, torch_save_path)


def torch_save_to_dcp(
    torch_save_path: str | os.PathLike, dcp_checkpoint_dir: str | os.PathLike
) -> None:
    """Write what a file has as a checkpoint, in this process.

    The file is read as by ``torch.load(weights_only=True)``.
    """
    state_dict = serialization.load(torch_save_path, "cpu", weights_only=True)
    save(state_dict, checkpoint_id=dcp_checkpoint_dir, no_dist=True)


class BroadcastingTorchSaveReader(StorageReader):
    """Reads a file of ``torch.save`` in one process, which sends its tensors to all of the world.

    The planner has to be a `DynamicMetaLoadPlanner`. `checkpoint_id` is the file; it is read by the
    rules of ``torch.load(weights_only=True)``.
    """

    def __init__(
        self, checkpoint_id: str | os.PathLike | None = None, coordinator_rank: int = 0
    ) -> None:
        self.checkpoint_id = checkpoint_id
        self.coordinator_rank = coordinator_rank

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Whether there is such a file."""
        return Path(checkpoint_id).is_file()

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        self.checkpoint_id = checkpoint_id or self.checkpoint_id

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """No contents: the planner says what there should be."""
        return Metadata({})

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        self._expected = metadata.state_dict_metadata
        self._tensors: dict[str, Tensor] = {}
        self._together = distributed_c10d.is_initialized()
        if not self._together or distributed_c10d.get_rank() == self.coordinator_rank:
            leaves = _nested.flattened(
                serialization.load(self.checkpoint_id, "cpu", weights_only=True)
            )
            values = {name: leaf.value for name, leaf in leaves.items()}
            self._tensors = {name: v for name, v in values.items() if isinstance(v, Tensor)}

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Take what the process that reads sends.

        Raises KeyError for what the file lacks, ValueError for tensors of another shape.
        """
        requests: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            requests.setdefault(item.storage_index.fqn, []).append(item)
        pairs: Iterable[tuple[str, Any]] = self._tensors.items()
        if self._together:
            pairs = from_first(self._tensors, self.coordinator_rank)
        wrong = []
        for name, tensor in pairs:  # to the end, or those who send would wait
            items = requests.pop(name, [])
            stored = self._expected.get(name)
            if isinstance(stored, TensorStorageMetadata) and stored.size != tensor.shape:
                sizes = f"saved {tensor.shape} and current: {stored.size}"
                wrong.append(f"Size mismatch between {sizes} for {name}")
                continue
            for item in items:
                give(planner, item, tensor)
        if wrong:
            raise ValueError("; ".join(wrong))
        if requests:
            raise KeyError(f"{self.checkpoint_id} has no tensors {list(requests)}")
        future: Future[None] = Future()
        future.set_result(None)
        return future


class DynamicMetaLoadPlanner(DefaultLoadPlanner):
    """Plans a load from what says nothing of its contents: they are to be as the state dict is."""

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Take the state dict to fill; RuntimeError for values in it that are no tensors."""
        super().set_up_planner(state_dict, metadata or Metadata({}), is_coordinator)
        for name, value in self.state_dict.items():
            if not is_tensor(value):
                raise RuntimeError(
                    f"Non-tensor value identified at {name}. At this time DynamicMetaLoadPlanner "
                    "only supports loading Tensors."
                )
            shape = shape_of(value)
            assert self.metadata is not None
            self.metadata.state_dict_metadata[name] = TensorStorageMetadata(
                TensorProperties.create_from_tensor(value),
                shape,
                [ChunkStorageMetadata(Size([0] * len(shape)), shape)],
            )

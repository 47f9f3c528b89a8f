"""What is to be written and read, as ``torch.distributed.checkpoint.planner``.

A planner is given a state dict and makes a list of items for this process. The coordinator sees
the lists of all processes, and gives each its own back.
"""

from __future__ import annotations

import abc
import io
from dataclasses import dataclass
from enum import Enum, auto
from math import prod
from typing import Any

from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
)
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "BytesIOWriteData",
    "LoadItemType",
    "LoadPlan",
    "LoadPlanner",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "TensorWriteData",
    "WriteItem",
    "WriteItemType",
]


class WriteItemType(Enum):
    """A whole tensor, a box of one, or a value that is no tensor."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """Elements of a tensor, or a value that is none."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """How long a value that is no tensor is."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """A box, and the tensor of which it is a part."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Size


@dataclass(frozen=True)
class WriteItem:
    """Something to be written."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """How many bytes the elements take; None for what is no tensor."""
        if self.tensor_data is None:
            return None
        return prod(self.tensor_data.chunk.sizes) * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """Elements to be read: `lengths` of them from `storage_offsets` within the stored box
    `storage_index`, to `dest_offsets` within the own box `dest_index`."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Size
    storage_index: MetadataIndex
    storage_offsets: Size
    lengths: Size


@dataclass(frozen=True)
class SavePlan:
    """What one process writes."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What one process reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Decides what is written; methods are called in this order, on every process but for
    `create_global_plan`, which the coordinator calls."""

    @abc.abstractmethod
    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Take the state dict."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """What this process could write."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """What each process writes, and the contents of the whole."""

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Take what the coordinator decided."""

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """The elements, or the bytes, of an item."""


class LoadPlanner(abc.ABC):
    """Decides what is read, and where to; called as `SavePlanner` is."""

    @abc.abstractmethod
    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Take the state dict to fill, and the contents of the checkpoint."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """What this process wants."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """What each process reads."""

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Take what the coordinator decided."""

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take a value that is no tensor."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Where to write such a value, for storages that fill streams."""
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """Where to write elements; `commit_tensor` follows."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """The elements of `resolve_tensor` are there."""

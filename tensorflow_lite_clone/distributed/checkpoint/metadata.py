"""What a checkpoint says of its contents, as ``torch.distributed.checkpoint.metadata``.

The names of classes and fields are what stands in the file ``.metadata``, so they are PyTorch's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tensorflow_lite_clone.core.device import Layout, strided
from tensorflow_lite_clone.core.dtypes import DType, get_default_dtype
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.core.strides import (
    MemoryFormat,
    channels_last,
    contiguous_format,
    preserve_format,
)

__all__ = [
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]


@dataclass
class ChunkStorageMetadata:
    """A box of a tensor: where it begins in the whole, and its shape."""

    offsets: Size
    sizes: Size


class _MEM_FORMAT_ENCODING(Enum):  # noqa: N801  (the file has this name)
    """How the file tells memory formats."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS: dict[MemoryFormat, _MEM_FORMAT_ENCODING] = {
    contiguous_format: _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT,
    channels_last: _MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST,
    preserve_format: _MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT,
}
_ENCODED = {encoded: memory_format for memory_format, encoded in _FORMATS.items()}


@dataclass
class TensorProperties:
    """What a tensor is beside its shape. Only `dtype` is used in loading."""

    dtype: DType = field(default_factory=get_default_dtype)
    layout: Layout = strided
    requires_grad: bool = False
    memory_format: MemoryFormat = contiguous_format
    pin_memory: bool = False

    @staticmethod
    def create_from_tensor(tensor: Any) -> TensorProperties:
        """The properties of a tensor, or of an object that is sharded."""
        return TensorProperties(
            dtype=tensor.dtype, requires_grad=bool(getattr(tensor, "requires_grad", False))
        )

    def __getstate__(self) -> tuple:
        memory_format = _FORMATS[self.memory_format]
        return self.dtype, self.layout, self.requires_grad, memory_format, self.pin_memory

    def __setstate__(self, state: tuple) -> None:
        self.dtype, self.layout, self.requires_grad, encoded, self.pin_memory = state
        self.memory_format = _ENCODED[encoded]


@dataclass
class TensorStorageMetadata:
    """A tensor: its shape, and the boxes in which it lies in the files."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """A value that is no tensor."""


STORAGE_TYPES = TensorStorageMetadata | BytesStorageMetadata
STATE_DICT_TYPE = dict[str, Any]


@dataclass
class StorageMeta:
    """Which checkpoint this is, and which save or load."""

    checkpoint_id: str | os.PathLike | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """All of a checkpoint's contents.

    `planner_data` maps flat names to paths in the nested state dict, `storage_data` maps
    `MetadataIndex` to places in files.
    """

    state_dict_metadata: dict[str, STORAGE_TYPES]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """The name of a value, or of the box of a tensor that begins at `offset`.

    `index` is a hint where the box stands in the list of boxes; it is not compared.
    """

    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(
        self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None
    ) -> None:
        self.__setstate__(
            {"fqn": fqn, "offset": None if offset is None else Size(offset), "index": index}
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        fqn, offset = state["fqn"], state.get("offset")
        if not isinstance(fqn, str) or not isinstance(offset, Size | None):
            raise TypeError("an index is a name, and the offsets of a box")
        vars(self).update(fqn=fqn, offset=offset, index=state.get("index"))

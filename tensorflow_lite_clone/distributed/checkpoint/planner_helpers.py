"""Items of plans, as ``torch.distributed.checkpoint.planner_helpers``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributed.checkpoint._shards import (
    is_sharded,
    is_tensor,
    shape_of,
    shards_of,
)
from tensorflow_lite_clone.distributed.checkpoint.metadata import (
    STORAGE_TYPES,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from tensorflow_lite_clone.distributed.checkpoint.planner import (
    LoadItemType,
    ReadItem,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)

__all__ = ["create_read_items_for_chunk_list"]


def write_items(fqn: str, value: Any) -> list[WriteItem]:
    """What this process could write of a value."""
    if not is_tensor(value):
        return [WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO)]
    kind = WriteItemType.SHARD if is_sharded(value) else WriteItemType.TENSOR
    properties = TensorProperties.create_from_tensor(value)
    return [
        WriteItem(
            MetadataIndex(fqn, chunk.offsets),
            kind,
            tensor_data=TensorWriteData(chunk, properties, shape_of(value)),
        )
        for chunk in chunks_of(value)
    ]


def chunks_of(value: Any) -> list[ChunkStorageMetadata]:
    """The boxes that this process has of a tensor."""
    return [
        ChunkStorageMetadata(Size(offsets), Size(local.shape))
        for offsets, local in shards_of(value)
    ]


def read_items(fqn: str, stored: STORAGE_TYPES, value: Any) -> list[ReadItem]:
    """What this process must read for a value.

    Raises ValueError where a tensor is stored, and the value is none.
    """
    if isinstance(stored, BytesStorageMetadata):
        none, index = Size((0,)), MetadataIndex(fqn)
        return [ReadItem(LoadItemType.BYTE_IO, index, none, index, none, none)]
    if not is_tensor(value):
        raise ValueError(
            f"Invalid checkpoint metadata for {fqn}, expected BytesStorageMetadata but found "
            f"{type(stored)}"
        )
    return create_read_items_for_chunk_list(fqn, stored, chunks_of(value))


def create_read_items_for_chunk_list(
    fqn: str, checkpoint_md: TensorStorageMetadata, local_chunks: list[ChunkStorageMetadata]
) -> list[ReadItem]:
    """What must be read to fill the boxes `local_chunks`: their intersections with those stored."""
    items = []
    for place, chunk in enumerate(local_chunks):
        for number, stored in enumerate(checkpoint_md.chunks):
            common = intersection(chunk, stored)
            if common is None:
                continue
            items.append(
                ReadItem(
                    LoadItemType.TENSOR,
                    MetadataIndex(fqn, chunk.offsets, place),
                    _from(chunk, common),
                    MetadataIndex(fqn, stored.offsets, number),
                    _from(stored, common),
                    common.sizes,
                )
            )
    return items


def _from(box: ChunkStorageMetadata, inner: ChunkStorageMetadata) -> Size:
    """Where a box begins within another."""
    return Size([b - a for a, b in zip(box.offsets, inner.offsets)])


def intersection(a: ChunkStorageMetadata, b: ChunkStorageMetadata) -> ChunkStorageMetadata | None:
    """The box of the elements that two boxes of a tensor have in common; None without any."""
    offsets = [max(x, y) for x, y in zip(a.offsets, b.offsets)]
    ends = [min(x, y) for x, y in zip(_ends(a), _ends(b))]
    sizes = [end - offset for offset, end in zip(offsets, ends)]
    if any([size <= 0 for size in sizes]):
        return None
    return ChunkStorageMetadata(Size(offsets), Size(sizes))


def _ends(box: ChunkStorageMetadata) -> Sequence[int]:
    return [offset + size for offset, size in zip(box.offsets, box.sizes)]

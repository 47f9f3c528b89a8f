"""Values of a state dict by their index, as ``torch.distributed.checkpoint.utils``."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributed.checkpoint._shards import is_sharded, is_tensor, shards_of
from tensorflow_lite_clone.distributed.checkpoint.metadata import MetadataIndex
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["find_state_dict_object", "find_tensor_shard"]


def find_tensor_shard(tensor: Any, index: MetadataIndex) -> Tensor:
    """This process's box of a tensor that begins at ``index.offset``.

    Raises ValueError where it has none there.
    """
    if not is_sharded(tensor):
        if index.offset is not None and any(index.offset):
            raise ValueError(
                f"FQN: '{index.fqn}' is not a sharded tensor, can't find by offset: "
                f"'{index.offset}'"
            )
        return tensor
    for offsets, local in shards_of(tensor):
        if index.offset is None or offsets == tuple(index.offset):
            return local
    raise ValueError(f"FQN: '{index.fqn}' has no shard at {index.offset} in this process")


def find_state_dict_object(state_dict: dict[str, Any], index: MetadataIndex) -> Any:
    """The value, or the box of a tensor, that an index means; ValueError where there is none."""
    if index.fqn not in state_dict:
        raise ValueError(f"Could not find FQN: '{index.fqn}'")
    value = state_dict[index.fqn]
    if is_tensor(value):
        return find_tensor_shard(value, index)
    if index.offset is not None:
        raise ValueError(f"FQN: '{index.fqn}' is no tensor, and has no offset {index.offset}")
    return value

"""The planners of saves and loads, as ``torch.distributed.checkpoint.default_planner``.

State dicts are flattened. What several processes have is written by one: of boxes of tensors by
the one that has the least to write, largest boxes first; of other values by the lowest. Each
process reads the intersections of the boxes that it wants with those stored, whichever process
wrote them, so a checkpoint loads in a world of any size.
"""

from __future__ import annotations

import dataclasses
import io
from collections import defaultdict
from collections.abc import Collection
from math import prod
from typing import Any

from tensorflow_lite_clone import serialization
from tensorflow_lite_clone.distributed.checkpoint import _nested
from tensorflow_lite_clone.distributed.checkpoint._shards import is_tensor, narrowed, shape_of
from tensorflow_lite_clone.distributed.checkpoint.metadata import (
    STORAGE_TYPES,
    BytesStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
)
from tensorflow_lite_clone.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from tensorflow_lite_clone.distributed.checkpoint.planner_helpers import (
    intersection,
    read_items,
    write_items,
)
from tensorflow_lite_clone.distributed.checkpoint.utils import find_state_dict_object
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "create_default_global_load_plan",
    "create_default_global_save_plan",
    "create_default_local_load_plan",
    "create_default_local_save_plan",
]

#: The version of the format of `.metadata`.
VERSION = "1.0.0"


class DefaultSavePlanner(SavePlanner):
    """Plans a save.

    With `dedup_save_to_lowest_rank` what several processes have is written by the lowest of them.
    `flatten_sharded_tensors`, `dedup_replicated_tensors` and `enable_plan_caching` change nothing.
    Subclasses may override `lookup_object` and `transform_object`.
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings: dict[str, _nested.Path] = {}

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:
        if self.flatten_state_dict:
            leaves = _nested.flattened(state_dict)
            self.mappings = {name: leaf.path for name, leaf in leaves.items()}
            state_dict = {name: leaf.value for name, leaf in leaves.items()}
        self.state_dict = state_dict
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> SavePlan:
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        plans = deduplicated(all_plans, self.dedup_save_to_lowest_rank)
        plans, metadata = create_default_global_save_plan(plans)
        if self.flatten_state_dict:
            merged: dict[str, _nested.Path] = {}
            for plan in reversed(plans):
                merged.update(plan.planner_data)
            metadata.planner_data = merged
        _expect_covered(metadata)
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """The value, or the box of a tensor, that an index means."""
        return find_state_dict_object(self.state_dict, index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """What is written for a value: a tensor, or for what is none the bytes of a file of it."""
        if write_item.type is WriteItemType.BYTE_IO:
            stream = io.BytesIO()
            serialization.save(object, stream)
            return stream
        return object


class DefaultLoadPlanner(LoadPlanner):
    """Plans a load.

    With `allow_partial_load` values that the checkpoint lacks stay as they are. Values that are no
    tensors are read by the rules of ``torch.load(weights_only=True)``.
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.allow_partial_load = allow_partial_load
        self._leaves: dict[str, _nested.Leaf] = {}

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        if self.flatten_state_dict:
            self._leaves = _nested.flattened(state_dict)
            state_dict = {name: leaf.value for name, leaf in self._leaves.items()}
        self.state_dict = state_dict
        self.metadata = metadata
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> LoadPlan:
        if self.metadata is None:
            raise ValueError("the planner has not been told what the checkpoint contains")
        return create_default_local_load_plan(
            self.state_dict, self.metadata, not self.allow_partial_load
        )

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        name = read_item.dest_index.fqn
        self.state_dict[name] = serialization.load(value, weights_only=True)
        if self.flatten_state_dict:
            leaf = self._leaves[name]
            leaf.container[leaf.key] = self.state_dict[name]

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Nothing is left to do: `resolve_tensor` gave a view."""

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        """The box of a tensor of the state dict that an index means."""
        return find_state_dict_object(self.state_dict, index)

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """The part of a box that an item fills."""
        return narrowed(tensor, read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Plans a load of what the checkpoint has into an empty state dict.

    With `keys` only values whose path, or a beginning of it, is among them are loaded. Megatron and
    others read whole checkpoints in one process by it.
    """

    def __init__(self, keys: Collection[str] | None = None, *args: Any, **kwargs: Any) -> None:
        self.keys = keys
        super().__init__(*args, **kwargs)

    def _should_include_key(self, key: str, metadata: Metadata) -> bool:
        if self.keys is None or key in self.keys:
            return True
        path = [str(part) for part in metadata.planner_data[key]]
        return any(".".join(path[:end]) in self.keys for end in range(1, len(path) + 1))

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Put tensors of the stored shapes into the state dict; AssertionError if it has any."""
        if state_dict:
            raise AssertionError("not state_dict")
        if metadata is None:
            raise AssertionError("metadata is not None")
        flat = {
            name: empty(stored.size, dtype=stored.properties.dtype)
            if isinstance(stored, TensorStorageMetadata)
            else stored
            for name, stored in metadata.state_dict_metadata.items()
            if self._should_include_key(name, metadata)
        }
        paths = metadata.planner_data
        state_dict.update(flat if paths is None else _nested.nested(flat, paths))
        super().set_up_planner(state_dict, metadata, is_coordinator)


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """All that this process could write."""
    return SavePlan(
        [item for name, value in state_dict.items() for item in write_items(name, value)]
    )


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """The plans, with hints where each box stands in the list of boxes, and the contents.

    Raises ValueError where processes have a value by the same name and of different shapes.
    """
    contents: dict[str, STORAGE_TYPES] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            name, data = item.index.fqn, item.tensor_data
            if data is None:
                contents.setdefault(name, BytesStorageMetadata())
                items.append(item)
                continue
            stored = contents.setdefault(
                name, TensorStorageMetadata(data.properties, data.size, [])
            )
            if not isinstance(stored, TensorStorageMetadata) or stored.size != data.size:
                raise ValueError(f"{name} is not the same on all processes: {stored}, {data}")
            if rewrite_index_hints:
                index = dataclasses.replace(item.index, index=len(stored.chunks))
                item = dataclasses.replace(item, index=index)
            stored.chunks.append(data.chunk)
            items.append(item)
        plans.append(dataclasses.replace(plan, items=items))
    return plans, Metadata(contents, version=VERSION)


def deduplicated(plans: list[SavePlan], to_lowest_rank: bool = False) -> list[SavePlan]:
    """The plans, with each index in one of them."""
    ranks: dict[MetadataIndex, list[int]] = defaultdict(list)
    sizes: dict[MetadataIndex, int] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            ranks[item.index].append(rank)
            sizes[item.index] = item.tensor_storage_size() or 0
    loads = [0] * len(plans)
    chosen: dict[MetadataIndex, int] = {}
    for index in sorted(ranks, key=lambda index: sizes[index], reverse=True):
        by_load = not to_lowest_rank and sizes[index]
        chosen[index] = min(ranks[index], key=lambda rank: (loads[rank] if by_load else 0, rank))
        loads[chosen[index]] += sizes[index]
    return [
        dataclasses.replace(plan, items=[item for item in plan.items if chosen[item.index] == rank])
        for rank, plan in enumerate(plans)
    ]


def _expect_covered(metadata: Metadata) -> None:
    """ValueError unless the boxes of each tensor cover it, each element once."""
    for name, stored in metadata.state_dict_metadata.items():
        if isinstance(stored, BytesStorageMetadata):
            continue
        total = sum([prod(chunk.sizes) for chunk in stored.chunks])
        if total != prod(stored.size):
            raise ValueError(
                f"Failed to validate global plan: the processes have {total} elements of {name}, "
                f"which has {prod(stored.size)} (shape {tuple(stored.size)})"
            )
        boxes = sorted(stored.chunks, key=lambda box: tuple(box.offsets))
        for place, a in enumerate(boxes):
            for b in boxes[place + 1 :]:
                if b.offsets[0] >= a.offsets[0] + a.sizes[0]:
                    break  # so do those behind it
                if intersection(a, b) is not None:
                    raise ValueError(f"Failed to validate global plan: in {name} {a} overlaps {b}")


def create_default_local_load_plan(
    state_dict: dict[str, Any], metadata: Metadata, strict: bool = True
) -> LoadPlan:
    """What this process must read to fill `state_dict`.

    Raises RuntimeError for a name that the checkpoint lacks, unless `strict` is False; ValueError
    for a tensor of another shape. What else the checkpoint has is left.
    """
    items: list[ReadItem] = []
    for name, value in state_dict.items():
        stored = metadata.state_dict_metadata.get(name)
        if stored is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            continue
        if (
            isinstance(stored, TensorStorageMetadata)
            and is_tensor(value)
            and stored.size != shape_of(value)
        ):
            raise ValueError(
                f"Size mismatch between saved {stored.size} and current: {shape_of(value)} "
                f"for {name}"
            )
        items += read_items(name, stored, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans as they are: no process needs to know what others read."""
    return all_plans

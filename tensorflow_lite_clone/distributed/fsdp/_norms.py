"""Norms of tensors of which each process has some rows."""

from __future__ import annotations

from math import inf
from typing import Any

from tensorflow_lite_clone.distributed.collectives import all_reduce
from tensorflow_lite_clone.distributed.fsdp._shards import Sharded
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.distributed.work import ReduceOp
from tensorflow_lite_clone.nn.utils.clip_grad import get_total_norm, norms_over_processes
from tensorflow_lite_clone.ops.join import stack
from tensorflow_lite_clone.ops.norms import vector_norm
from tensorflow_lite_clone.tensor import Tensor


def norm_over_processes(
    parameters: list[Tensor], entries: list[Tensor], order: float
) -> Tensor | None:
    """The norm of whole tensors, of which some are cut; None if none is.

    All processes of the groups have to ask. For the order p it is the p-th root of the sum over
    processes of their parts' norms to the power of p; for infinity the largest of them.
    """
    groups: dict[Any, list[Tensor]] = {}
    for entry in entries:
        group = entry.cut.group if isinstance(entry, Sharded) else None
        part = entry.to_local() if isinstance(entry, Sharded) else entry
        groups.setdefault(group, []).append(part)
    if set(groups) == {None}:
        if not any([isinstance(entry, Sharded) for entry in entries]):
            return None
        return get_total_norm(groups[None], order)
    device = entries[0].device
    norms = [_over(parts, order, group).to(device) for group, parts in groups.items()]
    return norms[0] if len(norms) == 1 else vector_norm(stack(norms), order)


def _over(parts: list[Tensor], order: float, group: ProcessGroup | None) -> Tensor:
    present = [part for part in parts if part.numel()]
    norm = get_total_norm(present, order) if present else parts[0].new_zeros(())
    if group is None:
        return norm
    if norm.is_cpu and "nccl" in group.name():  # rows that lie on the CPU between their uses
        norm = norm.cuda()
    if order == inf:
        all_reduce(norm, ReduceOp.MAX, group)
        return norm
    power = norm**order
    all_reduce(power, ReduceOp.SUM, group)
    return power ** (1 / order)


norms_over_processes.append(norm_over_processes)

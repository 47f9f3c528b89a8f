"""Collectives that give new tensors and have gradients.

A group is a `ProcessGroup`, a `DeviceMesh` of one dimension, a pair of a mesh and the number of its
dimension, or the list of all ranks. Results are there when a function returns: work that is under
way on a device is in the order of its stream, so `wait_tensor` has nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.autograd.function import Function
from tensorflow_lite_clone.distributed.device_mesh import DeviceMesh
from tensorflow_lite_clone.distributed.distributed_c10d import (
    ReduceOp,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group_of,
)
from tensorflow_lite_clone.distributed.nn import functional
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.tensor import Tensor


class AsyncCollectiveTensor(Tensor):
    """A result that is not there yet, of which there are none; diffusers asks whether one is."""


_OPS = {op.name.lower(): op for op in ReduceOp}


def _group(group: Any) -> Any:
    """The process group that an argument means."""
    if isinstance(group, DeviceMesh):
        return group.get_group()
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1])
    if isinstance(group, list):
        world = group_of(None)
        if sorted(group) != get_process_group_ranks(world):
            raise ValueError(f"ranks {group} are not all ranks: make their group with new_group")
        return world
    return group


def _operation(name: str) -> ReduceOp:
    if name.lower() not in _OPS:
        raise RuntimeError(f"Unrecognized reduce_op: {name}")
    return _OPS[name.lower()]


class _OnlySums(Function):
    """The identity, which says in the backward pass that a reduction has no gradient."""

    @staticmethod
    def forward(ctx: Any, result: Tensor, what: str, name: str) -> Tensor:
        ctx.what = f"{what} backward only supports 'sum' reduction, got '{name}'"
        return result.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        raise RuntimeError(ctx.what)


def _reduced(result: Tensor, what: str, op: ReduceOp) -> Tensor:
    if op is ReduceOp.SUM or not result.requires_grad:
        return result
    return _OnlySums.apply(result, what, op.name.lower())


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, which is there."""
    return tensor


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:  # noqa: N803
    """What `reduceOp`, such as ``"sum"``, makes of the tensors of all processes.

    The gradient is reduced by a sum; that of another reduction raises RuntimeError.
    """
    op = _operation(reduceOp)
    return _reduced(functional.all_reduce(self, op, _group(group)), "all_reduce", op)


def all_reduce_coalesced(
    self: list[Tensor],
    reduceOp: str,  # noqa: N803
    group: Any,
    tag: str = "",
) -> list[Tensor]:
    """`all_reduce` of several tensors."""
    return [all_reduce(tensor, reduceOp, group) for tensor in self]


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of the process `src`."""
    return functional.broadcast(self, src, _group(group))


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes, joined along `gather_dim`."""
    stacked = functional.GatherInto.apply(self, _group(group))
    return stacked.flatten(0, 1) if gather_dim == 0 else cat(stacked.unbind(0), gather_dim)


def reduce_scatter_tensor(
    self: Tensor,
    reduceOp: str,  # noqa: N803
    scatter_dim: int,
    group: Any,
    tag: str = "",
) -> Tensor:
    """This process's slice along `scatter_dim` of what `reduceOp` makes of all tensors.

    The size has to be a multiple of the number of processes, else AssertionError. The gradient of
    another reduction than a sum raises RuntimeError.
    """
    op, found = _operation(reduceOp), _group(group)
    processes = get_world_size(found)
    if self.shape[scatter_dim] % processes:
        raise AssertionError(
            f"input dimension {scatter_dim} ({self.shape[scatter_dim]} must be a multiple of "
            f"group_size {processes})"
        )
    parts = stack(self.chunk(processes, scatter_dim))
    result = functional.ReduceScatterFrom.apply(parts, op, found)
    return _reduced(result, "reduce_scatter_tensor", op)


def all_to_all_single(
    self: Tensor,
    output_split_sizes: list[int] | None,
    input_split_sizes: list[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """The rows that each process sends to this one; without sizes, as many from each."""
    sizes = output_split_sizes, input_split_sizes
    return functional.AllToAllSingle.apply(self, *sizes, _group(group))


def permute_tensor(self: Tensor, src_dst: Sequence[int], group: Any, tag: str = "") -> Tensor:
    """The tensor of the process that sends to this one: process i sends to ``src_dst[i]``.

    Both are numbers in the group, and every process sends to another one. ValueError otherwise.
    """
    found = _group(group)
    processes, own = get_world_size(found), get_rank(found)
    if sorted(src_dst) != list(range(processes)):
        raise ValueError(f"src_dst must be a permutation of {processes} processes: {src_dst}")
    rows = len(self)
    sent, received = [0] * processes, [0] * processes
    sent[src_dst[own]] = received[list(src_dst).index(own)] = rows
    return functional.AllToAllSingle.apply(self, received, sent, found)


# PyTorch has two names for each: here all have gradients.
all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_tensor_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single

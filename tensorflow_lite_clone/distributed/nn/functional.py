"""Collectives with gradients: each gives new tensors, and its gradient is its adjoint collective.

A collective is a linear map of the tensors of all processes together; for the loss that is the sum
of the losses of all processes, its gradient is the transposed map:

======================= =======================
forward                 gradient
======================= =======================
all_reduce              all_reduce
broadcast               reduce
all_gather              reduce_scatter
gather                  scatter
all_to_all              all_to_all, sent back
======================= =======================

and the other way round. Every process of the group has to call `backward`. For reductions other
than a sum PyTorch has the same rules (`all_reduce` reduces the gradients by the same operation),
and so they are here; they are the derivatives for sums and averages only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.autograd.function import Function
from tensorflow_lite_clone.distributed import collectives
from tensorflow_lite_clone.distributed.distributed_c10d import ReduceOp, get_rank, get_world_size
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.ops.shape.memory import contiguous_format
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def _fresh(tensor: Tensor) -> Tensor:
    """A copy in dense memory, which a collective may overwrite."""
    return tensor.clone(memory_format=contiguous_format)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, op: ReduceOp, group: Any) -> Tensor:
        ctx.op, ctx.group = op, group
        result = _fresh(tensor)
        collectives.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return _AllReduce.apply(g, ctx.op, ctx.group), None, None


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, src: int, group: Any) -> Tensor:
        ctx.src, ctx.group = src, group
        result = _fresh(tensor)
        collectives.broadcast(result, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        gx = _Reduce.apply(g, ctx.src, ReduceOp.SUM, ctx.group)
        return gx if get_rank() == ctx.src else gx * 0, None, None


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, dst: int, op: ReduceOp, group: Any) -> Tensor:
        ctx.dst, ctx.group = dst, group
        result = _fresh(tensor)
        collectives.reduce(result, dst, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return _Broadcast.apply(g, ctx.dst, ctx.group), None, None, None


class GatherInto(Function):
    """The tensors (...) of all processes, stacked: (processes, ...)."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Any) -> Tensor:
        ctx.group = group
        result = tensor.new_empty((get_world_size(group), *tensor.shape))
        collectives.all_gather_into_tensor(result, tensor.contiguous(), group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return ReduceScatterFrom.apply(g, ReduceOp.SUM, ctx.group), None


class ReduceScatterFrom(Function):
    """This process's entry of the sum of the tensors (processes, ...) of all processes."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, op: ReduceOp, group: Any) -> Tensor:
        ctx.group = group
        result = tensor.new_empty(tensor.shape[1:])
        collectives.reduce_scatter_tensor(result, tensor.contiguous(), op, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return GatherInto.apply(g, ctx.group), None, None


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, dst: int, group: Any) -> tuple[Tensor, ...]:
        ctx.dst, ctx.group = dst, group
        results = [tensor.new_zeros(tensor.shape) for _ in range(get_world_size(group))]
        here = results if get_rank() == dst else None
        collectives.gather(tensor.contiguous(), here, dst, group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        return _Scatter.apply(ctx.dst, ctx.group, *grads), None, None


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        result = tensors[0].new_empty(tensors[0].shape)
        parts = [tensor.contiguous() for tensor in tensors]
        collectives.scatter(result, parts if get_rank() == src else None, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return None, None, *_Gather.apply(g, ctx.src, ctx.group)


class AllToAllSingle(Function):
    """Rows for each process, `sent` of them to each; `received` rows from each come back."""

    @staticmethod
    def forward(
        ctx: Any,
        tensor: Tensor,
        received: Sequence[int] | None,
        sent: Sequence[int] | None,
        group: Any,
    ) -> Tensor:
        ctx.received, ctx.sent, ctx.group = received, sent, group
        rows = len(tensor) if received is None else sum(received)
        result = tensor.new_empty((rows, *tensor.shape[1:]))
        there, here = [None if sizes is None else list(sizes) for sizes in (received, sent)]
        collectives.all_to_all_single(result, tensor.contiguous(), there, here, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return AllToAllSingle.apply(g, ctx.sent, ctx.received, ctx.group), None, None, None


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of the process `src`. Its gradient is the sum of those of all processes."""
    return _Broadcast.apply(tensor, src, group)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes, in the process `dst`; zeros elsewhere."""
    return _Gather.apply(tensor, dst, group)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """This process's of the tensors of the process `src`; others give tensors of that shape."""
    return _Scatter.apply(src, group, *tensors)


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """What `op` makes of the tensors of all processes, in the process `dst`."""
    return _Reduce.apply(tensor, dst, op, group)


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
) -> Tensor:
    """What `op` makes of the inputs of all processes that are meant for this one; in `output`."""
    return output.copy_(ReduceScatterFrom.apply(stack(list(input_list)), op, group))


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes."""
    return GatherInto.apply(tensor, group).unbind(0)


def _all_gather_base(output_tensor: Tensor, input_tensor: Tensor, group: Any = None) -> Tensor:
    """The tensors of all processes, one after the other, in `output_tensor`."""
    return output_tensor.copy_(GatherInto.apply(input_tensor, group).view(output_tensor.shape))


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """What each process sends to this one: tensors of the shapes of `output_tensor_list`."""
    sent = [tensor.numel() for tensor in input_tensor_list]
    received = [tensor.numel() for tensor in output_tensor_list]
    flat = cat([tensor.reshape(-1) for tensor in input_tensor_list])
    parts = AllToAllSingle.apply(flat, received, sent, group).split(received)
    return tuple([part.view(like.shape) for part, like in zip(parts, output_tensor_list)])


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
) -> Tensor:
    """As `all_to_all`, with the parts of one tensor along its first dimension; in `output`."""
    result = AllToAllSingle.apply(input, output_split_sizes, input_split_sizes, group)
    return output.copy_(result.view(output.shape))


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """What `op` makes of the tensors of all processes. The gradient is reduced in the same way."""
    return _AllReduce.apply(tensor, op, group)

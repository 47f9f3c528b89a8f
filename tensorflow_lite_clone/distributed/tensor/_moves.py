"""Changing how a tensor is placed on a mesh: the collectives, and their gradient.

Along one dimension of a mesh, of n processes:

=========================== ===================================================
Partial to Replicate        all_reduce
Partial to Shard            reduce_scatter
Shard to Replicate          all_gather
Shard to another Shard      all_to_all
Replicate to Shard          each takes its slice
Replicate to Partial        each takes the n-th part (of a sum)
=========================== ===================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tensorflow_lite_clone.autograd.function import Function
from tensorflow_lite_clone.distributed import collectives
from tensorflow_lite_clone.distributed.distributed_c10d import ReduceOp
from tensorflow_lite_clone.distributed.tensor._layout import (
    Layout,
    Placements,
    place_in,
    resting,
)
from tensorflow_lite_clone.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    piece,
)
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.ops.shape.memory import contiguous_format
from tensorflow_lite_clone.tensor import Tensor


class Move(Function):
    """This process's part of a tensor under other placements.

    `gradient` says how the gradient of the result is placed: ``resting(target)``, or Partial where
    each process computes a term of it.
    """

    @staticmethod
    def forward(
        ctx: Any, local: Tensor, source: Layout, target: Placements, gradient: Placements
    ) -> Tensor:
        ctx.source, ctx.gradient = source, gradient
        return move(local, source, target)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        back = ctx.source.placements_of_gradient
        gx = Move.apply(g, ctx.source.with_placements(ctx.gradient), back, back)
        return gx, None, None, None


def moved(
    local: Tensor, source: Layout, target: Placements, gradient: Placements | None = None
) -> Tensor:
    """`Move`, where there is anything to do."""
    gradient = resting(target) if gradient is None else gradient
    if source.placements == target and source.placements_of_gradient == gradient:
        return local
    return Move.apply(local, source, target, gradient)


def move(local: Tensor, source: Layout, target: Placements) -> Tensor:
    """This process's part under the placements `target`; nothing is recorded.

    Where several dimensions of the mesh cut one dimension of the tensor, the later ones cut the
    slices of the earlier ones. So what changes is first made whole, the last dimension of the mesh
    first, and then cut, the first dimension first. What nothing stands in the way of goes from
    terms or slices to slices at once.
    """
    now = list(source.placements)
    for i in reversed(range(len(now))):
        if not isinstance(now[i], Replicate) and not _stays(i, now, target):
            direct = target[i] if _is_free(i, now, target) else Replicate()
            local, now[i] = _step(local, i, source, now, direct), direct
    for i, placement in enumerate(target):
        if now[i] != placement:
            local, now[i] = _step(local, i, source, now, placement), placement
    return local


def gathered(local: Tensor, layout: Layout) -> Tensor:
    """The whole, from the parts of all processes; nothing is recorded."""
    return move(local, layout, (Replicate(),) * layout.mesh.ndim)


def part_of(whole: Tensor, layout: Layout) -> Tensor:
    """This process's part of a tensor that it has; nothing is recorded."""
    places = (Replicate(),) * layout.mesh.ndim
    return move(whole, layout.with_placements(places), layout.placements)


def _cuts(placement: Placement, dim: int) -> bool:
    return isinstance(placement, Shard) and placement.dim == dim


def _changes_cuts_of(dim: int, until: int, now: Sequence[Placement], target: Placements) -> bool:
    """Whether an earlier dimension of the mesh begins or ceases to cut a tensor's dimension."""
    return any(
        [
            before != after and (_cuts(before, dim) or _cuts(after, dim))
            for before, after in zip(now[:until], target)
        ]
    )


def _stays(i: int, now: Sequence[Placement], target: Placements) -> bool:
    here = now[i]
    if here != target[i]:
        return False
    return not (isinstance(here, Shard) and _changes_cuts_of(here.dim, i, now, target))


def _is_free(i: int, now: Sequence[Placement], target: Placements) -> bool:
    """Whether dimension i of the mesh can be cut as in `target` already."""
    goal = target[i]
    if not isinstance(goal, Shard) or now[i] == goal:
        return False
    return not _changes_cuts_of(goal.dim, i, now, target)


def _step(
    local: Tensor, i: int, layout: Layout, now: Sequence[Placement], after: Placement
) -> Tensor:
    """Change the placement along dimension i of the mesh."""
    parts, index, before = layout.mesh.size(i), place_in(layout.mesh)[i], now[i]
    if parts == 1:
        return local
    if isinstance(before, Replicate):
        if isinstance(after, Shard):
            start, length = piece(local.shape[after.dim], parts, index)
            part = local.narrow(after.dim, start, length)
            return part.clone(memory_format=contiguous_format)
        assert isinstance(after, Partial)
        return local / parts if after.reduce_op == "sum" else local.clone()
    group = layout.mesh.get_group(i)
    if isinstance(before, Partial):
        op = ReduceOp[before.reduce_op.upper()]
        if isinstance(after, Shard):
            return _reduce_scatter(local, after.dim, parts, index, op, group)
        whole = local.clone(memory_format=contiguous_format)
        collectives.all_reduce(whole, op, group)
        return whole
    assert isinstance(before, Shard)
    size = _size(i, layout, now, before.dim)
    if isinstance(after, Shard):
        return _exchange(local, before.dim, after.dim, size, parts, index, group)
    return _gather(local, before.dim, size, parts, group)


def _size(i: int, layout: Layout, now: Sequence[Placement], dim: int) -> int:
    """The size of a tensor's dimension before dimension i of the mesh cuts it."""
    size = layout.shape[dim]
    for parts, index, placement in zip(layout.mesh.shape[:i], place_in(layout.mesh), now):
        if _cuts(placement, dim):
            _, size = piece(size, parts, index)
    return size


def _padded(x: Tensor, dim: int, size: int) -> Tensor:
    """`x` with zeros behind it along `dim`: all processes send as much."""
    missing = size - x.shape[dim]
    if not missing:
        return x
    return cat([x, x.new_zeros((*x.shape[:dim], missing, *x.shape[dim + 1 :]))], dim)


def _gather(local: Tensor, dim: int, size: int, parts: int, group: Any) -> Tensor:
    _, length = piece(size, parts, 0)
    part = _padded(local, dim, length).contiguous()
    stacked = part.new_empty((parts, *part.shape))
    collectives.all_gather_into_tensor(stacked, part, group)
    whole = stacked.flatten(0, 1) if dim == 0 else cat(stacked.unbind(0), dim)
    return whole.narrow(dim, 0, size)


def _reduce_scatter(
    local: Tensor, dim: int, parts: int, index: int, op: ReduceOp, group: Any
) -> Tensor:
    size = local.shape[dim]
    _, length = piece(size, parts, 0)
    stacked = stack(_padded(local, dim, parts * length).chunk(parts, dim))
    part = stacked.new_empty(stacked.shape[1:])
    collectives.reduce_scatter_tensor(part, stacked, op, group)
    return part.narrow(dim, 0, piece(size, parts, index)[1])


def _exchange(
    local: Tensor, before: int, after: int, size: int, parts: int, index: int, group: Any
) -> Tensor:
    """From slices along `before`, which is of `size` in all, to slices along `after`."""
    across = local.shape[after]
    sent = [local.narrow(after, *piece(across, parts, k)).reshape(-1) for k in range(parts)]
    shapes = []
    for k in range(parts):
        shape = list(local.shape)
        shape[before], shape[after] = piece(size, parts, k)[1], piece(across, parts, index)[1]
        shapes.append(shape)
    counts = [prod(shape) for shape in shapes]
    received = local.new_empty(sum(counts))
    collectives.all_to_all_single(
        received, cat(sent), counts, [part.numel() for part in sent], group
    )
    pieces = [part.view(shape) for part, shape in zip(received.split(counts), shapes)]
    return cat(pieces, before)

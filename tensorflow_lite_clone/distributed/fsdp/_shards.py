"""Tensors of which each process of a group keeps some rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.torch_function import disabled
from tensorflow_lite_clone.distributed.collectives import all_gather_into_tensor
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.distributed.tensor._layout import Layout, own_part
from tensorflow_lite_clone.distributed.tensor._moves import gathered, part_of
from tensorflow_lite_clone.tensor import Parameter, Tensor, new_tensor


@dataclass(frozen=True)
class Cut:
    """How a tensor of `shape` is cut along its first dimension over the processes of `group`.

    Each process keeps ceil(rows / processes) rows, the last ones what is left, perhaps none.
    Without a group there is one process, which keeps all. `within` is the layout of the tensor of
    which this one is itself a part, by tensor parallelism.
    """

    shape: tuple[int, ...]
    group: ProcessGroup | None
    within: Layout | None = None

    @property
    def size(self) -> int:
        """How many processes share the tensor."""
        return 1 if self.group is None else self.group.size()

    @property
    def numel(self) -> int:
        """The elements of the whole tensor."""
        return self.shape[0] * self.row

    @property
    def row(self) -> int:
        """The elements of a row."""
        count = 1
        for length in self.shape[1:]:
            count *= length
        return count

    @property
    def rows(self) -> int:
        """The rows that every process has room for."""
        return -(-self.shape[0] // self.size)

    @property
    def room(self) -> int:
        """The elements that every process has room for: `rows` rows."""
        return self.rows * self.row

    def own(self, rank: int | None = None) -> slice:
        """The rows of this process, or of another in the group."""
        if rank is None:
            rank = 0 if self.group is None else self.group.rank()
        start = min(rank * self.rows, self.shape[0])
        return slice(start, min(start + self.rows, self.shape[0]))

    @property
    def local_shape(self) -> tuple[int, ...]:
        """The shape of this process's rows."""
        rows = self.own()
        return (rows.stop - rows.start, *self.shape[1:])

    def part_of(self, whole: Tensor) -> Tensor:
        """This process's rows of a whole tensor, a view."""
        return whole[self.own()]

    def padded(self, part: Tensor) -> Tensor:
        """This process's rows as a line of `room` elements, with zeros behind."""
        line = part.reshape(-1)
        if line.numel() == self.room:
            return line
        room = line.new_zeros(self.room)
        room[: line.numel()].copy_(line)
        return room

    @no_grad()
    def gathered(self, part: Tensor) -> Tensor:
        """The whole tensor from the rows of all processes, which all ask for it."""
        part = part.detach()
        if self.group is None:
            return part.clone()
        line = self.group.carriable(self.padded(part))
        whole = line.new_empty(self.size * self.room)
        all_gather_into_tensor(whole, line.contiguous(), self.group)
        return whole[: self.numel].view(self.shape).to(part.device)


class Sharded(Tensor):
    """This process's rows of a tensor: functions see these rows, `cut` knows the whole."""

    __slots__ = ()

    __torch_function__ = disabled

    cut: Cut

    @property
    def groups_of_parts(self) -> tuple[ProcessGroup, ...]:
        """The groups whose processes have the other parts, one for each cut."""
        own = () if self.cut.group is None else (self.cut.group,)
        return own if self.cut.within is None else own + self.cut.within.groups_of_parts

    @classmethod
    def over(cls, part: Tensor, cut: Cut) -> Self:
        """The tensor `part`, out of any graph, as the rows of a whole."""
        made = part.detach().as_subclass(cls)
        made.cut = cut
        return made

    def to_local(self) -> Tensor:
        """The rows as an ordinary tensor over the same memory."""
        return new_tensor(self._storage)

    def full_tensor(self) -> Tensor:
        """The whole tensor, from all processes of the group, each of which has to ask for it."""
        whole, within = self.cut.gathered(self), self.cut.within
        return whole if within is None else gathered(whole, within)

    def __shards__(self) -> tuple[tuple[int, ...], list[tuple[tuple[int, ...], Tensor]]]:
        """The whole's shape, where the rows begin in it, and the rows: for checkpoints."""
        rows = self.cut.own()
        place = (rows.start, *[0] * (len(self.cut.shape) - 1))
        shape, within = self.cut.shape, self.cut.within
        if within is not None:
            _, before = own_part(within.shape, within.mesh, within.placements)
            shape, place = within.shape, tuple([a + b for a, b in zip(before, place)])
        return shape, [(place, self.to_local())] if rows.start < rows.stop else []

    def detach(self) -> Sharded:
        """As of any tensor; what it gives knows the whole, too."""
        return Sharded.over(self.to_local(), self.cut)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.to_local().__reduce_ex__(protocol)  # a group means nothing elsewhere


class ShardedParameter(Sharded, Parameter):
    """A Parameter of which this process keeps some rows: what the optimizer updates.

    Its shape is that of the rows, which may be none; ``full_tensor()`` gives the whole.
    """

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> ShardedParameter:
        if id(self) not in memo:
            copied = ShardedParameter.over(self.to_local().clone(), self.cut)
            memo[id(self)] = copied.requires_grad_(self.requires_grad)
        return memo[id(self)]

    def __repr__(self) -> str:
        rows = self.cut.own()
        return (
            f"ShardedParameter(rows {rows.start}:{rows.stop} of {self.cut.shape}, "
            f"{self.to_local()!r})"
        )


def rows_of(value: Tensor, cut: Cut, name: str) -> Tensor:
    """This process's rows, from them or from the whole tensor.

    Raises ValueError if `value` has neither shape.
    """
    if isinstance(value, Sharded) and value.cut.shape == cut.shape and value.cut.group is cut.group:
        return value.to_local()
    if hasattr(value, "full_tensor"):  # cut in another way
        value = value.full_tensor()
    if cut.within is not None and value.shape == cut.within.shape:
        value = part_of(value.detach(), cut.within)
    if tuple(value.shape) == cut.shape:
        return cut.part_of(value.detach())
    if tuple(value.shape) == cut.local_shape:
        return value.detach()
    raise ValueError(
        f"{name}: expected a whole tensor of shape {cut.shape} or this process's rows, of shape "
        f"{cut.local_shape}, but got a tensor of shape {tuple(value.shape)}"
    )

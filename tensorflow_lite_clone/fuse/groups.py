"""Which computations become one kernel, and what that computes.

Backends say what waits, which memory is the same, what a kernel has room for, and which results
somebody still needs; here is the order that must be kept, and the expressions of a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from tensorflow_lite_clone.fuse.symbol import Symbol
from tensorflow_lite_clone.fuse.target import Target


class Item(Protocol):
    """Results of one shape that are computed element by element."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def read(self) -> set[Any]:
        """What stands for the memory that it reads."""

    @property
    def written(self) -> set[Any]:
        """What stands for the memory that it writes."""


I = TypeVar("I", bound=Item)


class Group(Generic[I]):
    """Items that become one kernel, and the memory that they read and write."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.items: list[I] = []
        self.read: set[Any] = set()
        self.written: set[Any] = set()

    def has_room(self, item: I) -> bool:
        """Whether the kernel may compute one more item."""
        return True

    def precedes(self, item: I) -> bool:
        """Whether an item depends on this group, or would overwrite what it reads."""
        writes_apart = self.written.isdisjoint(item.read | item.written)
        return not (writes_apart and self.read.isdisjoint(item.written))

    def add(self, item: I) -> None:
        """Let the kernel compute an item, too."""
        self.items.append(item)
        self.read |= item.read
        self.written |= item.written


G = TypeVar("G", bound=Group)


def group_for(groups: list[G], item: I, new: Callable[[tuple[int, ...]], G]) -> G:
    """The last group that an item may join without overtaking what it depends on, or a new one."""
    for group in reversed(groups):
        if group.shape == item.shape and group.has_room(item):
            return group
        if group.precedes(item):
            break
    groups.append(new(item.shape))
    return groups[-1]


def groups_of(items: Iterable[I], new: Callable[[tuple[int, ...]], G]) -> list[G]:
    """Items that become one kernel each, in an order that keeps what depends on each other."""
    groups: list[G] = []
    for item in items:
        group_for(groups, item, new).add(item)
    return groups


class Joined:
    """The expressions of a group, over the arrays and numbers that it is given.

    A key says which elements an array has: what is written under it is read under it.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.given: list[Any] = []
        self.computed: dict[Any, Symbol] = {}  # by key
        self._operands: dict[Any, Symbol] = {}

    def operand(self, key: Any, value: Any, dtype: Any) -> Symbol:
        """The symbol of what is given."""
        if (key, dtype) not in self._operands:
            position = len(self.given)
            made = Symbol(self.target, "operand", dtype, (), position, value.shape)
            self._operands[key, dtype] = made
            self.given.append(value)
        return self._operands[key, dtype]

    def read(self, key: Any, value: Any, dtype: Any) -> Symbol:
        """The symbol of an array, as the group has computed it, or else as it is given."""
        if key in self.computed:
            return self.target.cast(self.computed[key], dtype)
        return self.operand(key, value, dtype)

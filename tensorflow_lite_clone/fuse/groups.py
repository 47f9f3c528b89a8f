"""Which computations become one kernel, and what that computes.

Backends say what waits, which memory is the same, what a kernel has room for, and which results
somebody still needs; here is the order that must be kept, and the expressions of a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from tensorflow_lite_clone.fuse.symbol import Symbol
from tensorflow_lite_clone.fuse.target import Target


class Item:
    """Results of one shape that are computed element by element.

    `read` and `written` have what stands for the memory that is read and written.
    """

    def __init__(
        self, shape: tuple[int, ...], read: Iterable[Any] = (), written: Iterable[Any] = ()
    ) -> None:
        self.shape, self.read, self.written = shape, set(read), set(written)

    def precedes(self, later: Item) -> bool:
        """Whether a later item depends on this one, or overwrites what this one reads."""
        writes_apart = self.written.isdisjoint(later.read | later.written)
        return not (writes_apart and self.read.isdisjoint(later.written))


AnyItem = TypeVar("AnyItem", bound=Item)


class Group(Item, Generic[AnyItem]):
    """Items that become one kernel."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(shape)
        self.items: list[AnyItem] = []

    def has_room(self, item: AnyItem) -> bool:
        """Whether the kernel can compute an item, too."""
        return True

    def add(self, item: AnyItem) -> None:
        """Let the kernel compute an item, too."""
        self.items.append(item)
        self.read |= item.read
        self.written |= item.written


AnyGroup = TypeVar("AnyGroup", bound=Group)


def group_for(
    groups: list[AnyGroup], item: Any, new: Callable[[tuple[int, ...]], AnyGroup]
) -> AnyGroup:
    """The last group that an item may join without overtaking what it depends on, or a new one."""
    for group in reversed(groups):
        if group.shape == item.shape and group.has_room(item):
            return group
        if group.precedes(item):
            break
    groups.append(new(item.shape))
    return groups[-1]


def groups_of(items: Iterable[Any], new: Callable[[tuple[int, ...]], AnyGroup]) -> list[AnyGroup]:
    """Items that become one kernel each, in an order that keeps what depends on each other."""
    groups: list[AnyGroup] = []
    for item in items:
        group_for(groups, item, new).add(item)
    return groups


class Joined:
    """The expressions of a group, over the arrays and numbers that it reads.

    A key says which elements an array has: what is written under it is read under it.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.arguments: list[Any] = []
        self.computed: dict[Any, Symbol] = {}  # by key
        self._operands: dict[Any, Symbol] = {}

    def operand(self, key: Any, value: Any, dtype: Any) -> Symbol:
        """The symbol of an argument."""
        if (key, dtype) not in self._operands:
            position = len(self.arguments)
            symbol = Symbol(self.target, "operand", dtype, (), position, value.shape)
            self._operands[key, dtype] = symbol
            self.arguments.append(value)
        return self._operands[key, dtype]

    def read(self, key: Any, value: Any, dtype: Any) -> Symbol:
        """The symbol of an array, as the group has computed it, or of an argument."""
        if key in self.computed:
            return self.target.cast(self.computed[key], dtype)
        return self.operand(key, value, dtype)

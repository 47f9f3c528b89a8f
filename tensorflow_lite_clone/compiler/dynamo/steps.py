"""Recorded calls, kept as a tree: what a function did from one point of its code on, so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensorflow_lite_clone.compiler.dynamo.ambient import Ambient
from tensorflow_lite_clone.compiler.dynamo.pending import (
    PENDING,
    Snapshot,
    Unsettled,
    hold,
    promise_of,
    release,
)
from tensorflow_lite_clone.compiler.signature import UnsuitableError
from tensorflow_lite_clone.core.device import Device, Layout
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.core.strides import MemoryFormat
from tensorflow_lite_clone.fx._pytree import map_instances
from tensorflow_lite_clone.tensor import Tensor

_CONSTANTS = frozenset(
    (int, bool, str, bytes, complex, type(None), type(...), DType, Device, Layout, MemoryFormat)
)
_TENSORS = frozenset((*PENDING, *PENDING.values()))


class Value:
    """In a recorded call: the value of this number."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"%{self.number}"


_values: list[Value] = []


def value(number: int) -> Value:
    """The one object for a number."""
    while number >= len(_values):
        _values.append(Value(len(_values)))
    return _values[number]


class Input:
    """A tensor that a recorded call is given from outside."""

    __slots__ = ("name", "snapshot")

    def __init__(self, name: str, snapshot: Snapshot) -> None:
        self.name = name
        self.snapshot = snapshot


class Step:
    """A recorded call, and what it gives.

    Each of `inputs` and of the `fresh` tensors is the value of the number that it stands with.
    `leaves` are all tensors in the result, with their paths in it. `results` is what `rebuild`
    makes the result of, `Value`s and constants, or None where the call turns a switch. `changed`
    are earlier values that look different after the call, `writes` the numbers of inputs that it
    writes into. `ambient` is what it was recorded in. `single` is the only fresh value where that
    is the result, and nothing else happens.
    """

    __slots__ = (
        "after",
        "ambient",
        "args",
        "changed",
        "form",
        "fresh",
        "auxiliary_outputs",
        "inputs",
        "kwargs",
        "leaves",
        "rebuild",
        "renames",
        "results",
        "single",
        "stack",
        "target",
        "writes",
    )

    after: State

    def __init__(self, form: str, target: Any, args: Any, kwargs: Any, ambient: Ambient) -> None:
        self.form = form
        self.target = target
        self.args = args
        self.kwargs = kwargs
        self.ambient: Ambient = ambient
        self.inputs: list[tuple[int, Input]] = []
        self.fresh: list[tuple[int, Snapshot]] = []
        self.changed: list[tuple[int, Snapshot]] = []
        self.writes: list[int] = []  # inputs, by their numbers
        self.leaves: list[tuple[tuple, int]] = []
        self.results: list[Any] | None = []
        self.rebuild: Callable[[Iterator[Any]], Any] = next
        self.renames = False
        self.auxiliary_outputs: list[str] = []
        self.single: tuple[int, Snapshot] | None = None
        self.stack: Any = None


class State:
    """A point in the tree: `following` calls by their keys, `compiled` for what was asked for."""

    __slots__ = ("compiled", "count", "following")

    def __init__(self, count: int) -> None:
        self.count = count  # of values so far
        self.following: dict[Any, Step] = {}
        self.compiled: dict[tuple[int, ...], Callable[..., Any]] = {}


class Segment:
    """The calls that were recorded since the function began, or since its last graph ran."""

    def __init__(self, recorder: Any, root: State, ambient: Ambient) -> None:
        self.recorder = recorder
        self.state = root
        self.ambient = ambient
        self.path: list[Step] = []
        self.inputs: dict[int, Tensor] = {}
        self.snapshots: dict[int, Snapshot] = {}
        self.waiting: dict[int, Any] = {}  # weak references to pending tensors
        self.held: list[Tensor] = []  # of the inputs those that calls write into
        self.touched: set[int] = set()  # ids of tensors that were asked for more than values
        self.blocks: list[tuple[Ambient, int]] = []  # open ones of autocast
        self.fakes: dict[int, Any] | None = {}
        self._numbers: dict[int, int] = {}  # of tensors from outside, by their ids
        self.new: list[Tensor] = []  # those that the current call has brought

    def need(self, tensor: Tensor) -> None:
        """Somebody reads a pending tensor."""
        self.recorder.need(self)

    def write(self, number: int) -> None:
        """An input is written into: whoever reads it elsewhere has to wait."""
        tensor = self.inputs[number]
        if not isinstance(tensor, Unsettled):
            hold(tensor, self, number)
            self.held.append(tensor)

    def let_go(self) -> None:
        """Give the inputs back that were written into."""
        while self.held:
            release(self.held.pop())

    def number(self, tensor: Tensor) -> int | None:
        """The number of a tensor, if it has one."""
        if isinstance(tensor, Unsettled):
            promise = promise_of(tensor)
            return promise.number if promise.tape is self else None
        return self._numbers.get(id(tensor))

    def look(self, tensor: Tensor) -> Snapshot | None:
        """What is known of a tensor that has a number."""
        number = self.number(tensor)
        return None if number is None else self.snapshots.get(number)

    def tensor(self, number: int) -> Tensor:
        """The tensor of a number."""
        found = self.inputs.get(number)
        return self.waiting[number]() if found is None else found

    def describe(self, args: tuple, kwargs: dict[str, Any]) -> tuple:
        """A key of a call's arguments. UnsuitableError for what no graph can hold.

        Tensors from outside that are met for the first time get numbers, and are appended to `new`.
        """
        self.new = []
        keys = [self._key(each) for each in args]
        if kwargs:
            keys += [(name, self._key(each)) for name, each in kwargs.items()]
        return tuple(keys)

    def _key(self, each: Any) -> Any:
        kind = each.__class__
        if kind in _TENSORS:
            number = self.number(each)
            return self._bring(each) if number is None else value(number)
        if kind in _CONSTANTS:
            return kind, each
        if kind is float:
            return kind, each or str(each), each != each  # 0.0 is not -0.0
        if kind is tuple or kind is list or kind is Size or hasattr(kind, "_fields"):
            return kind, tuple([self._key(entry) for entry in each])
        if kind is slice:
            return kind, self._key(each.start), self._key(each.stop), self._key(each.step)
        if kind is dict:
            return kind, tuple([(name, self._key(entry)) for name, entry in each.items()])
        if isinstance(each, Tensor):
            raise UnsuitableError(f"a tensor of the class {kind.__name__} is among its arguments")
        raise UnsuitableError(f"its arguments include one of type {kind.__name__}")

    def _bring(self, tensor: Tensor) -> tuple:
        if isinstance(tensor, Unsettled):
            tensor._storage  # noqa: B018  of a call outside, which has it computed
        storage = tensor._storage
        array, edge = storage.physical, tensor._edge
        number = self.state.count + len(self.new)
        self._numbers[id(tensor)] = number
        self.new.append(tensor)
        return (
            number,
            array.shape,
            array.strides,
            array.dtype,
            storage.backend,
            tensor.__class__,
            edge is not None and tensor.is_leaf,
            edge is not None,
        )

    def values_of(self, each: Any) -> Any:
        """Arguments of a call with `Value`s in the place of its tensors; `describe` was called."""

        def number(tensor: Tensor) -> Value:
            found = self.number(tensor)
            assert found is not None
            return value(found)

        return map_instances(each, Tensor, number)


def replaced(each: Any, replace: Callable[[int], Any]) -> Any:
    """Arguments of a call with ``replace(number)`` in the place of `Value`s."""
    return map_instances(each, Value, lambda value: replace(value.number))

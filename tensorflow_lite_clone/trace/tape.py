"""What ran, written down: calls in order, over values that stand for arrays.

A tape knows arrays by their identity. It holds them weakly, unless it is to keep them, so that
memory is used as without it. Readers either go through `Tape.calls` when all is over, or define
`Tape.before` and `Tape.after`, which are called with each call.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from tensorflow_lite_clone.dispatch.op import is_op
from tensorflow_lite_clone.dispatch.result_layout import in_order
from tensorflow_lite_clone.trace.observer import Observer

_UNKNOWN: tuple[Any, Any] = None, None


class Value:
    """An array on a tape: what `call` has computed, or one from outside (`call` is None).

    `base` is the value that it views, itself no view, or None; `memory` the first value with the
    same memory, whose `version` counts the writes into it.
    """

    __slots__ = ("__weakref__", "base", "call", "dtype", "held", "memory", "shape", "version")

    held: Callable[[], Any]  # gives the array, if somebody still holds it, else None

    def __init__(self, array: Any, owner: Any, call: Call | None, base: Value | None) -> None:
        self.call, self.base, self.memory = call, base, base or self
        self.shape, self.dtype = array.shape, array.dtype
        self.version = 0


class Call:
    """One call: `args` and `kwargs` have values in place of arrays, and so has `result`, where a
    list stands for several.

    `target` is the op for the `kind` "op"; the name for "function", which many ops are together;
    for "write" the op whose result went into the memory of the first argument, or None where the
    second argument was copied there; for "call" any other function over arrays. `writes`: whether
    it may write into memory from before the tape.
    """

    __slots__ = ("args", "backend", "kind", "kwargs", "result", "target", "writes")

    def __init__(
        self,
        target: Any,
        args: tuple,
        kwargs: dict[str, Any],
        kind: str = "call",
        backend: Any = None,
        result: Any = None,
    ) -> None:
        self.target, self.args, self.kwargs = target, args, kwargs
        self.kind, self.backend, self.result = kind, backend, result
        self.writes = False

    @property
    def name(self) -> str:
        """What the target is called."""
        target = self.target
        if is_op(target):
            return str(target.name)
        return target if isinstance(target, str) else getattr(target, "__name__", "copy_into")

    @property
    def results(self) -> list[Any]:
        """The result as a list, also if it is one value."""
        return self.result if isinstance(self.result, list) else [self.result]


class Table:
    """Values by their arrays, and the first of each memory by the array that owns it.

    An array is forgotten when it is gone, unless the table is to `keep` it.
    """

    def __init__(self, keep: bool = False) -> None:
        self._keep = keep
        self._values: dict[int, tuple[Any, Any]] = {}
        self._owners: dict[int, tuple[Any, Any]] = {}

    def find(self, array: Any) -> Any:
        """The value of an array, or None."""
        return self._values.get(id(array), _UNKNOWN)[1]

    def find_owned(self, owner: Any) -> Any:
        """The value that stands for the memory that an array owns, or None."""
        return self._owners.get(id(owner), _UNKNOWN)[1]

    def enter(self, array: Any, owner: Any, value: Value) -> Any:
        """Enter the value of an array."""
        value.held = reference = self._reference(array, self._values)
        self._values[id(array)] = reference, value
        if id(owner) not in self._owners:
            self._owners[id(owner)] = self._reference(owner, self._owners), value.memory
        return value

    def _reference(self, array: Any, entries: dict[int, Any]) -> Callable[[], Any]:
        key = id(array)
        if not self._keep:
            try:
                return weakref.ref(array, lambda _: entries.pop(key, None))
            except TypeError:  # such as a number of NumPy's
                pass
        return lambda: array


class Tape:
    """Calls in order. `record` runs one and adds it; calls inside of it are its own affair.

    `keep`: arrays stay alive as long as the tape. `table`: of what calls have computed, which
    tapes may share.
    """

    value_type: type[Any] = Value

    def __init__(self, keep: bool = False, table: Table | None = None) -> None:
        self.calls: list[Call] = []
        self.running = False  # a recorded call is under way
        self._computed = Table(keep) if table is None else table
        self._outside = Table(keep)

    # -- what readers may define --------------------------------------------------------------

    def before(self, call: Call) -> None:
        """A call is about to run: its arguments are known."""

    def after(self, call: Call) -> None:
        """A call has run: its result is known, and a write has given memory its next version."""

    def is_array(self, value: Any) -> bool:
        """Whether a value stands for this argument or result."""
        return hasattr(value, "shape") and hasattr(value, "dtype")

    def constant(self, value: Any) -> Any:
        """What stands for an argument that is no array."""
        return value

    def owner_of(self, array: Any) -> Any:
        """The array that owns the memory of another one."""
        base = getattr(array, "base", None)
        while type(base) is type(array):
            array, base = base, getattr(base, "base", None)
        return array

    # -- values -------------------------------------------------------------------------------

    def find(self, array: Any) -> Value | None:
        """The value of an array, if it is on the tape."""
        return self._computed.find(array) or self._outside.find(array)

    def add_input(self, array: Any) -> Value:
        """Enter an array from outside of which views may be made by other ways than by calls."""
        owner = self.owner_of(array)
        return self._computed.enter(array, owner, self.value_type(array, owner, None, None))

    def read(self, array: Any, listed: bool = False) -> Value:
        """The value of an argument, which comes from outside if it is on no tape yet."""
        return self._computed.find(array) or self._outside.find(array) or self.add_outside(array)

    def add_outside(self, array: Any) -> Value:
        """A value for an array that no call has computed, though it may view what one has."""
        owner = self.owner_of(array)
        base = self._computed.find_owned(owner) or self._outside.find(owner)
        return self._outside.enter(array, owner, self.value_type(array, owner, None, base))

    def add_result(self, array: Any, call: Call) -> Value:
        """A value for what a call has computed."""
        owner = self.owner_of(array)
        value = self.value_type(array, owner, call, self.base_of(array, owner, call))
        if value.base is not None and value.base.call is call:  # parts of what is no value itself
            value.base = None
        return self._computed.enter(array, owner, value)

    def base_of(self, array: Any, owner: Any, call: Call) -> Value | None:
        """The value that a new array views, itself no view."""
        if owner is array:
            return None
        return self._computed.find_owned(owner) or self._outside.find_owned(owner)

    # -- calls --------------------------------------------------------------------------------

    def describe(self, value: Any, listed: bool = False) -> Any:
        """An argument with values in place of arrays; `listed`: it is part of a list."""
        if self.is_array(value):
            return self.read(value, listed)
        kind = value.__class__
        if kind is list or kind is tuple:
            return kind([self.describe(entry, listed or kind is list) for entry in value])
        if kind is dict:
            return {name: self.describe(entry, listed) for name, entry in value.items()}
        return self.constant(value)

    def describe_result(self, result: Any, call: Call) -> tuple[Any, Any]:
        """A result as it is handed on, and with values in place of arrays."""
        if self.is_array(result):
            return result, self.find(result) or self.add_result(result, call)
        kind = result.__class__
        if kind is tuple or kind is list:
            pairs = [self.describe_result(entry, call) for entry in result]
            return kind([pair[0] for pair in pairs]), [pair[1] for pair in pairs]
        return result, None

    def record(self, call: Call, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """What `function` gives, which goes on the tape as `call`."""
        self.before(call)
        self.running = True
        try:
            result = function(*args, **kwargs)
        finally:
            self.running = False
        if result is NotImplemented:  # an override that leaves it to the generic form
            return result
        result, call.result = self.describe_result(result, call)
        self.calls.append(call)
        self.after(call)
        return result


class OpTape(Tape, Observer):
    """The ops, functions of many ops, and writes that this thread runs while it is entered.

    Example::

        with OpTape() as tape:
            y = (x @ w).relu()
        assert [call.name for call in tape.calls] == ["mm", "relu"]
    """

    def __init__(self, keep: bool = False) -> None:
        super().__init__(keep)
        self.backends: dict[type, Any] = {}  # by the type of their arrays, as far as they are known

    def is_seen(self, arrays: Any) -> bool:
        """Whether a call on these arrays goes on the tape."""
        return not self.running and self.is_here()

    def around_op(self, op: Any, backend: Any, call: Callable[..., Any]) -> Callable[..., Any]:
        """What runs in place of an op: the op, as it goes on the tape."""
        self.backends[backend.array_type] = backend

        def ordered(*arrays: Any, **parameters: Any) -> Any:
            # Here and not by the caller, who would copy the array that is recorded.
            return in_order(op, backend, call(*arrays, **parameters), arrays, parameters)

        def recorded(*arrays: Any, **parameters: Any) -> Any:
            if not self.is_seen(arrays):
                return call(*arrays, **parameters)
            entry = Call(op, self.describe(arrays), parameters, "op", backend)
            return self.record(entry, ordered, arrays, parameters)

        return recorded

    def around_function(
        self, name: str, call: Callable[[], tuple], tensors: tuple, parameters: dict[str, Any]
    ) -> tuple:
        """What many ops do that together are a function, as one call."""
        arrays = [None if x is None else x._storage.array for x in tensors]
        if not self.is_seen(arrays):
            return call()
        backend = next(x for x in tensors if x is not None)._storage.backend
        entry = Call(name, tuple(self.describe(arrays)), parameters, "function", backend)
        results: list[Any] = []

        def run() -> list[Any]:
            results.extend(call())
            return [result._storage.array for result in results]

        self.record(entry, run, (), {})
        return tuple(results)

    def around_write(
        self, op: Any, call: Callable[[], Any], arrays: tuple, parameters: dict[str, Any]
    ) -> None:
        """A write, of which the result is the first argument in its next version."""
        if not self.is_seen(arrays):
            call()
            return
        backend = self.backends.get(type(arrays[0]))
        entry = Call(op, self.describe(arrays), parameters, "write", backend)
        entry.writes = True

        def written() -> Any:
            call()
            entry.args[0].memory.version += 1
            return arrays[0]

        self.record(entry, written, (), {})

    def base_of(self, array: Any, owner: Any, call: Call) -> Value | None:
        """Views are made by ops that say so."""
        if call.kind != "op" or not call.target.view:
            return None
        viewed: Value = call.args[0]
        return viewed.base or viewed

    def describe_result(self, result: Any, call: Call) -> tuple[Any, Any]:
        """Numbers that ops give are arrays from here on."""
        backend = call.backend
        if call.kind == "op" and type(result) not in (backend.array_type, tuple, list, type(None)):
            result = backend.asarray(result)
        return super().describe_result(result, call)


def values_in(described: Any) -> Iterator[Any]:
    """The values in a description of arguments or results, or in a call."""
    if isinstance(described, Value):
        yield described
    elif isinstance(described, Call):
        yield from values_in((described.args, described.kwargs, described.result))
    elif isinstance(described, (list, tuple)):
        for entry in described:
            yield from values_in(entry)
    elif isinstance(described, dict):
        yield from values_in(list(described.values()))

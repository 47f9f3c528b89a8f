"""What a captured step does to arrays: a tape of calls, and the values that pass between them.

While a graph is captured on the CPU, whatever computes with arrays from outside of an op is looked
up as `recorded` gives it: ops and words of F as optimizers and the engine call them, gradients,
writes, random draws. It runs as it would, and is noted with what it was given and what it made.
What it calls in turn is its own affair: an override stays one call, with its blocks and threads.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tensorflow_lite_clone.core.dynamic_scalar import DynamicScalar
from tensorflow_lite_clone.dispatch import capture
from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.trace import Call, Observer
from tensorflow_lite_clone.trace import tape as tapes

#: Words whose results' shapes are values: they cannot be replayed.
_READERS = frozenset("nonzero unique_all unique_counts unique_inverse unique_values".split())


#: What may become an array: host data otherwise, which may be other data at the next call.
_ARRAYS = (np.ndarray, np.generic, bool, int, float, complex)


class Value(tapes.Value):
    """An array on a tape, and where programs have it.

    `array` is where it lies for good: that of an outside array is known at once, that of a made
    one when it turns out that somebody holds it after the capture.
    """

    __slots__ = ("array", "offset", "root", "shared", "strides")

    base: Value | None
    memory: Value

    def __init__(self, array: Any, owner: Any, call: Call | None, base: Value | None) -> None:
        super().__init__(array, owner, call, base)
        self.array = array if call is None else None
        self.shared: int | None = None  # its place in the pool, if somebody needs it there
        self.root = weakref.ref(owner)
        self.offset = array.ctypes.data - owner.ctypes.data if array is not owner else 0
        self.strides = array.strides

    def alive(self) -> Any:
        """The array that was made while captured, if somebody still holds it or its memory."""
        array, root = self.held(), self.root()
        if array is None and root is not None:
            memory = root.ravel("K")
            array = np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)
        return array


class Live:
    """A number that may be another one at every replay: where it is read from."""

    __slots__ = ("place", "values")

    def __init__(self, values: list[float], place: int) -> None:
        self.values, self.place = values, place


class Number:
    """A Python number that a call made of arrays, such as a count of steps."""

    __slots__ = ("made",)

    def __init__(self, made: float) -> None:
        self.made = made


class Pool(tapes.Table):
    """The values that tapes have in common: backward reads what forward has made."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Any] = []  # what a program hands to another, or to who asked for it

    def place(self, value: Value) -> int:
        """Where among what is kept a value is found."""
        if value.shared is None:
            value.shared = len(self.kept)
            self.kept.append(None)
        return value.shared


def root_of(array: Any) -> Any:
    """The array that owns the memory of another one, as far as NumPy knows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class Tape(tapes.Tape):
    """A tape that takes back what its calls wrote into arrays from outside, and drew (`undo`).

    Numbers that may be others at a replay are `Live`; those that a call makes are `Number`, and an
    array that was a number of NumPy's is described as a tuple of one value.
    """

    value_type = Value
    owner_of = staticmethod(root_of)

    def __init__(self, pool: Pool) -> None:
        super().__init__(table=pool)
        self.pool = pool
        self.computed: dict[Value, None] = {}  # in order
        self._writes = False  # the next call writes into memory from before
        self._numbers: dict[int, Number] = {}
        self._before: dict[int, tuple[Any, Any]] = {}
        self._states: dict[int, tuple[Any, Any]] = {}

    def run(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call a function over arrays, and note it."""
        call = Call(function, self.describe(args), self.describe(kwargs))
        for place in getattr(TABLE.get(capture.state.op or ""), "mutates", ()):
            if args[place] is not None:
                self.will_write(args[place])
        return self.record(call, function, args, kwargs)

    def after(self, call: Call) -> None:
        """A call has run: note whether it may write into memory from before."""
        call.writes, self._writes = self._writes, False

    def will_write(self, array: Any) -> None:
        """Remember what an array holds, if it was there before the capture."""
        if id(array) in self._before:
            self._writes = True
            return
        value: Any = self.pool.find(array) or self.pool.find_owned(root_of(array))
        if value is None or value.memory not in self.computed:
            self._before[id(array)] = array, array.copy()
            self._writes = True

    def will_draw(self, source: Any) -> None:
        """Remember the state of a source of random numbers."""
        if id(source) not in self._states:
            self._states[id(source)] = source, source.get_state()

    def undo(self) -> None:
        """Put back what was written and drawn."""
        for target, before in reversed(self._before.values()):
            target[...] = before
        self._before.clear()
        for source, state in self._states.values():
            source.set_state(state)
        self._states.clear()
        self._numbers.clear()

    def is_array(self, value: Any) -> bool:
        """Whether a value stands for it."""
        return isinstance(value, np.ndarray)

    def constant(self, value: Any) -> Any:
        """What stands for a number that may be another one at a replay."""
        if value.__class__ is DynamicScalar:
            return Live(*value.device_value)
        return self._numbers.get(id(value), value) if value.__class__ is float else value

    def read(self, array: Any, listed: bool = False) -> Value:
        """The value of an argument. What is in a list may be written to."""
        if listed:
            self.will_write(array)
        value: Any = super().read(array)
        if value.array is None and value not in self.computed:
            self.pool.place(value)
        return value

    def add_result(self, array: Any, call: Call) -> Value:
        """A value for what a call has computed."""
        value: Any = super().add_result(array, call)
        self.computed[value] = None
        return value

    def describe_result(self, result: Any, call: Call) -> tuple[Any, Any]:
        """A result with arrays in place of NumPy's scalars, and values in place of these."""
        if isinstance(result, np.generic):
            result = np.asarray(result)
            return result, (self.add_result(result, call),)
        if result.__class__ is float:
            result = result * 1.0  # an object of its own, by which it is known
            self._numbers[id(result)] = number = Number(result)
            return result, number
        return super().describe_result(result, call)


class _Here(threading.local):
    tape: Tape | None = None  # what this thread captures on


here = _Here()


def recorded(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, over arrays, as it goes on the tape of the thread that calls it, if there is one."""
    name = getattr(call, "__name__", "")
    reads, picks = name in _READERS, name == "getitem"

    def noted(*args: Any, **kwargs: Any) -> Any:
        tape = here.tape
        if tape is None:
            return call(*args, **kwargs)
        if reads or (picks and _has_mask(args[1])):
            capture.crossing("reads a value back")
        if tape.running:
            return call(*args, **kwargs)
        return tape.run(call, args, kwargs)

    return noted


def _has_mask(index: Any) -> bool:
    """Whether an index chooses elements by booleans: how many is a value."""
    if isinstance(index, tuple):
        return any(map(_has_mask, index))
    return isinstance(index, np.ndarray) and index.dtype.kind == "b"


def written(call: Callable[..., Any]) -> Callable[..., Any]:
    """`recorded` for what writes into its first argument."""
    noted = recorded(call)

    def write(target: Any, *args: Any, **kwargs: Any) -> Any:
        tape = here.tape
        if tape is not None and not tape.running:
            tape.will_write(target)
        return noted(target, *args, **kwargs)

    return write


class _Writes(Observer):
    """Calls of writes are noted where they are looked up: here is said where they write."""

    def around_write(self, op: Any, call: Any, arrays: tuple, parameters: dict) -> None:
        tape = here.tape
        if tape is not None and not tape.running:
            tape.will_write(arrays[0])
        call()


#: Entered while there are captures.
writes = _Writes()


class Drawn:
    """A source of random numbers whose draws go on the tape."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        tape = here.tape
        value = getattr(self._source, name)
        if tape is None or tape.running or not callable(value):
            return value
        if name in ("manual_seed", "seed"):
            capture.crossing("seeds random numbers")
        tape.will_draw(self._source)
        return recorded(value)


def methods(backend: Any) -> dict[str, Any]:
    """What stands for the methods of the CPU's backend while there are captures."""
    kind = type(backend)

    def guarded(call: Any) -> Any:
        return recorded(call) if callable(call) and not isinstance(call, type) else call

    def asarray(data: Any, dtype: Any = None) -> Any:
        if here.tape is not None and not isinstance(data, _ARRAYS):
            capture.crossing("copies from the host")
        return convert(data, dtype)

    def crossing(call: Callable[..., Any], what: str) -> Callable[..., Any]:
        def method(array: Any, non_blocking: bool = False) -> Any:
            if here.tape is not None:
                capture.crossing(what)
            return call(backend, array)

        return method

    convert = recorded(partial(kind.asarray, backend))
    return {
        "guarded": guarded,
        "gradient": recorded,
        "joint_gradient": recorded,
        "drawn": Drawn,
        "asarray": asarray,
        "empty": recorded(partial(kind.empty, backend)),
        "write": written(partial(kind.write, backend)),
        "to_host": crossing(kind.to_host, "reads a value back"),
        "from_host": crossing(kind.from_host, "copies from the host"),
    }

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

from tensorflow_lite_clone.core.live import LiveNumber
from tensorflow_lite_clone.dispatch import capture
from tensorflow_lite_clone.dispatch.op import TABLE

#: Words whose results' shapes are values: they cannot be replayed.
_READERS = frozenset("nonzero unique_all unique_counts unique_inverse unique_values".split())


#: What may become an array: host data otherwise, which may be other data at the next call.
_ARRAYS = (np.ndarray, np.generic, bool, int, float, complex)


class Value:
    """An array on a tape: one from outside, or what a call made.

    `array` is where it lies for good: that of an outside array is known at once, that of a made
    one when it turns out that somebody holds it after the capture. `parent` is the value that it is
    a view of; `memory` stands for all that share its memory, also those that came together with it.
    """

    __slots__ = (
        "_reference", "array", "dtype", "maker", "memory", "offset", "parent", "root", "shape",
        "shared", "strides",
    )  # fmt: skip

    def __init__(self, array: Any, root: Any, parent: Value | None, maker: Tape | None) -> None:
        self.parent, self.memory, self.maker = parent, parent or self, maker
        self.array = array if maker is None else None
        self.shared: int | None = None  # its place in the pool, if somebody needs it there
        self._reference = None if maker is None else weakref.ref(array)
        self.root = None if maker is None else weakref.ref(root)
        self.offset = array.ctypes.data - root.ctypes.data if array is not root else 0
        self.shape, self.dtype, self.strides = array.shape, array.dtype, array.strides

    def held(self) -> Any:
        """The array that was made while captured, if somebody still holds it or its memory."""
        assert self._reference is not None and self.root is not None
        array, root = self._reference(), self.root()
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


class Entry:
    """One call: what is called, with what, and what it makes (see `Tape._note`).

    `writes`: whether it may write into memory from before the capture.
    """

    __slots__ = ("args", "call", "kwargs", "result", "writes")

    def __init__(self, call: Any, args: Any, kwargs: Any, result: Any, writes: bool) -> None:
        self.call, self.args, self.kwargs, self.result = call, args, kwargs, result
        self.writes = writes


class Pool:
    """The values that tapes have in common: backward reads what forward has made."""

    def __init__(self) -> None:
        self.made: dict[int, Value] = {}  # by the id of the array, while there is one
        self.roots: dict[int, Value] = {}  # likewise, by that of the array that owns the memory
        self.kept: list[Any] = []  # what a program hands to another, or to who asked for it

    def place(self, value: Value) -> int:
        """Where among what is kept a value is found."""
        if value.shared is None:
            value.shared = len(self.kept)
            self.kept.append(None)
        return value.shared


class Tape:
    """Calls in order. `undo` takes back what they wrote into arrays from outside, and drew."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.entries: list[Entry] = []
        self.inside = False  # a call that is noted is running
        self.made: list[Value] = []
        self._writes = False  # the next call writes into memory from before
        self._together = 0  # where those begin that the last call has made
        self._outside: dict[int, Value] = {}
        self._outside_roots: dict[int, Value] = {}
        self._numbers: dict[int, Number] = {}
        self._before: dict[int, tuple[Any, Any]] = {}
        self._states: dict[int, tuple[Any, Any]] = {}

    def run(self, call: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call a function over arrays, and note it."""
        given = self._described(args, False), self._described(kwargs, False)
        for place in getattr(TABLE.get(capture.state.op or ""), "moves", ()):
            if args[place] is not None:
                self.will_write(args[place])
        self.inside = True
        try:
            result = call(*args, **kwargs)
        finally:
            self.inside = False
        if result is NotImplemented:  # an override that leaves it to the generic form
            return result
        self._together = len(self.made)
        result, noted = self._note(result)
        self.entries.append(Entry(call, *given, noted, self._writes))
        self._writes = False
        return result

    def will_write(self, array: Any) -> None:
        """Remember what an array holds, if it was there before the capture."""
        if id(array) in self._before:
            self._writes = True
            return
        value = self.pool.made.get(id(array)) or self.pool.roots.get(id(root_of(array)))
        while value is not None and value.parent is not None:  # it is a view, maybe of what was
            value = value.parent
        if value is None or value.maker is not self:
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

    def _described(self, value: Any, listed: bool) -> Any:
        """An argument with values in place of arrays. What is in a list may be written to."""
        if isinstance(value, np.ndarray):
            if listed:
                self.will_write(value)
            return self._value(value)
        kind = value.__class__
        if kind is LiveNumber:
            return Live(*value.cell)
        if kind is float:
            return self._numbers.get(id(value), value)
        if kind is list or kind is tuple:
            return kind([self._described(entry, listed or kind is list) for entry in value])
        if kind is dict:
            return {name: self._described(entry, listed) for name, entry in value.items()}
        return value

    def _value(self, array: Any) -> Value:
        made = self.pool.made.get(id(array))
        if made is not None:
            if made.maker is not self and made.array is None:
                self.pool.place(made)
            return made
        outside = self._outside.get(id(array))
        if outside is None:
            outside = self._outside[id(array)] = Value(array, array, None, None)
            self._outside_roots.setdefault(id(root_of(array)), outside)
        return outside

    def _note(self, result: Any) -> tuple[Any, Any]:
        """A result with arrays in place of NumPy's scalars, and values in place of these."""
        if isinstance(result, np.generic):
            result = np.asarray(result)
            return result, (self._new(result),)
        if isinstance(result, np.ndarray):
            known = self.pool.made.get(id(result)) or self._outside.get(id(result))
            return result, self._new(result) if known is None else known
        if result.__class__ is float:
            result = result * 1.0  # an object of its own, by which it is known
            noted = self._numbers[id(result)] = Number(result)
            return result, noted
        if result.__class__ is tuple or result.__class__ is list:
            pairs = [self._note(entry) for entry in result]
            return result.__class__([pair[0] for pair in pairs]), [pair[1] for pair in pairs]
        return result, None

    def _new(self, array: Any) -> Value:
        root = root_of(array)
        parent = beside = None
        if root is not array:
            parent = self.pool.roots.get(id(root)) or self._outside_roots.get(id(root))
            if parent in self.made[self._together :]:  # two parts of what is no value itself
                parent, beside = None, parent
        value = Value(array, root, parent, self)
        if beside is not None:
            value.memory = beside
        self.made.append(value)
        _keep_while(array, self.pool.made, value)
        if parent is None and beside is None:
            _keep_while(root, self.pool.roots, value)
        return value


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
        if tape.inside:
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
        if tape is not None and not tape.inside:
            tape.will_write(target)
        return noted(target, *args, **kwargs)

    return write


def writing(op: Any, call: Callable[[], Any], arrays: tuple, parameters: dict) -> None:
    """A hook around writes (see `hooks.writers`): they are noted where they are looked up."""
    tape = here.tape
    if tape is not None and not tape.inside:
        tape.will_write(arrays[0])
    call()


class Drawn:
    """A source of random numbers whose draws go on the tape."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        tape = here.tape
        value = getattr(self._source, name)
        if tape is None or tape.inside or not callable(value):
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


def root_of(array: Any) -> Any:
    """The array that owns the memory of another one, as far as NumPy knows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _keep_while(array: Any, table: dict[int, Value], value: Value) -> None:
    """Keep `value` in a table under an array's id until the array is gone."""
    key = id(array)
    table[key] = value
    weakref.finalize(array, table.pop, key, None).atexit = False

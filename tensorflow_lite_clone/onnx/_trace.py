"""The program that a model runs: ops and values, without views and without writes.

A tape says which array views which, and how often memory was written. Here an array holds one
value after another: a write makes a new value of the written memory, and views of that memory are
made anew when they are next read.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from tensorflow_lite_clone.onnx.errors import UnsupportedOperatorError
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.trace import Call
from tensorflow_lite_clone.trace import tape as tapes


class Value:
    """What an array holds at one time.

    `call` is what made it, None for an input, a parameter (both have a `name`) or a constant.
    `constant` is its value in host memory if it depends on neither inputs nor parameters.
    """

    __slots__ = ("call", "constant", "dtype", "name", "shape")

    def __init__(
        self, array: Any, call: Call | None = None, name: str | None = None, constant: Any = None
    ) -> None:
        self.shape: tuple[int, ...] = tuple(array.shape)
        self.dtype = array.dtype
        self.call = call
        self.name = name
        self.constant = constant


class Region(NamedTuple):
    """A part of a dimension: places from `start` on in `step`s, `size` of them, which are
    dimension `axis` of the view (None if the view has no such dimension)."""

    start: int
    step: int
    size: int
    axis: int | None


class Trace(tapes.OpTape):
    """A tape of which the `program` has neither views nor writes.

    `named` gives the names of parameters and buffers by the identities of their arrays; a name
    counts as used, in `used`, when an op reads the array.
    """

    def __init__(self, backend: Any, named: dict[int, str]) -> None:
        super().__init__(keep=True)
        self.backend = backend
        self.program: list[Call] = []
        self.constants: list[Value] = []
        self.used: dict[str, tuple[Value, Any]] = {}
        self._named = named
        #: What each array holds, and the version of its memory when it did.
        self._held: dict[tapes.Value, tuple[Value, int]] = {}
        self._inputs: tuple[Value | None, ...] = ()  # of the call that runs
        self._announced = False  # a write that is on the tape

    def input(self, tensor: Tensor, name: str) -> Value:
        """Make a tensor an input of the program."""
        array = tensor._storage.array
        return self._hold(self.add_input(array), Value(array, name=name))

    def content(self, array: Any) -> Value:
        """What an array holds now."""
        return self._content(self.read(array))

    def _content(self, value: Any) -> Value:
        """What is read: of a constant something new each time, as arrays that serve as two
        constants in one run may be two in another."""
        if not isinstance(value, tapes.Value):  # a number that is written
            value = self.read(self.backend.asarray(value))
        current = self._current(value)
        if current.call is None and current.constant is not None:
            current = Value(value.held(), constant=current.constant)
            self.constants.append(current)
        return current

    def add(self, op: str, inputs: tuple, parameters: dict, arrays: list) -> list[Value]:
        """A call of the program whose results lie in `arrays`."""
        added = Call(op, inputs, parameters, "function")
        fixed = all([value is None or value.constant is not None for value in inputs])
        added.result = [Value(x, added, constant=self._host(x) if fixed else None) for x in arrays]
        self.program.append(added)
        return added.result

    # -- what the tape tells ------------------------------------------------------------------

    def is_seen(self, arrays: Any) -> bool:
        """Calls beside the model's device (lengths, sizes) are not seen."""
        return super().is_seen(arrays) and not any(map(self._is_of_host, arrays))

    def before(self, call: Call) -> None:
        """Find what the arguments hold, before a write changes them."""
        if any([type(value) is list for value in call.args]):
            raise UnsupportedOperatorError(f"'{call.name}' works on lists of tensors")
        before = [self._current(call.args[0])] if call.kind == "write" else []
        others = call.args[len(before) :]
        self._inputs = *before, *[None if x is None else self._content(x) for x in others]

    def describe_result(self, result: Any, call: Call) -> tuple[Any, Any]:
        """UnsupportedOperatorError for what is not on the model's device any more."""
        if self._is_of_host(result):
            raise UnsupportedOperatorError(f"'{call.name}' leaves the model's device")
        return super().describe_result(result, call)

    def after(self, call: Call) -> None:
        """Make it a call of the program."""
        results = call.results
        is_write = call.kind == "write"
        if not is_write and any([value in call.args for value in results]):
            return  # nothing was computed
        arrays = [value.held() for value in results]
        added = self.add(call.name, self._inputs, call.kwargs, arrays)
        if is_write:
            added[0].constant = None  # it is made in the exported program
            self._announced = True
            self._write(results[0], added[0])
            return
        for value, current in zip(results, added, strict=True):
            self._hold(value, current)

    def on_memory_write(self, storage: Any) -> None:
        """A write that is not on the tape: only constants may change so."""
        if not self.is_here():
            return
        announced, self._announced = self._announced, False
        value = self.find(storage.array)
        if announced or value is None or value not in self._held:
            return
        if self._held[value][0].call is not None:
            raise UnsupportedOperatorError("an in-place write outside of ops cannot be exported")
        del self._held[value]  # a constant (a running statistic) that changed

    # -- what arrays hold ---------------------------------------------------------------------

    def _hold(self, value: tapes.Value, current: Value) -> Value:
        self._held[value] = current, value.memory.version
        return current

    def _current(self, value: tapes.Value) -> Value:
        """What an array holds now, a view as its memory was last written."""
        if value not in self._held:
            base = self._twin(value)
            return self._first(value) if base is None else self._current(base)
        current, version = self._held[value]
        if value.base is None or value.call is None or version == value.memory.version:
            return current
        call = value.call
        inputs = (self._current(call.args[0]),)
        arrays = [result.held() for result in call.results]
        added = self.add(call.name, inputs, call.kwargs, arrays)
        return self._hold(value, added[call.results.index(value)])

    def _twin(self, value: tapes.Value) -> tapes.Value | None:
        """The value that an array shows that was made outside of ops from one of the program."""
        base = value.base
        current = None if base is None else self._held.get(base)
        if base is None or current is None or current[0].constant is not None:
            return None
        if current[0].name in self.used:
            return None
        if not _same_memory(self.backend, base.held(), value.held()):
            raise UnsupportedOperatorError("a view made outside of ops cannot be exported")
        return base

    def _first(self, value: tapes.Value) -> Value:
        """What an array from outside holds: a parameter, or a constant."""
        array = value.held()
        name = self._named.get(id(array))
        if name is None:
            return self._hold(value, Value(array, constant=self._host(array)))
        if name not in self.used:
            self.used[name] = Value(array, name=name), self.backend.to_host(array)
        return self._hold(value, self.used[name][0])

    def _write(self, value: tapes.Value, current: Value) -> None:
        """Let an array hold what was written, and the memory that it views have it in its place."""
        value = value if value in self._held else value.base or value
        self._hold(value, current)
        base = value.base
        if base is None or not prod(value.shape):
            return
        where = region_of(self.backend, base.held(), value.held())
        (added,) = self.add("write_region", (self._held[base][0], current), where, [base.held()])
        added.constant = None
        self._hold(base, added)

    def _is_of_host(self, array: Any) -> bool:
        return type(array) is np.ndarray and self.backend.array_type is not np.ndarray

    def _host(self, array: Any) -> Any:
        if not isinstance(array, (self.backend.array_type, np.generic)):
            raise UnsupportedOperatorError("what runs under vmap cannot be exported")
        if isinstance(array, np.generic):  # a Python number beside a tensor
            return np.asarray(array)
        return self.backend.to_host(array).copy()


def _same_memory(backend: Any, first: Any, second: Any) -> bool:
    return (
        first.shape == second.shape
        and backend.strides(first) == backend.strides(second)
        and backend.F.address(first) == backend.F.address(second)
    )


def region_of(backend: Any, root: Any, part: Any) -> dict[str, Any]:
    """Which elements of `root` a view of it shows, as memory tells: `regions`, one for every
    dimension of `root`, or None where the view has all elements in another shape; else `places`,
    the numbers of all elements in turn.

    Raises UnsupportedOperatorError where it can be told neither way.
    """
    strides, steps = backend.strides(root), backend.strides(part)
    offset = (backend.F.address(part) - backend.F.address(root)) // root.dtype.itemsize
    dense = backend.is_contiguous(root)
    whole = dense and backend.is_contiguous(part) and root.size == part.size
    if whole and root.shape != part.shape:
        return {"regions": None}
    regions = _regions(root.shape, strides, offset, part.shape, steps)
    if regions is not None:
        return {"regions": regions}
    if not dense:
        raise UnsupportedOperatorError(
            f"a write into a view of shape {part.shape} of a tensor of shape {root.shape} that is "
            "not contiguous cannot be exported"
        )
    places = [offset]
    for count, step in zip(part.shape, steps):
        places = [place + i * step for place in places for i in range(count)]
    return {"places": places, "shape": tuple(root.shape)}


def _regions(
    shape: tuple, strides: tuple, offset: int, counts: tuple, steps: tuple
) -> tuple[Region, ...] | None:
    """The part of every dimension that a view shows; None if it is no product of such parts."""
    order = sorted(range(len(shape)), key=lambda axis: -strides[axis])
    regions = [Region(0, 1, 1, None)] * len(shape)
    for axis in order:
        if shape[axis] > 1 and strides[axis]:
            start, offset = divmod(offset, strides[axis])
            regions[axis] = Region(start, 1, 1, None)
    for number, (count, step) in enumerate(zip(counts, steps)):
        if count == 1:
            continue
        for axis in order:
            size, stride, start = shape[axis], strides[axis], regions[axis].start
            if size == 1 or not stride or regions[axis].axis is not None or step % stride:
                continue
            if 0 <= start + (count - 1) * (step // stride) < size:
                regions[axis] = Region(start, step // stride, count, number)
                break
        else:
            return None
    return tuple(regions)

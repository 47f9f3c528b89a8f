"""The program that a model runs: ops and values, without views and without writes.

Arrays are known by their identity. A view remembers how it was made. A write makes a new value of
the written memory; views of that memory are made anew when they are next read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tensorflow_lite_clone import storage as storages
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.result_layout import in_order
from tensorflow_lite_clone.onnx.errors import UnsupportedOperatorError
from tensorflow_lite_clone.tensor import Tensor


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


class Call:
    """One op on values."""

    __slots__ = ("inputs", "op", "outputs", "parameters")

    def __init__(self, op: str, inputs: tuple[Value | None, ...], parameters: dict) -> None:
        self.op = op
        self.inputs = inputs
        self.parameters = parameters
        self.outputs: tuple[Value, ...] = ()


class Link(NamedTuple):
    """How a view was made: output `number` of `op`, whose outputs are `arrays`."""

    parent: Place
    op: str
    parameters: dict
    arrays: tuple
    number: int


class Place:
    """An array of the program and what it holds; `root` is whose memory it views."""

    __slots__ = ("array", "link", "root", "value", "version")

    def __init__(self, array: Any, value: Value, link: Link | None = None) -> None:
        self.array = array
        self.value = value
        self.link = link
        self.root: Place = self if link is None else link.parent.root
        self.version: int = 0 if link is None else self.root.version


class Region(NamedTuple):
    """A part of a dimension: places from `start` on in `step`s, `size` of them, which are
    dimension `axis` of the view (None if the view has no such dimension)."""

    start: int
    step: int
    size: int
    axis: int | None


class Trace:
    """Context manager that notes the ops which this thread runs, as `calls`.

    `named` gives the names of parameters and buffers by the identities of their arrays; a name
    counts as used, in `used`, when an op reads the array.
    """

    def __init__(self, backend: Any, named: dict[int, str]) -> None:
        self.backend = backend
        self.calls: list[Call] = []
        self.constants: list[Value] = []
        self.used: dict[str, tuple[Value, Any]] = {}
        self._named = named
        self._places: dict[int, Place] = {}
        self._owners: dict[int, Place] = {}
        self._inside = False
        self._announced = False
        self._thread = threading.get_ident()

    def __enter__(self) -> Trace:
        hooks.add(self._noting)
        hooks.writers.append(self._writing)
        hooks.functions.append(self._function)
        storages.watchers.append(self._written)
        return self

    def __exit__(self, *exception: object) -> None:
        storages.watchers.remove(self._written)
        hooks.functions.remove(self._function)
        hooks.writers.remove(self._writing)
        hooks.remove(self._noting)

    def add_input(self, tensor: Tensor, name: str) -> Value:
        """Make a tensor an input of the program."""
        array = tensor._storage.array
        return self._add(array, Value(array, name=name)).value

    def read(self, array: Any) -> Value:
        """What an array holds now; of a constant something new each time, as arrays that serve as
        two constants in one run may be two in another."""
        value = self._current(self._place(array))
        if value.call is None and value.constant is not None:
            value = Value(array, constant=value.constant)
            self.constants.append(value)
        return value

    def call(self, op: str, inputs: tuple, parameters: dict, arrays: tuple) -> tuple[Value, ...]:
        """Note an op whose results lie in `arrays`."""
        made = Call(op, inputs, parameters)
        fixed = all([value is None or value.constant is not None for value in inputs])
        made.outputs = tuple(
            [Value(x, made, constant=self._host(x) if fixed else None) for x in arrays]
        )
        self.calls.append(made)
        return made.outputs

    def _noting(self, op: Any, backend: Any, call: Callable[..., Any]) -> Callable[..., Any]:
        def ordered(*arrays: Any, **parameters: Any) -> Any:
            # Here and not by the caller, who would copy the array that is noted.
            return in_order(op, backend, call(*arrays, **parameters), arrays, parameters)

        return lambda *arrays, **parameters: self._ran(op, ordered, arrays, parameters)

    def _ran(self, op: Any, call: Callable[..., Any], arrays: tuple, parameters: dict) -> Any:
        if self._inside or threading.get_ident() != self._thread:
            return call(*arrays, **parameters)
        if any([type(array) is list for array in arrays]):
            raise UnsupportedOperatorError(f"'{op.name}' works on lists of tensors")
        if any([self._is_of_host(array) for array in arrays]):
            return call(*arrays, **parameters)  # beside the model's device: lengths, sizes
        inputs = tuple([None if array is None else self.read(array) for array in arrays])
        self._inside = True
        try:
            result = call(*arrays, **parameters)
        finally:
            self._inside = False
        several = type(result) is tuple
        if self._is_of_host(result):
            raise UnsupportedOperatorError(f"'{op.name}' leaves the model's device")
        made = tuple(map(self._as_array, result if several else (result,)))
        if not any([x is array for x in made for array in arrays]):  # else nothing was computed
            values = self.call(op.name, inputs, parameters, made)
            for number, (array, value) in enumerate(zip(made, values, strict=True)):
                link = None
                if op.view:
                    link = Link(self._place(arrays[0]), op.name, parameters, made, number)
                self._add(array, value, link)
        return made if several else made[0]

    def _function(
        self, name: str, call: Callable[[], tuple], tensors: tuple, parameters: dict
    ) -> tuple:
        if self._inside or threading.get_ident() != self._thread:
            return call()
        inputs = tuple([None if x is None else self.read(x._storage.array) for x in tensors])
        self._inside = True
        try:
            results = call()
        finally:
            self._inside = False
        arrays = tuple([result._storage.array for result in results])
        for array, value in zip(arrays, self.call(name, inputs, parameters, arrays), strict=True):
            self._add(array, value)
        return results

    def _writing(self, op: Any, call: Callable[[], None], arrays: tuple, parameters: dict) -> None:
        self._announce(op, arrays, parameters)
        call()

    def _announce(self, op: Any, arrays: tuple, parameters: dict) -> None:
        target, *others = arrays
        if threading.get_ident() != self._thread or self._is_of_host(target):
            return
        place = self._place(target)
        before = self._current(place)
        inputs = [before, *[None if x is None else self.read(self._as_array(x)) for x in others]]
        if others and inputs[1] is not None and op is None:
            (value,) = self.call("copy_into", tuple(inputs), {}, (target,))
        else:
            (value,) = self.call(op.name, tuple(inputs), parameters, (target,))
        if value.constant is not None:
            # the write has not happened yet: such a value is computed in the exported program
            value.constant = None
        self._assign(place, value)
        self._announced = True

    def _written(self, storage: Any) -> None:
        if threading.get_ident() != self._thread:
            return
        announced, self._announced = self._announced, False
        place = self._places.get(id(storage.array))
        if announced or place is None:
            return
        if place.value.call is not None:
            raise UnsupportedOperatorError("an in-place write outside of ops cannot be exported")
        del self._places[id(storage.array)]  # a constant (a running statistic) that changed

    def _assign(self, place: Place, value: Value) -> None:
        root = place.root
        root.version += 1
        place.value, place.version = value, root.version
        if place is not root:
            if not place.array.size:
                return
            where = region_of(self.backend, root.array, place.array)
            (root.value,) = self.call("write_region", (root.value, value), where, (root.array,))
            root.value.constant = None

    def _current(self, place: Place) -> Value:
        link = place.link
        if link is not None and place.version != place.root.version:
            inputs = (self._current(link.parent),)
            values = self.call(link.op, inputs, link.parameters, link.arrays)
            place.value, place.version = values[link.number], place.root.version
        return place.value

    def _as_array(self, value: Any) -> Any:
        return value if type(value) is self.backend.array_type else self.backend.asarray(value)

    def _is_of_host(self, array: Any) -> bool:
        return type(array) is np.ndarray and self.backend.array_type is not np.ndarray

    def _host(self, array: Any) -> Any:
        if not isinstance(array, (self.backend.array_type, np.generic)):
            raise UnsupportedOperatorError("what runs under vmap cannot be exported")
        if isinstance(array, np.generic):  # a Python number beside a tensor
            return np.asarray(array)
        return self.backend.to_host(array).copy()

    def _place(self, array: Any) -> Place:
        place = self._places.get(id(array))
        if place is not None:
            return place
        owner = self._owners.get(id(_owner(array)))
        if owner is not None and owner.value.constant is None and owner.value.name not in self.used:
            if not _same_memory(self.backend, owner.array, array):
                raise UnsupportedOperatorError("a view made outside of ops cannot be exported")
            self._places[id(array)] = owner
            return owner
        name = self._named.get(id(array))
        if name is None:
            value = Value(array, constant=self._host(array))
        elif name in self.used:
            value = self.used[name][0]
        else:
            value = Value(array, name=name)
            self.used[name] = value, self.backend.to_host(array)
        return self._add(array, value)

    def _add(self, array: Any, value: Value, link: Link | None = None) -> Place:
        place = self._places[id(array)] = Place(array, value, link)
        self._owners.setdefault(id(_owner(array)), place)
        return place


def _owner(array: Any) -> Any:
    """The array that has the memory of a view."""
    base = getattr(array, "base", None)
    while type(base) is type(array):
        array, base = base, getattr(base, "base", None)
    return array


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

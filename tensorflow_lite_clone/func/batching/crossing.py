"""In and out of a level of `vmap`, with gradients.

A tensor enters a level along one of its dimensions and leaves it into one; what was made outside
is lifted, the same for every sample, when it meets what is inside. These steps are nodes of the
graph, so that every gradient lies where its tensor does: entering and leaving are each other's
gradients, and that of lifting is the sum over the samples.
"""

from __future__ import annotations

import heapq
from typing import Any

from tensorflow_lite_clone.autograd.apply import current_edge
from tensorflow_lite_clone.autograd.interpreters import Interpreter, interpreters
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.autograd.node import SyntheticNode
from tensorflow_lite_clone.func.batching.backend import BatchedBackend, batching
from tensorflow_lite_clone.func.batching.random import REFUSED, SHARED, randomness
from tensorflow_lite_clone.func.batching.words import warn_once
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor, new_tensor
from tensorflow_lite_clone.utils._pytree import tree_flatten

_free: list[int] = []
_numbers = iter(range(1 << 62))


class Level:
    """One mapping under way; its number is not given again while a graph knows the level."""

    __slots__ = ("number", "size")

    def __init__(self, size: int) -> None:
        self.number = heapq.heappop(_free) if _free else next(_numbers)
        self.size = size

    def __del__(self) -> None:
        heapq.heappush(_free, self.number)


def levels_of(backend: Any) -> tuple[int, ...]:
    """The numbers of a backend's levels, descending."""
    numbers = []
    while isinstance(backend, BatchedBackend):
        numbers.append(backend.level)
        backend = backend.base
    return tuple(numbers)


def differs_at(x: Tensor, level: Level) -> bool:
    """Whether a tensor has values of its own for every sample of a level."""
    array, backend = x._storage.array, x._storage.backend
    while isinstance(backend, BatchedBackend):
        if backend.level == level.number:
            return not array.shared
        array, backend = array.data, backend.base
    return False


def _sizes(backend: Any) -> dict[int, int]:
    sizes = {}
    while isinstance(backend, BatchedBackend):
        sizes[backend.level] = backend.size
        backend = backend.base
    return sizes


def _entered(array: Any, backend: Any, dim: int, level: Level) -> tuple[Any, Any]:
    if isinstance(backend, BatchedBackend) and backend.level > level.number:
        data, base = _entered(array.data, backend.base, dim + (not array.shared), level)
        above = batching(backend.level, backend.size, base)
        return above.make(data, array.shared), above
    above = batching(level.number, level.size, backend)
    data = backend.F.moveaxis(array, dim, 0) if dim else array
    return above.make(data, False), above


def _left(array: Any, backend: Any, dim: int, level: Level) -> tuple[Any, Any]:
    base = backend.base
    if backend.level != level.number:
        data, base = _left(array.data, base, dim + (not array.shared), level)
        above = batching(backend.level, backend.size, base)
        return above.make(data, array.shared), above
    data = backend.rows(array)
    return (base.F.moveaxis(data, 0, dim) if dim else data), base


def _lifted(array: Any, backend: Any, target: Any) -> Any:
    if backend is target:
        return array
    if isinstance(backend, BatchedBackend) and backend.level == target.level:
        return target.make(_lifted(array.data, backend.base, target.base), array.shared)
    return target.make(_lifted(array, backend, target.base), True)


def _summed(array: Any, backend: Any, levels: dict[int, int]) -> tuple[Any, Any]:
    if not isinstance(backend, BatchedBackend):
        return array, backend
    data, base = _summed(array.data, backend.base, levels)
    if backend.level not in levels:
        above = batching(backend.level, backend.size, base)
        return above.make(data, array.shared), above
    if array.shared:
        return data * backend.size, base
    return base.F.sum(data, axis=0), base


def _with_levels(backend: Any, levels: dict[int, int]) -> Any:
    """The backend with these levels besides its own."""
    sizes = {**_sizes(backend), **levels}
    while isinstance(backend, BatchedBackend):
        backend = backend.base
    for number in sorted(sizes):
        backend = batching(number, sizes[number], backend)
    return backend


class Crossing(SyntheticNode):
    """The node of a step into or out of levels."""

    __slots__ = ("back", "how")

    how: str
    back: Any  # the gradient's step, as (step, its arguments)

    def name(self) -> str:
        return f"Vmap{self.how.capitalize()}Backward0"

    def gradients(self, grads: list, create_graph: bool, needed: Any = None) -> list:
        """The step back.

        Over the samples of a mapping that is under way nothing is summed: a function that takes a
        gradient inside means that of its own sample.
        """
        (g,) = grads
        step, arguments = self.back
        if not create_graph:
            return [_ARRAYS[step](g, self.backend, *arguments)[0]]
        if step == "total" and mode.mappings:
            inside = [level.number for level in mode.mappings]
            levels = {n: size for n, size in arguments[0].items() if n not in inside}
            arguments = (levels, arguments[1])
        return [_STEPS[step](g, *arguments)]


def _stepped(
    x: Tensor, array: Any, backend: Any, how: str, back: tuple, shares: bool = True
) -> Tensor:
    storage = x._storage
    tensor = new_tensor(Storage(array, backend, (storage.root or storage) if shares else None))
    edge = current_edge(x)
    if edge is not None and mode.grad:
        node = Crossing(tensor._storage, (edge,))
        node.how, node.back = how, back
        tensor._edge = (node, 0)
    return tensor


def enter(x: Tensor, dim: int, level: Level) -> Tensor:
    """The samples along a dimension."""
    array, backend = _entered(x._storage.array, x._storage.backend, dim, level)
    # Its own root: offsets in memory are those of a sample.
    return _stepped(x, array, backend, "enter", ("leave", (dim, level)), False)


def leave(x: Tensor, dim: int, level: Level) -> Tensor:
    """All samples along a new dimension."""
    if level.number not in levels_of(x._storage.backend):
        x = lift(x, {level.number: level.size}, level)
    array, backend = _left(x._storage.array, x._storage.backend, dim, level)
    return _stepped(x, array, backend, "leave", ("enter", (dim, level)), False)


def lift(x: Tensor, levels: dict[int, int], token: Any = None) -> Tensor:
    """The tensor with further levels, for whose samples it is the same."""
    backend = _with_levels(x._storage.backend, levels)
    array = _lifted(x._storage.array, x._storage.backend, backend)
    return _stepped(x, array, backend, "lift", ("total", (levels, token)))


def total(x: Tensor, levels: dict[int, int], token: Any = None) -> Tensor:
    """The sum over the samples of some levels."""
    array, backend = _summed(x._storage.array, x._storage.backend, levels)
    back = {n: size for n, size in _sizes(x._storage.backend).items() if n in levels}
    return _stepped(x, array, backend, "total", ("lift", (back, token)), False)


def _array_lift(array: Any, backend: Any, levels: dict[int, int], token: Any) -> tuple:
    target = _with_levels(backend, levels)
    return _lifted(array, backend, target), target


def _array_leave(array: Any, backend: Any, dim: int, level: Level) -> tuple:
    return _left(array, backend, dim, level)


def _array_total(array: Any, backend: Any, levels: dict[int, int], token: Any) -> tuple:
    return _summed(array, backend, levels)


_STEPS: dict[str, Any] = {"enter": enter, "leave": leave, "lift": lift, "total": total}
_ARRAYS: dict[str, Any] = {
    "enter": _entered, "leave": _array_leave, "lift": _array_lift, "total": _array_total,
}  # fmt: skip


def _drawing_levels() -> dict[int, int]:
    """The levels whose samples draw different numbers; RuntimeError when one may not draw."""
    levels = {}
    for level in mode.mappings:
        how = randomness[level.number]
        if how == "error":
            raise RuntimeError(REFUSED)
        if how == "different":
            levels[level.number] = level.size
    return levels


class _Vmap(Interpreter):
    """What tensors become where they meet the levels under way."""

    def lift(self, inputs: tuple) -> tuple | None:
        """Inputs lifted to the levels that any of them has; None when that is not what differs."""
        backends = dict.fromkeys([x._storage.backend for x in inputs if x is not None])
        sizes: dict[int, int] = {}
        bases = set()
        for backend in backends:
            for number, size in _sizes(backend).items():
                if sizes.setdefault(number, size) != size:
                    return None
            while isinstance(backend, BatchedBackend):
                backend = backend.base
            bases.add(backend)
        if len(bases) > 1 or not sizes:
            return None
        result = []
        for x in inputs:
            if x is not None:
                own = levels_of(x._storage.backend)
                missing = {number: size for number, size in sizes.items() if number not in own}
                x = lift(x, missing) if missing else x
            result.append(x)
        return tuple(result)

    def run_per_sample(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """What a function gives for every sample of the highest of its tensors' levels, stacked."""
        leaves, spec = tree_flatten((args, kwargs))
        backends = [x._storage.backend for x in leaves if isinstance(x, Tensor)]
        number = max([backend.level for backend in backends if backend.batched])
        level = next(level for level in mode.mappings if level.number == number)
        warn_once(function.__name__, level.size)
        columns = [
            leave(x, 0, level).unbind() if isinstance(x, Tensor) and differs_at(x, level) else x
            for x in leaves
        ]
        results, out_spec = [], None
        for row in range(level.size):
            values = [column[row] if type(column) is tuple else column for column in columns]
            positional, named = spec.unflatten(values)
            found, out_spec = tree_flatten(function(*positional, **named))
            results.append(found)
        assert out_spec is not None
        return out_spec.unflatten(
            [enter(stack(list(column)), 0, level) for column in zip(*results, strict=True)]
        )

    def lift_variable(self, tensor: Tensor) -> Tensor:
        """The tensor with all the levels under way."""
        own = levels_of(tensor._storage.backend)
        missing = {level.number: level.size for level in mode.mappings if level.number not in own}
        return lift(tensor, missing, tuple(mode.mappings)) if missing else tensor

    def drawing_backend(self, backend: Any) -> Any:
        levels = _drawing_levels()
        return _with_levels(backend, levels) if levels else backend

    def lift_drawn(self, tensor: Tensor) -> Tensor:
        own = levels_of(tensor._storage.backend)
        missing = {n: size for n, size in _drawing_levels().items() if n not in own}
        return lift(tensor, missing) if missing else tensor

    def check_draw(self, tensor: Tensor) -> None:
        if not _drawing_levels().keys() <= {*levels_of(tensor._storage.backend)}:
            raise RuntimeError(SHARED)


interpreters.vmap = _Vmap()

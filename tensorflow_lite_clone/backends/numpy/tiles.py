"""Chains of steps over large arrays, done tile by tile: what lies between stays in a cache."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.blocks import unbuffered_rows
from tensorflow_lite_clone.backends.numpy.formulas import Node, Step, title_of
from tensorflow_lite_clone.backends.numpy.threads import parallel_for
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.backends.numpy.workspace import workspace
from tensorflow_lite_clone.core.flags import flags


class Operand:
    """An array that a chain reads, as it was seen, and as the chain cuts it into tiles."""

    def __init__(self, node: Node, strides: tuple[int, ...], whole: tuple[int, ...]) -> None:
        self.node, self.strides = node, strides
        #: An array that repeats its values lies without gaps where it does not.
        self.once = tuple([slice(0, 1) if not step else slice(None) for step in strides])
        sizes = [1 if not step else size for size, step in zip(node.shape, strides)]
        self.lies_well = _row_major(sizes, strides, node.dtype.itemsize)
        #: Along which axes of the chain it has values of their own.
        self.varies = [False] * (len(whole) - len(sizes)) + [size > 1 for size in sizes]
        self.shape: tuple[int, ...] = ()  # with the chain's axes joined

    def tiles(self, array: Any) -> Any:
        """The array in the joined shape."""
        return array[self.once].reshape(self.shape)


def _row_major(sizes: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    step = itemsize
    for size, stride in zip(reversed(sizes), reversed(strides)):
        if size > 1 and stride != step:
            return False
        step *= size
    return True


class Chain:
    """``chain(*arrays, into)``: the results of steps over arrays.

    `into` has an array or None for each result. Those of the nodes `updated` are also operands.
    With `compiled` there are loops among the steps. `text` is what is done to a tile.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        steps: list[Step],
        operands: list[Operand],
        results: list[Node],
        updated: list[Node],
        compiled: bool,
    ) -> None:
        self.shape, self._operands, self._results = shape, operands, results
        self._strides = [operand.strides for operand in operands]
        self._made_of = steps, updated, compiled
        self._join_axes()
        parts: list[Any] = list(steps)
        if compiled:
            from tensorflow_lite_clone.backends.numba.chains import loops

            shapes = {id(operand.node): operand.shape for operand in operands}
            parts = loops(steps, shapes, len(self._axes), set(map(id, results)), updated)
        tile, space, self._slots = _written(parts, operands, results)
        exec(compile(tile, "<chain>", "exec"), space)
        self.text = "\n".join([*_sources(parts, space), tile])
        self._tile = space["tile"]
        self._rows, self._width = self._axes[0], prod(self._axes[1:])
        self._cut = [operand.shape[0] == self._rows for operand in operands] + [True] * len(results)
        self._least = max(tuning.tile_per_thread // sum(map(_weight, parts)), 1)
        self._cached = max(
            tuning.tile_elements // (len(self._cut) + len(self._slots)), tuning.tile_minimum
        )

    def _join_axes(self) -> None:
        """Make one axis of neighbours along which every operand varies, or does not, alike."""
        axes: list[int] = []
        shapes: list[list[int]] = [[] for _ in self._operands]
        before: list[bool] | None = None
        for axis, size in enumerate(self.shape):
            if size == 1:
                continue
            varies = [operand.varies[axis] for operand in self._operands]
            if varies == before:
                axes[-1] *= size
            else:
                axes.append(size)
            for has, shape in zip(varies, shapes):
                if varies != before:
                    shape.append(1)
                shape[-1] *= size if has else 1
            before = varies
        self._axes = tuple(axes)
        for operand, shape in zip(self._operands, shapes):
            operand.shape = tuple(shape)

    def __call__(self, *arrays: Any, into: Sequence[Any]) -> list[Any]:
        if [array.strides for array in arrays] != self._strides:
            return self._of_others(arrays, into)
        results = [
            np.empty(self.shape, node.dtype) if array is None else array
            for node, array in zip(self._results, into)
        ]
        operands = [operand.tiles(array) for operand, array in zip(self._operands, arrays)]
        self._run(operands, [array.reshape(self._axes) for array in results])
        return results

    def _of_others(self, arrays: Sequence[Any], into: Sequence[Any]) -> list[Any]:
        """The results from arrays that lie in other ways than those that were captured."""
        steps, updated, compiled = self._made_of
        nodes = [operand.node for operand in self._operands]
        operands = [Operand(node, a.strides, self.shape) for node, a in zip(nodes, arrays)]
        given = [a if o.lies_well else np.array(a, order="C") for a, o in zip(arrays, operands)]
        operands = [Operand(node, a.strides, self.shape) for node, a in zip(nodes, given)]
        chain = Chain(self.shape, steps, operands, self._results, updated, compiled)
        made = chain(*given, into=[None] * len(into))
        for place, array in zip(into, made):
            if place is not None:
                np.copyto(place, array)
        return [array if place is None else place for place, array in zip(into, made)]

    def _run(self, operands: list[Any], results: list[Any]) -> None:
        arrays = [*operands, *results]
        rows, width = self._rows, self._width
        several = flags.threads > 1 and rows * width >= 2 * self._least
        most = max((tuning.tile_shared if several else self._cached) // width, 1)
        if rows <= most:
            self._tile(*arrays, *[np.empty(self._axes, kind) for kind in self._slots])
            return

        def part(start: int, stop: int) -> None:
            tiles = -((start - stop) // most)
            high = -((start - stop) // tiles)
            shape = (high, *self._axes[1:])
            with (
                workspace(high * width * len(self._slots), _BYTES) as memory,
                unbuffered_rows(width),
            ):
                slots = [
                    memory[i * high * width :].view(kind)[: high * width].reshape(shape)
                    for i, kind in enumerate(self._slots)
                ]
                for i in range(tiles):  # of one height or nearly: none is small
                    first = start + (stop - start) * i // tiles
                    last = start + (stop - start) * (i + 1) // tiles
                    self._tile(
                        *[a[first:last] if cut else a for a, cut in zip(arrays, self._cut)],
                        *[slot[: last - first] for slot in slots],
                    )

        parallel_for(part, rows, -(-self._least // width))


def _sources(parts: list[Any], space: dict[str, Any]) -> list[str]:
    """The sources of the loops, under the names that they have in a tile."""
    names = {id(word): name for name, word in space.items()}
    loops = {id(part.word): part for part in parts if not isinstance(part, Step)}
    return [part.text.replace("kernel", names[key], 1) for key, part in loops.items()]


def _weight(part: Any) -> int:
    """How long a part takes beside one word of NumPy's, roughly."""
    if not isinstance(part, Step):
        return 2
    return 1 if isinstance(part.word, np.ufunc) else 4


_BYTES = np.dtype(np.uint64)  # of a slot's element: what the widest has


def _written(
    parts: list[Any], operands: list[Operand], results: list[Node]
) -> tuple[str, dict[str, Any], list[np.dtype]]:
    """Steps and loops as a function of tiles: ``tile(operands..., results..., slots...)``.

    Its text, what the text names, and the dtypes of the slots.
    """
    names = {id(operand.node): f"x_{i}" for i, operand in enumerate(operands, 1)}
    final = {id(node): f"y_{i}" for i, node in enumerate(results, 1)}
    last = {id(node): i for i, part in enumerate(parts) for node in part.operands}
    space: dict[str, Any] = {}
    titles: dict[int, str] = {}
    slots: list[np.dtype] = []
    free: list[int] = []
    held: dict[int, int] = {}

    def constant(value: Any, title: str) -> str:
        if id(value) not in titles:
            name = title
            while name in space:
                name = f"{title}_{len(space)}"
            titles[id(value)] = name
            space[name] = value
        return titles[id(value)]

    def source(value: Any) -> str:
        if isinstance(value, Node):
            return names[id(value)]
        return repr(value) if type(value) in (bool, int) else constant(value, "number")

    def place(node: Node) -> str:
        """Where a part writes one of its results."""
        if id(node) in final:
            return final[id(node)]
        slot = next((i for i in free if slots[i] == node.dtype), len(slots))
        if slot == len(slots):
            slots.append(node.dtype)
        else:
            free.remove(slot)
        held[id(node)] = slot
        return f"t_{slot + 1}"

    lines = []
    for position, part in enumerate(parts):
        several = not isinstance(part, Step)
        results = part.results if several else [part.result]
        called = constant(part.word, title_of(part.word))
        given = [source(value) for value in part.operands]
        ended = [x for x in part.operands if id(x) in held and last[id(x)] == position]
        makes = not (several or isinstance(part.word, np.ufunc))  # an array of its own
        if not several:  # whose slots the same word may write to
            free += [held.pop(id(value)) for value in dict.fromkeys(ended)]
        if makes and id(part.result) not in final:
            places = [f"v_{position + 1}"]
        else:
            places = [place(node) for node in results]
        names.update(zip(map(id, results), places))
        if several:
            free += [held.pop(id(value)) for value in ended]
            lines.append(f"{called}({', '.join([*given, *places])})")
        elif makes:
            target = places[0] if places[0][0] == "v" else f"{places[0]}[...]"
            lines.append(f"{target} = {called}({', '.join(given)})")
        else:
            lines.append(f"{called}({', '.join(given)}, out={places[0]})")
    arguments = [names[id(operand.node)] for operand in operands]
    arguments += [*final.values(), *[f"t_{i + 1}" for i in range(len(slots))]]
    body = "".join([f"    {line}\n" for line in lines])
    return f"def tile({', '.join(arguments)}):\n{body}", space, slots

"""Chains of steps over large arrays, done tile by tile: what lies between stays in a cache."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.blocks import unbuffered_rows
from tensorflow_lite_clone.backends.numpy.formulas import title_of
from tensorflow_lite_clone.backends.numpy.threads import parallel_for
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.backends.numpy.workspace import workspace
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.fuse.symbol import Symbol


class Operand:
    """An array that a chain reads, as it was seen, and as the chain cuts it into tiles."""

    def __init__(self, symbol: Symbol, strides: tuple[int, ...], whole: tuple[int, ...]) -> None:
        self.symbol, self.strides = symbol, strides
        #: An array that repeats its values lies without gaps where it does not.
        self.once = tuple([slice(0, 1) if not step else slice(None) for step in strides])
        own = [size > 1 and step != 0 for size, step in zip(symbol.shape, strides)]
        #: Along which axes of the chain it has values of their own.
        self.varies = [False] * (len(whole) - len(own)) + own
        self.shape: tuple[int, ...] = ()  # with the chain's axes joined

    def tiles(self, array: Any) -> Any:
        """The array in the joined shape."""
        return array[self.once].reshape(self.shape)


def lies_well(array: Any) -> bool:
    """Whether an array is row-major where it does not repeat its values: tiles are views of it."""
    expected = array.dtype.itemsize
    for size, step in zip(reversed(array.shape), reversed(array.strides)):
        if size > 1 and step:
            if step != expected:
                return False
            expected *= size
    return True


def is_ufunc(part: Any) -> bool:
    """Whether a ufunc computes a symbol: it writes where it is told, all else makes an array."""
    return isinstance(part, Symbol) and isinstance(part.target.function(part), np.ufunc)


class Chain:
    """``chain(*arrays, into)``: the results of steps over arrays.

    Steps are symbols, each after its operands. `into` has an array or None for each result. Those
    of the symbols with an id in `updated` are also operands. With `compiled` there are loops among
    the steps. `text` is what is done to a tile.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        steps: list[Symbol],
        operands: list[Operand],
        results: list[Symbol],
        updated: set[int],
        compiled: bool,
    ) -> None:
        self.shape, self._operands, self._results = shape, operands, results
        self._strides = [operand.strides for operand in operands]
        self._made_of = steps, updated, compiled
        self._join_axes()
        parts: list[Any] = list(steps)
        if compiled:
            from tensorflow_lite_clone.backends.numba.chains import loops

            shapes = {id(operand.symbol): operand.shape for operand in operands}
            parts = loops(steps, shapes, len(self._axes), set(map(id, results)), updated)
        tile, loop_texts, space, self._slots = _written(parts, operands, results)
        exec(compile(tile, "<chain>", "exec"), space)
        self.text = "\n".join([*loop_texts, tile])
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
            np.empty(self.shape, symbol.dtype) if array is None else array
            for symbol, array in zip(self._results, into)
        ]
        operands = [operand.tiles(array) for operand, array in zip(self._operands, arrays)]
        self._run(operands, [array.reshape(self._axes) for array in results])
        return results

    def _of_others(self, arrays: Sequence[Any], into: Sequence[Any]) -> list[Any]:
        """The results from arrays that lie in other ways than those that were captured."""
        steps, updated, compiled = self._made_of
        arrays = [array if lies_well(array) else np.array(array, order="C") for array in arrays]
        symbols = [operand.symbol for operand in self._operands]
        operands = [Operand(s, a.strides, self.shape) for s, a in zip(symbols, arrays)]
        chain = Chain(self.shape, steps, operands, self._results, updated, compiled)
        made = chain(*arrays, into=[None] * len(into))
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


def _weight(part: Any) -> int:
    """How long a part takes beside one function of NumPy's, roughly."""
    if not isinstance(part, Symbol):
        return 2
    return 1 if is_ufunc(part) else 4


_BYTES = np.dtype(np.uint64)  # of a slot's element: what the widest has


def _written(
    parts: list[Any], operands: list[Operand], results: list[Symbol]
) -> tuple[str, list[str], dict[str, Any], list[np.dtype]]:
    """Steps and loops as a function of tiles: ``tile(operands..., results..., slots...)``.

    Its text, those of the loops, what the text names, and the dtypes of the slots.
    """
    names = {id(operand.symbol): f"x_{i}" for i, operand in enumerate(operands, 1)}
    final = {id(symbol): f"y_{i}" for i, symbol in enumerate(results, 1)}
    last = {id(symbol): i for i, part in enumerate(parts) for symbol in part.operands}
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

    def source(symbol: Symbol) -> str:
        if symbol.name != "number":
            return names[id(symbol)]
        value = symbol.value
        return repr(value) if type(value) in (bool, int) else constant(value, "number")

    def storage(symbol: Symbol) -> str:
        """Where a part writes one of its results."""
        if id(symbol) in final:
            return final[id(symbol)]
        slot = next((i for i in free if slots[i] == symbol.dtype), len(slots))
        if slot == len(slots):
            slots.append(symbol.dtype)
        else:
            free.remove(slot)
        held[id(symbol)] = slot
        return f"t_{slot + 1}"

    lines: list[str] = []
    loop_texts: dict[str, str] = {}
    for position, part in enumerate(parts):
        is_loop = not isinstance(part, Symbol)
        results = part.results if is_loop else [part]
        function = part.function if is_loop else part.target.function(part)
        called = constant(function, title_of(function))
        values = [source(symbol) for symbol in part.operands]
        ended = [x for x in part.operands if id(x) in held and last[id(x)] == position]
        makes = not (is_loop or isinstance(function, np.ufunc))  # an array of its own
        if not is_loop:  # whose slots the same function may write to
            free += [held.pop(key) for key in dict.fromkeys(map(id, ended))]
        if makes and id(part) not in final:
            targets = [f"v_{position + 1}"]
        else:
            targets = [storage(symbol) for symbol in results]
        names.update(zip(map(id, results), targets))
        if is_loop:
            free += [held.pop(id(symbol)) for symbol in ended]
            lines.append(f"{called}({', '.join([*values, *targets])})")
            loop_texts[called] = part.text.replace("kernel", called, 1)
        elif makes:
            target = targets[0] if targets[0][0] == "v" else f"{targets[0]}[...]"
            lines.append(f"{target} = {called}({', '.join(values)})")
        else:
            lines.append(f"{called}({', '.join(values)}, out={targets[0]})")
    arguments = [names[id(operand.symbol)] for operand in operands]
    arguments += [*final.values(), *[f"t_{i + 1}" for i in range(len(slots))]]
    body = "".join([f"    {line}\n" for line in lines])
    return f"def tile({', '.join(arguments)}):\n{body}", [*loop_texts.values()], space, slots

"""Chains of steps over large arrays, done tile by tile: what lies between stays in a cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.blocks import one_loop_a_row
from tensorflow_lite_clone.backends.numpy.formulas import Node, Step, title_of
from tensorflow_lite_clone.backends.numpy.scratch import scratch
from tensorflow_lite_clone.backends.numpy.threads import share
from tensorflow_lite_clone.core.flags import flags

_CACHED = 3 << 16  # elements of a tile in all its arrays: as float32 numbers they fit into L2
# Beside another thread tiles are larger: after every step the threads wait for each other.
_SHARED = 1 << 17
_SMALL = 1 << 14  # of half as many, forms of the CPU's own are those of large arrays
_LIGHT = 1 << 20  # elements a thread should have of a single step


class Operand:
    """An array that a chain reads, as the chain cuts it into tiles.

    `place`: the shape and strides that it was seen with; other ones are not cut.
    """

    def __init__(self, node: Node, strides: tuple[int, ...], whole: tuple[int, ...]) -> None:
        self.node, self.place = node, (node.shape, strides)
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

    `into` has an array or None for each result; one that is also an operand is written last.
    `text` is what is done to a tile.
    """

    def __init__(
        self, shape: tuple[int, ...], steps: list[Step], operands: list[Operand], results: list[Node]
    ) -> None:
        self.shape, self._operands, self._results = shape, operands, results
        self._join_axes()
        self.text, space, self._slots = _written(steps, operands, results)
        exec(compile(self.text, "<chain>", "exec"), space)
        self._tile = space["tile"]
        self._least = max(_LIGHT // len(steps), 1)
        self._arrays = len(operands) + len(results) + len(self._slots)

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
        results = [
            np.empty(self.shape, node.dtype) if array is None else array
            for node, array in zip(self._results, into)
        ]
        if all([(a.shape, a.strides) == o.place for a, o in zip(arrays, self._operands)]) and all(
            [array.flags.c_contiguous for array in results]
        ):
            operands = [operand.tiles(array) for operand, array in zip(self._operands, arrays)]
            self._run(operands, [array.reshape(self._axes) for array in results])
        else:
            self._tile(*arrays, *results, *[np.empty(self.shape, kind) for kind in self._slots])
        return results

    def _run(self, operands: list[Any], results: list[Any]) -> None:
        rows, width = self._axes[0], prod(self._axes[1:])
        arrays = [*operands, *results]
        cut = [array.shape[0] == rows for array in arrays]
        several = flags.threads > 1 and rows * width >= 2 * self._least
        most = max((_SHARED if several else max(_CACHED // self._arrays, _SMALL)) // width, 1)

        def part(start: int, stop: int) -> None:
            tiles = -((start - stop) // most)
            high = -((start - stop) // tiles)
            shape = (high, *self._axes[1:])
            with scratch(high * width * len(self._slots), _BYTES) as memory, one_loop_a_row(width):
                slots = [
                    memory[i * high * width :][: high * width].view(kind)[: high * width]
                    for i, kind in enumerate(self._slots)
                ]
                slots = [slot.reshape(shape) for slot in slots]
                for i in range(tiles):  # of one height or nearly: none is small
                    first = start + (stop - start) * i // tiles
                    last = start + (stop - start) * (i + 1) // tiles
                    self._tile(
                        *[a[first:last] if moves else a for a, moves in zip(arrays, cut)],
                        *[slot[: last - first] for slot in slots],
                    )

        share(part, rows, -(-self._least // width))


_BYTES = np.dtype(np.uint64)  # of a slot's element: what the widest has


def _written(
    steps: list[Step], operands: list[Operand], results: list[Node]
) -> tuple[str, dict[str, Any], list[np.dtype]]:
    """Steps as a function of tiles: ``tile(operands..., results..., slots...)``.

    Its text, what the text names, and the dtypes of the slots.
    """
    names = {id(operand.node): f"x_{i}" for i, operand in enumerate(operands, 1)}
    final = {id(node): f"y_{i}" for i, node in enumerate(results, 1)}
    last = {id(node): i for i, step in enumerate(steps) for node in step.operands}
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

    lines = []
    for position, step in enumerate(steps):
        key = id(step.result)
        given = ", ".join([source(value) for value in step.operands])
        called = constant(step.word, title_of(step.word))
        for value in step.operands:  # whose slot may be written to by the same word
            if last[id(value)] == position and id(value) in held:
                free.append(held.pop(id(value)))
        fresh = not isinstance(step.word, np.ufunc)
        if key in final:
            names[key] = final[key]
        elif fresh:
            names[key] = f"v_{position + 1}"
        else:
            slot = next((i for i in free if slots[i] == step.result.dtype), len(slots))
            if slot == len(slots):
                slots.append(step.result.dtype)
            else:
                free.remove(slot)
            held[key] = slot
            names[key] = f"t_{slot + 1}"
        if not fresh:
            lines.append(f"{called}({given}, out={names[key]})")
        elif key in final:
            lines.append(f"{names[key]}[...] = {called}({given})")
        else:
            lines.append(f"{names[key]} = {called}({given})")
    arguments = [names[id(operand.node)] for operand in operands]
    arguments += [*final.values(), *[f"t_{i + 1}" for i in range(len(slots))]]
    body = "".join([f"    {line}\n" for line in lines])
    return f"def tile({', '.join(arguments)}):\n{body}", space, slots

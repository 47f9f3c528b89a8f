"""What waits, joined: steps over the same elements become one kernel.

It keeps in registers what nobody holds any more, and computes again what it need not read.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple
from weakref import ref

import cupy
import numpy as np
from cupy import ndarray
from cupy.cuda import UnownedMemory

from tensorflow_lite_clone.backends.cupy.arrays import strides_of
from tensorflow_lite_clone.backends.cupy.fusion.formula import form_of
from tensorflow_lite_clone.backends.cupy.fusion.launch import Plan
from tensorflow_lite_clone.backends.cupy.fusion.layout import Walk, walk_into
from tensorflow_lite_clone.backends.cupy.fusion.source import Form
from tensorflow_lite_clone.backends.cupy.fusion.sums import Sums, by_columns
from tensorflow_lite_clone.backends.cupy.fusion.target import CUDA
from tensorflow_lite_clone.fuse import groups
from tensorflow_lite_clone.fuse.formula import Trace
from tensorflow_lite_clone.fuse.symbol import Symbol, in_order, operands_of, rebuilt

_MOST_ARRAYS = 24  # of one kernel
_MOST_WORDS = 4096 // 8  # of eight bytes, that a kernel may take as parameters on every device
_MOST_APART = 4  # large steps that wait on
_FEW = 64  # times as small is what is kept to compute an array again


class Step(NamedTuple):
    """A formula that waits: what its plan is made of, its operands, the arrays it is to fill."""

    name: str
    trace: Trace
    walk: Walk
    form: Form
    operands: tuple
    results: tuple
    sums: Sums | None = None  # of what the trace gives beyond the results

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the results."""
        return self.walk.shape

    @property
    def arrays(self) -> list[Any]:
        """The operands that are no numbers."""
        return [value for value in self.operands if value.__class__ is ndarray]

    def launch(self) -> None:
        """Fill the results."""
        made = self.name, self.trace, self.walk, self.form
        if self.sums is None:
            Plan(*made).into(self.operands, self.results)
        else:
            self.sums.launch(*made, self.operands, self.results)


class Origin(NamedTuple):
    """What an array was computed from: one array of its shape, at `large`, and small ones.

    The array itself and the large one are held weakly.
    """

    array: Any
    symbol: Symbol
    operands: dict[int, Any]
    large: int

    def operand(self, place: int) -> Any:
        """What an operand of the symbol stands for; None if it is gone."""
        value = self.operands[place]
        return value() if place == self.large else value

    def lost(self, written: list[Any], itself: bool) -> bool:
        """Whether it is gone, or one of these arrays lies where an operand does, or itself."""
        array, large = self.array(), self.operand(self.large)
        if array is None or large is None:
            return True
        held = [large, *[value for value in self.operands.values() if value.__class__ is ndarray]]
        held += [array] if itself else []
        return any([meets(value, other) for value in held for other in written])


def window(array: Any) -> tuple:
    """What tells which elements an array has, and how they are read."""
    return array.data.ptr, array.shape, array.strides, array.dtype


def span(array: Any) -> tuple[int, int]:
    """The first byte of an array and the one after its last."""
    low = high = array.data.ptr
    for size, step in zip(array.shape, array.strides):
        if step < 0:
            low += (size - 1) * step
        else:
            high += (size - 1) * step
    return low, high + array.itemsize


def _key(value: Any) -> Any:
    """What tells an operand from others: which elements it has, or which number it is."""
    return window(value) if value.__class__ is ndarray else id(value)


def meets(value: Any, x: Any) -> bool:
    """Whether elements of two arrays may lie at one place."""
    if value.__class__ is not ndarray:
        return False
    (low, high), (start, end) = span(value), span(x)
    return start < high and low < end


class _Item(groups.Item):
    """A step that waits, with the windows that it reads and writes."""

    def __init__(self, step: Step) -> None:
        super().__init__(step.shape, map(window, step.arrays), map(window, step.results))
        self.step = step

    @cached_property
    def numbers(self) -> int:
        """How many numbers the step's kernel takes, at most."""
        found = [symbol for symbol in in_order(self.step.trace.results) if symbol.name == "number"]
        return len(found) + sum(self.step.form.numbers)


class _Group(groups.Group[_Item]):
    """Steps that become one kernel, which has room for so many arrays and numbers."""

    def has_room(self, item: _Item) -> bool:
        windows = self.read | self.written | item.read | item.written
        arrays, axes = len(windows), len(self.shape)
        numbers = sum([other.numbers for other in self.items]) + item.numbers
        # for each array where it lies and its strides, the sizes, and the number of elements
        words = arrays * (1 + axes) + axes + 1 + numbers
        return arrays <= _MOST_ARRAYS and words <= _MOST_WORDS


def groups_of(steps: list[Step]) -> list[list[Step]]:
    """Steps that become one kernel each: the same elements, not too many arrays and numbers.

    What steps share they share as windows: memory that overlaps otherwise does not wait.
    """
    found = groups.groups_of(map(_Item, steps), _Group)
    return [[item.step for item in group.items] for group in found]


def parted(steps: list[Step], touched: Sequence[Any]) -> tuple[list[Step], list[Step]]:
    """The steps that are launched before these arrays are touched, and those that wait on.

    Of those over more than one element not many do, as they hold memory, and none that reads what
    is read now.
    """
    items = list(map(_Item, steps))
    large = [step.walk.elements > 1 for step in steps]
    launched = {
        position
        for position, step in enumerate(steps)
        if any([meets(v, other) for v in (*step.arrays, *step.results) for other in touched])
    }

    def follows(position: int) -> bool:
        """Whether a step that waits has to be launched with those that are."""
        item = items[position]
        for other in launched:
            if other > position and item.precedes(items[other]):
                return True
            if large[position] and not item.read.isdisjoint(
                items[other].read | items[other].written
            ):
                return True
        return False

    while True:
        waiting = [i for i in range(len(steps)) if i not in launched]
        more = [i for i in waiting if follows(i)]
        if not more:
            more = [i for i in waiting if large[i]][:-_MOST_APART]
        if not more:
            break
        launched.update(more)
    return [steps[i] for i in sorted(launched)], [steps[i] for i in waiting]


def needed_of(steps: list[Step]) -> set[int]:
    """The results, by identity, that something besides these steps holds or shares memory with."""
    mentions = Counter(id(v) for step in steps for v in (*step.operands, *step.results))
    fresh = cupy.ndarray((1,), np.float32)
    alone = (
        sys.getrefcount(fresh),
        sys.getrefcount(fresh.data),  # which views that begin where their array does share
        sys.getrefcount(fresh.data.mem),
    )
    needed = set()
    for step in steps:
        for value in step.results:
            # `value` is held by this loop as `fresh` is by this function; memory that came from
            # outside is held there
            if (
                value.data.mem.__class__ is UnownedMemory
                or sys.getrefcount(value) - mentions[id(value)] > alone[0]
                or sys.getrefcount(value.data) > alone[1]
                or sys.getrefcount(value.data.mem) > alone[2]
            ):
                needed.add(id(value))
    return needed


def origins_of(step: Step) -> dict[tuple, Origin]:
    """The results of a step that can be computed once more from one array of their shape.

    What they are computed from must not be overwritten by the step.
    """
    origins = {}
    for symbol, value in zip(step.trace.results, step.results):
        used = {operand.value: step.operands[operand.value] for operand in operands_of((symbol,))}
        large = [place for place, own in used.items() if own.shape == value.shape]
        small = [own for place, own in used.items() if place not in large]
        if any([meets(own, other) for own in used.values() for other in step.results]):
            continue
        if len(large) == 1 and all([own.size * _FEW <= value.size for own in small]):
            used[large[0]] = ref(used[large[0]])
            symbol = CUDA.cast(symbol, value.dtype)  # rounded as if it had been in memory
            origins[window(value)] = Origin(ref(value), symbol, used, large[0])
    return origins


def joined(
    group: list[Step], is_held: Callable[[Any], bool], origins: dict[Any, Origin]
) -> Step | None:
    """A group of steps as one, which writes what is held; None if that is nothing.

    An array with an origin is computed from it, if the group reads that anyway. None as well where
    what is to be summed does not lie so that it can be.
    """
    sums = group[-1].sums
    if len(group) == 1 and sums is None:
        return group[0] if any([is_held(value) for value in group[0].results]) else None
    read = {window(value) for step in group for value in step.arrays}
    whole = groups.Joined(CUDA)
    held: dict[tuple, Any] = {}  # the arrays to write

    def again(origin: Origin) -> Symbol:
        memo = {}
        for symbol in operands_of((origin.symbol,)):
            value = origin.operand(symbol.value)
            memo[id(symbol)] = whole.operand(_key(value), value, symbol.dtype)
        return rebuilt(origin.symbol, memo)

    for step in group:
        memo: dict[int, Symbol] = {}
        for symbol in step.trace.operands:
            value = step.operands[symbol.value]
            key = _key(value)
            origin = None if key in whole.computed else origins.get(key)
            if origin is not None and window(origin.operand(origin.large)) in read:
                memo[id(symbol)] = CUDA.cast(again(origin), symbol.dtype)
            else:
                memo[id(symbol)] = whole.read(key, value, symbol.dtype)
        found = [rebuilt(symbol, memo) for symbol in step.trace.results]
        for symbol, value in zip(found, step.results):
            # what stays in registers is rounded as if it had been in memory
            whole.computed[window(value)] = CUDA.cast(symbol, value.dtype)
            if is_held(value):
                held[window(value)] = value
    if not held and sums is None:
        return None
    results = [whole.computed[key] for key in held]
    results += found if sums is not None else []
    operands = tuple(whole.arguments)
    traced = Trace(
        names=tuple([f"x{position}" for position in range(len(operands))]),
        operands=operands_of(tuple(results)),
        results=tuple(results),
        by_shape=True,
        literal=False,
    )
    arrays = tuple(held.values())
    walked, form = formed(traced, operands, arrays, like=arrays or group[-1].operands[:1])
    if sums is None:
        return Step("chain", traced, walked, form, operands, arrays)
    columns = by_columns(walked, form, group[-1].shape[1])
    if columns is None:
        return None
    return Step(group[-1].name, traced, walked, columns, operands, arrays, sums)


def formed(made: Trace, given: tuple, results: tuple, like: tuple) -> tuple[Walk, Form]:
    """How a trace walks over operands and results; without results, in the order of `like`."""
    operands = [v for v in (given[s.value] for s in made.operands) if v.__class__ is ndarray]
    shapes, strides = [v.shape for v in operands], [strides_of(v) for v in operands]
    walked = walk_into(shapes, strides, like[0].shape, [strides_of(v) for v in like])
    if not results:
        walked = walked._replace(steps=walked.steps[:-1])
    return walked, form_of(walked, given, operands, tuple([value.dtype for value in results]))

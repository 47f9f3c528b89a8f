"""Pointwise kernels that wait for each other, while a graph is captured: chains become one kernel.

A formula's results are arrays at once, but what fills them is put off until something else than a
formula runs. Then all that waits is launched: neighbours over the same elements as one kernel,
which keeps in registers what nobody holds any more. `outside` goes around what is no formula.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import cupy
import numpy as np
from cupy import ndarray
from cupy.cuda import UnownedMemory
from cupy.cuda.compiler import CompileException

from tensorflow_lite_clone.backends.cupy.arrays import strides_of
from tensorflow_lite_clone.backends.cupy.fusion.expression import (
    Symbol,
    Trace,
    cast,
    in_order,
    operands_of,
)
from tensorflow_lite_clone.backends.cupy.fusion.formula import form_of, in_place
from tensorflow_lite_clone.backends.cupy.fusion.launch import Plan, maker
from tensorflow_lite_clone.backends.cupy.fusion.layout import Walk, walk_into
from tensorflow_lite_clone.backends.cupy.fusion.source import Form

_MOST_STEPS = 128  # that wait
_MOST_ARRAYS = 24  # of one kernel
_MOST_WORDS = 4096 // 8  # of eight bytes, that a kernel may take as parameters on every device


class Step(NamedTuple):
    """A formula that waits: what its plan is made of, its operands, the arrays it is to fill."""

    name: str
    trace: Trace
    walk: Walk
    form: Form
    operands: tuple
    results: tuple

    def launch(self) -> None:
        """Fill the results."""
        Plan(self.name, self.trace, self.walk, self.form).into(self.operands, self.results)


#: Each is called with a step before it is launched, and the steps that it was joined from.
watchers: list[Callable[[Step, list[Step]], None]] = []


def _window(array: Any) -> tuple:
    return array.data.ptr, array.shape, array.strides, array.dtype


def _span(array: Any) -> tuple[int, int]:
    """The first byte of an array and the one after its last."""
    low = high = array.data.ptr
    for size, step in zip(array.shape, array.strides):
        if step < 0:
            low += (size - 1) * step
        else:
            high += (size - 1) * step
    return low, high + array.itemsize


class _Known:
    """Arrays, by where they lie: memory that came from outside may be known under many names."""

    def __init__(self) -> None:
        self._spans: dict[tuple, tuple[int, int]] = {}  # by window

    def add(self, array: Any) -> None:
        """Note an array."""
        self._spans[_window(array)] = _span(array)

    def clear(self) -> None:
        """Forget all."""
        self._spans.clear()

    def clashes(self, array: Any) -> bool:
        """Whether an array shares elements with one that is known, but not one by one."""
        low, high = _span(array)
        near = [
            window for window, (start, end) in self._spans.items() if start < high and low < end
        ]
        return bool(near) and any([window != _window(array) for window in near])


class Chain(threading.local):
    """What waits in this thread."""

    def __init__(self) -> None:
        self.on = False  # formulas are put off
        self.here: Callable[[], Any] = nullcontext  # a block on the device that is captured
        self.steps: list[Step] = []
        self._read = _Known()  # the arrays that steps read
        self._written = _Known()

    def defer(self, step: Step) -> None:
        """Let a formula wait."""
        arrays = [value for value in step.operands if value.__class__ is ndarray]
        results = step.results
        read, written = self._read, self._written
        if any([written.clashes(value) for value in arrays]) or any(
            [written.clashes(value) or read.clashes(value) for value in results]
        ):
            self.flush()
        for value in arrays:
            read.add(value)
        for value in results:
            written.add(value)
        self.steps.append(step)
        if len(self.steps) == _MOST_STEPS:
            self.flush()

    def flush(self) -> None:
        """Launch what waits."""
        if not self.steps:
            return
        steps, self.steps = self.steps, []
        self._read.clear()
        self._written.clear()
        groups = _groups(steps)
        needed = _needed(steps)
        later: set[Any] = set()  # what the groups that follow read
        joined = []
        for group in reversed(groups):
            joined.append((_joined(group, needed, later), group))
            later.update([_window(v) for s in group for v in s.operands if v.__class__ is ndarray])
        with self.here():  # work for another device may be what they have to precede
            for step, group in reversed(joined):
                if step is not None:
                    _launch(step, group)

    def drop(self) -> None:
        """Forget what waits."""
        self.on = False
        self.steps.clear()
        self._read.clear()
        self._written.clear()

    def outside(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What `call` gives, which may do anything with arrays, after what waits is launched."""
        if not self.on:
            return call(*args, **kwargs)
        self.flush()
        self.on = False
        try:
            return call(*args, **kwargs)
        finally:
            self.on = True


chain = Chain()


def around(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, which may do anything with arrays; `aware` ones see to it themselves."""
    if getattr(getattr(call, "func", call), "aware", False):
        return call

    def outside(*args: Any, **kwargs: Any) -> Any:
        return chain.outside(call, *args, **kwargs)

    return outside


def aware(override: Any) -> Any:
    """Mark an override that launches what waits before it touches arrays, and may defer itself."""
    override.aware = True
    return override


def viewing(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, which makes views of its first operand and touches no elements, or else copies."""

    def view(x: Any, *args: Any, **kwargs: Any) -> Any:
        on, chain.on = chain.on, False
        try:
            made = call(x, *args, **kwargs)
            views = made if type(made) is tuple else (made,)
            if not chain.steps or all([_shares(value, x) for value in views]):
                return made
            chain.flush()  # what was copied may not have been filled yet
            return call(x, *args, **kwargs)
        finally:
            chain.on = on

    return view


def backward(node: Any, call: Callable[..., Any], grads: list) -> Any:
    """Run a node's gradients, for `hooks.backwards`: formulas wait, what waits precedes others."""
    op = getattr(node, "op", None)
    if op is None or node.backend.batched:
        return chain.outside(call, grads)
    if op.deferrable if op.joint is not None else not op.shared:
        return call(grads)
    return chain.outside(call, grads)


def deferring(call: Callable[..., Any]) -> Callable[..., Any]:
    """What `launch.formula` gave, put off while the chain is on."""
    made = call.formula  # type: ignore[attr-defined]

    def put_off(*arrays: Any, **parameters: Any) -> Any:
        if not chain.on:
            return call(*arrays, **parameters)
        formed = None if made.refused else made.formed(arrays, parameters)
        if formed is None:
            return chain.outside(call, *arrays, **parameters)
        traced, walked, form = formed
        news = [maker(walked.shape, dtype, walked.strides) for dtype in form.results]
        results = [new() for new in news]
        if walked.elements:
            chain.defer(Step(made.name, traced, walked, form, arrays, tuple(results)))
        return tuple(results) if len(results) > 1 else results[0]  # not the tuple of the step

    put_off.formula = made  # type: ignore[attr-defined]
    return put_off


def deferring_in_place(call: Any) -> Callable[..., Any]:
    """What `launch.in_place` makes of a formula, put off while the chain is on."""
    made, write = call.formula, in_place(call)

    def put_off(x: Any, *others: Any, **parameters: Any) -> Any:
        if not chain.on:
            return write(x, *others, **parameters)
        formed = None
        if not made.refused and all([value is x or not _meets(value, x) for value in others]):
            formed = made.formed((x, *others), parameters, x)
        if formed is None:
            return chain.outside(write, x, *others, **parameters)
        traced, walked, form = formed
        if walked.elements:
            chain.defer(Step(made.name, traced, walked, form, (x, *others), (x,)))
        return True

    return put_off


def _shares(value: Any, x: Any) -> bool:
    """Whether two arrays lie in the same memory."""
    return value.__class__ is ndarray and value.data.mem.ptr == x.data.mem.ptr


def _meets(value: Any, x: Any) -> bool:
    """Whether elements of two arrays may lie at one place."""
    if value.__class__ is not ndarray:
        return False
    (low, high), (start, end) = _span(value), _span(x)
    return start < high and low < end


def launching(*launch: Any) -> Callable[[], None]:
    """Launch what waits before any other kernel of ours, for `hooks.launches`."""
    chain.flush()
    return lambda: None


def _launch(step: Step, group: list[Step]) -> None:
    """Launch what a group was joined to, or the group one by one where that does not compile."""
    for watch in watchers:
        watch(step, group)
    try:
        step.launch()
    except CompileException as error:
        if len(group) == 1:
            raise
        names = ", ".join([alone.name for alone in group])
        warnings.warn(
            f"a kernel of several formulas ({names}) does not compile, and they run one by one: "
            f"{error}",
            RuntimeWarning,
            stacklevel=2,
        )
        for alone in group:
            _launch(alone, [alone])


def _groups(steps: list[Step]) -> list[list[Step]]:
    """Neighbours that become one kernel: the same elements, not too many arrays and numbers."""
    groups: list[list[Step]] = []
    shape: Any = None
    arrays: set[Any] = set()  # of the last group, by where they lie
    numbers = 0
    for step in steps:
        mine = {_window(v) for v in (*step.operands, *step.results) if v.__class__ is ndarray}
        more, axes = _numbers(step), len(step.results[0].shape)
        together = len(arrays | mine)
        # for each array where it lies and its strides, the sizes, and the number of elements
        words = together * (1 + axes) + axes + 1 + numbers + more
        many = together > _MOST_ARRAYS or words > _MOST_WORDS
        if not groups or step.results[0].shape != shape or many:
            groups.append([])
            shape, arrays, numbers = step.results[0].shape, set(), 0
        groups[-1].append(step)
        arrays |= mine
        numbers += more
    return groups


def _numbers(step: Step) -> int:
    """How many numbers the step's kernel takes, at most."""
    found = [symbol for symbol in in_order(step.trace.results) if symbol.word == "number"]
    return len(found) + sum(step.form.numbers)


def _needed(steps: list[Step]) -> set[int]:
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


def _joined(group: list[Step], needed: set[int], later: set[Any]) -> Step | None:
    """A group of steps as one, which writes what is needed or read later."""

    def is_held(value: Any) -> bool:
        return id(value) in needed or _window(value) in later

    if len(group) == 1:
        return group[0] if any([is_held(value) for value in group[0].results]) else None
    made: dict[tuple, Symbol] = {}  # what the group has computed, by where it is to lie
    held: dict[tuple, Any] = {}  # the arrays to write
    given: list[Any] = []  # the arrays and numbers it reads
    places: dict[Any, Symbol] = {}
    for step in group:
        traced = step.trace
        memo: dict[int, Symbol] = {}
        for symbol in traced.operands:
            value = step.operands[symbol.value]
            key: Any = _window(value) if value.__class__ is ndarray else id(value)
            if key in made:
                memo[id(symbol)] = cast(made[key], symbol.dtype)
                continue
            if (key, symbol.dtype) not in places:
                places[key, symbol.dtype] = Symbol("operand", symbol.dtype, value=len(given))
                given.append(value)
            memo[id(symbol)] = places[key, symbol.dtype]
        found = [_rebuilt(symbol, memo) for symbol in traced.results]
        for symbol, value in zip(found, step.results):
            if symbol.dtype != value.dtype:  # rounded as if it had been in memory
                symbol = Symbol("astype", value.dtype, (symbol,))
            made[_window(value)] = symbol
            if is_held(value):
                held[_window(value)] = value
    if not held:
        return None
    results = [made[key] for key in held]
    traced = Trace(
        names=tuple([f"x{place}" for place in range(len(given))]),
        operands=operands_of(tuple(results)),
        results=tuple(results),
        several=True,
        by_shape=True,
        literal=False,
    )
    arrays = tuple(held.values())
    walked, form = _formed(traced, tuple(given), arrays)
    return Step("chain", traced, walked, form, tuple(given), arrays)


def _formed(made: Trace, given: tuple, results: tuple) -> tuple[Walk, Form]:
    """How a trace walks over these operands and results."""
    operands = [v for v in (given[s.value] for s in made.operands) if v.__class__ is ndarray]
    walked = walk_into(
        [value.shape for value in operands],
        [strides_of(value) for value in operands],
        results[0].shape,
        [strides_of(value) for value in results],
    )
    return walked, form_of(walked, given, operands, tuple([value.dtype for value in results]))


def _rebuilt(symbol: Symbol, memo: dict[int, Symbol]) -> Symbol:
    """A symbol over other operands; `memo` has those of the operands, and takes all others."""
    known = memo.get(id(symbol))
    if known is None:
        known = symbol
        if symbol.operands:
            operands = tuple([_rebuilt(operand, memo) for operand in symbol.operands])
            known = Symbol(symbol.word, symbol.dtype, operands, symbol.value)
        memo[id(symbol)] = known
    return known

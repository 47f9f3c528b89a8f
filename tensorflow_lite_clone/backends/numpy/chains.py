"""Which calls on a tape become chains: formulas over large arrays of one shape, in a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import Any

from tensorflow_lite_clone.backends.numpy.formulas import OUT_OF_PLACE, CpuTarget, formula
from tensorflow_lite_clone.backends.numpy.recording import Value, root_of
from tensorflow_lite_clone.backends.numpy.tiles import Chain, Operand, is_ufunc, lies_well
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.fuse import groups
from tensorflow_lite_clone.fuse.symbol import Symbol, in_order, operands_of, rebuilt
from tensorflow_lite_clone.trace import Call, values_in


def joined(calls: list[Call], arrays: Any) -> list[Call]:
    """The calls with chains in place of those that are joined, which are done in their order.

    What has nothing to do with a chain that is not complete is done before it, but for what writes
    into memory from before: arrays there may share it without our knowing.
    """
    target = CpuTarget(arrays)
    calls = [call for call in calls if not _hands_on(call, target)]
    uses = Counter([id(value) for call in calls for value in values_in(call)])
    compiled = "numba" in arrays.backend.accelerators
    done: list[Call] = []
    waiting: list[_Links] = []  # one at most
    for call in calls:
        link = _link(call, target)
        if link is not None:
            groups.group_for(waiting, link, _Links).add(link)
            complete = waiting[:-1]
        else:
            memory = set(map(_root, values_in(call)))
            touches = any([not memory.isdisjoint(x.read | x.written) for x in waiting])
            complete = waiting if touches or call.writes else []
        done += [each for links in complete for each in links.calls(target, uses, compiled)]
        waiting = waiting[len(complete) :]
        if link is None:
            done.append(call)
    return [*done, *[each for links in waiting for each in links.calls(target, uses, compiled)]]


class _Link(groups.Item):
    """A call that may be part of a chain, with its formula."""

    def __init__(
        self, call: Call, operands: list[tuple[Value, Symbol]], results: list[tuple[Value, Symbol]]
    ) -> None:
        read, written = ([(_root(v), id(v)) for v, _ in pairs] for pairs in (operands, results))
        super().__init__(results[0][0].shape, dict(read), dict(written))
        self.call, self.operands, self.results = call, operands, results
        self.arrays = {*read, *written}  # with their memory


class _Links(groups.Group[_Link]):
    """Calls that make a chain."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(shape)
        self.arrays: set[tuple[int, int]] = set()

    def has_room(self, item: _Link) -> bool:
        """Whether memory that is written is that of one array alone."""
        counts = Counter([memory for memory, _ in self.arrays | item.arrays])
        return all([counts[memory] == 1 for memory in self.written | item.written])

    def add(self, item: _Link) -> None:
        super().add(item)
        self.arrays |= item.arrays

    def calls(self, target: CpuTarget, uses: Counter[int], compiled: bool) -> Iterator[Call]:
        """The chain as one call, or the calls themselves where one function is all there is."""
        calls = [link.call for link in self.items]
        inside = Counter([id(value) for call in calls for value in values_in(call)])
        whole = groups.Joined(target)
        computed: dict[int, Value] = {}
        symbols: list[Symbol] = []
        for link in self.items:
            memo = {id(s): whole.read(id(value), value, s.dtype) for value, s in link.operands}
            for value, symbol in link.results:
                whole.computed[id(value)] = rebuilt(symbol, memo)
                symbols.append(whole.computed[id(value)])
                computed[id(value)] = value
        read = set(map(id, whole.arguments))
        values = [
            value
            for key, value in computed.items()
            if value.array is not None
            or value.shared is not None
            or uses[key] > inside[key]
            or key in read
        ]
        results = tuple([whole.computed[id(value)] for value in values])
        live = set(map(id, in_order(results)))
        steps = [s for s in in_order(tuple(symbols)) if s.operands and id(s) in live]
        if not steps:  # nobody reads any of it
            return
        size = prod(self.shape)
        ufuncs = sum(map(is_ufunc, steps))  # others share work anyway
        compiled = compiled and size >= tuning.chain_compiled and ufuncs > 1
        several = compiled or size * ufuncs >= tuning.chain_work
        if not several or len({*map(id, results)}) < len(results):
            yield from calls
            return
        used = operands_of(results)
        arguments = tuple([whole.arguments[symbol.value] for symbol in used])
        operands = [Operand(s, value.strides, self.shape) for s, value in zip(used, arguments)]
        updated = {id(whole.computed[key]) for key in read if key in computed}
        chain = Chain(self.shape, steps, operands, list(results), updated, compiled)
        yield Call(chain, arguments, {}, result=values)


def _link(call: Call, target: CpuTarget) -> _Link | None:
    """A call as a link, if it is one: what its formula gives is what the call gave."""
    shapes = {value.shape for value in _results(call) if value is not None}
    if len(shapes) != 1 or isinstance(call.result, tuple):
        return None
    (shape,) = shapes
    if prod(shape) < tuning.chain_elements:
        return None
    operands, found = _formula(call, target)
    if found is None or not all([lies_well(value) for value, _ in operands]):
        return None
    symbols = tuple([symbol for symbol in found if symbol is not None])
    if any([symbol.shape != shape for symbol in in_order(symbols) if symbol.operands]):
        return None
    if [value is None for value in _results(call)] != [symbol is None for symbol in found]:
        return None
    results = []
    for value, symbol in zip([value for value in _results(call) if value is not None], symbols):
        if (value.shape, value.dtype) != (symbol.shape, symbol.dtype):
            return None
        before = next((own for other, own in operands if other is value), None)
        if before is symbol:  # it is handed on
            continue
        if not symbol.operands or value.base is not None:
            return None
        if call.target in OUT_OF_PLACE:  # nobody may see it before it is written
            if value is not call.args[0] or value.call is None:
                return None
        elif before is not None or not lies_well(value):
            return None
        results.append((value, symbol))
    link = _Link(call, operands, results) if results else None
    return link if link is not None and _Links(shape).has_room(link) else None


def _formula(
    call: Call, target: CpuTarget
) -> tuple[list[tuple[Value, Symbol]], list[Symbol | None] | None]:
    """The arrays that a call is given, with symbols for them, and its formula."""
    operands: dict[int, tuple[Value, Symbol]] = {}
    for value in call.args:
        if isinstance(value, Value) and id(value) not in operands:
            symbol = Symbol(target, "operand", value.dtype, (), len(operands), value.shape)
            operands[id(value)] = value, symbol
    args = [operands[id(x)][1] if isinstance(x, Value) else x for x in call.args]
    return list(operands.values()), formula(target, call.target, args, call.kwargs)


def _hands_on(call: Call, target: CpuTarget) -> bool:
    """Whether a gradient is the one that it was given, as that of a sum is."""
    if call.result is None or not any([value is call.result for value in call.args]):
        return False
    _, found = _formula(call, target)
    return found is not None and not any([s is None or s.operands for s in found])


def _results(call: Call) -> list[Any]:
    return [value if isinstance(value, Value) else None for value in call.results]


def _root(value: Value) -> int:
    """What stands for the memory of a value."""
    memory = value.memory
    return id(memory) if memory.call is not None else id(root_of(memory.array))

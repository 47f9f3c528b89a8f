"""Which calls on a tape become chains: formulas over large arrays of one shape, in a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.formulas import Formula, Node, Step, formula
from tensorflow_lite_clone.backends.numpy.recording import Value, root_of
from tensorflow_lite_clone.backends.numpy.tiles import Chain, Operand
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.trace import Call, values_in


def joined(entries: list[Call], F: Any) -> list[Call]:
    """The calls with chains in place of those that are joined, which are done in their order.

    What has nothing to do with a chain that is not complete is done before it, but for what writes
    into memory from before: arrays there may share it without our knowing.
    """
    entries = [entry for entry in entries if not _hands_on(entry, F)]
    uses = Counter([id(value) for entry in entries for value in values_in(entry)])
    compiled = "numba" in F.backend.accelerators
    made: list[Call] = []
    links: _Links | None = None
    for entry in entries:
        shape = _shape(entry)
        if shape is not None:
            if links is not None and links.shape == shape and links.take(entry, F):
                continue
            following = _Links(shape)
            if following.take(entry, F):
                if links is not None:
                    made += links.entries(uses, compiled)
                links = following
                continue
        touches = links is not None and not links.roots.isdisjoint(map(_root, values_in(entry)))
        if links is not None and (touches or entry.writes):
            made += links.entries(uses, compiled)
            links = None
        made.append(entry)
    return made if links is None else [*made, *links.entries(uses, compiled)]


class _Links:
    """Calls that make a chain, so far."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.roots: set[int] = set()  # of the memory that they read or write
        self._written: set[int] = set()  # of the memory from before that they write
        self._calls: list[Call] = []
        self._steps: list[Step] = []
        self._nodes: dict[int, Node] = {}  # what a value is now
        self._given: dict[int, tuple[Value, Node]] = {}  # what the steps find there
        self._made: dict[int, Value] = {}  # or written

    def take(self, entry: Call, F: Any) -> bool:
        """Append a call, if it can be: whether it was."""
        values = [value for value in entry.args if isinstance(value, Value)]
        if not all([self._lies_well(value) for value in values]):
            return False
        nodes = {id(v): self._nodes.get(id(v)) or Node(v.shape, v.dtype) for v in values}
        args = [nodes[id(x)] if isinstance(x, Value) else x for x in entry.args]
        found = formula(F, entry.target, args, entry.kwargs)
        if found is None or any([step.result.shape != self.shape for step in found.steps]):
            return False
        results = list(_results(entry))
        if not self._fits(entry, values, results, found, nodes):
            return False
        for value in values:
            if id(value) not in self._nodes:
                self._given[id(value)] = value, nodes[id(value)]
        self._nodes.update(nodes)
        for value, node in zip(results, found.results):
            if node is not None and nodes.get(id(value)) is not node:
                self._nodes[id(value)] = node
                self._made[id(value)] = value
        self._written |= {_root(entry.args[place]) for place in found.written}
        self.roots |= {_root(value) for value in values_in(entry)}
        self._steps += found.steps
        self._calls.append(entry)
        return True

    def _lies_well(self, value: Value) -> bool:
        known = id(value) in self._nodes
        return known or Operand(Node(value.shape, value.dtype), value.strides, self.shape).lies_well

    def _fits(
        self, entry: Call, values: list[Value], results: list[Any], found: Formula, nodes: dict
    ) -> bool:
        """Whether what a formula gives is what the call gave, and nothing is written too early."""
        if len(results) != len(found.results):
            return False
        targets = [entry.args[place] for place in found.written]
        for value, node in zip(results, found.results):
            if value is None or node is None:
                if value is not node:
                    return False
                continue
            old = id(value) in nodes
            if old != (node is nodes.get(id(value)) or value in targets):
                return False
            if (value.shape, value.dtype) != (node.shape, node.dtype):
                return False
            if not old and (value.base is not None or not self._lies_well(value)):
                return False
        for target in targets:  # of which nobody may see another part
            if target.base is not None or target.call is None or target.shape != self.shape:
                return False
            others = [v for v, _ in self._given.values()] + values
            if any([v is not target and _root(v) == _root(target) for v in others]):
                return False
        return all([id(v) in self._nodes or _root(v) not in self._written for v in values])

    def entries(self, uses: Counter[int], compiled: bool) -> Iterator[Call]:
        """The chain as one call, or the calls themselves where one word is all there is."""
        inside = Counter([id(value) for call in self._calls for value in values_in(call)])
        results = [
            value
            for key, value in self._made.items()
            if value.array is not None
            or value.shared is not None
            or uses[key] > inside[key]
            or key in self._given
        ]
        nodes = [self._nodes[id(value)] for value in results]
        steps = _needed(self._steps, nodes)
        if not steps:  # nobody reads any of it
            return
        size = prod(self.shape)
        words = sum([isinstance(step.word, np.ufunc) for step in steps])  # others share work anyway
        compiled = compiled and size >= tuning.chain_compiled and words > 1
        if not compiled and size * words < tuning.chain_work or len({*map(id, nodes)}) < len(nodes):
            yield from self._calls
            return
        read = {id(operand) for step in steps for operand in step.operands}
        given = [(value, node) for value, node in self._given.values() if id(node) in read]
        operands = [Operand(node, value.strides, self.shape) for value, node in given]
        updated = [self._nodes[key] for key in self._given if key in self._made]
        chain = Chain(self.shape, steps, operands, nodes, updated, compiled)
        yield Call(chain, tuple([value for value, _ in given]), {}, result=results)


def _needed(steps: list[Step], results: list[Node]) -> list[Step]:
    """The steps that results come from."""
    wanted = set(map(id, results))
    kept: list[Step] = []
    for step in reversed(steps):
        if id(step.result) in wanted:
            wanted.update(map(id, step.operands))
            kept.append(step)
    return kept[::-1]


def _shape(entry: Call) -> tuple[int, ...] | None:
    """The shape of what a call gives, if it may be a link."""
    shapes = {value.shape for value in _results(entry) if value is not None}
    if len(shapes) != 1 or isinstance(entry.result, tuple):
        return None
    (shape,) = shapes
    return shape if prod(shape) >= tuning.chain_elements else None


def _hands_on(entry: Call, F: Any) -> bool:
    """Whether a gradient is the one that it was given, as that of a sum is."""
    if entry.result is None or not any([value is entry.result for value in entry.args]):
        return False
    args = [Node(v.shape, v.dtype) if isinstance(v, Value) else v for v in entry.args]
    found = formula(F, entry.target, args, entry.kwargs)
    return found is not None and not found.steps and not found.written


def _results(entry: Call) -> list[Any]:
    result = entry.result if isinstance(entry.result, list) else [entry.result]
    return [value if isinstance(value, Value) else None for value in result]


def _root(value: Value) -> int:
    """What stands for the memory of a value."""
    memory = value.memory
    return id(memory) if memory.call is not None else id(root_of(memory.array))

"""Repeats drawn once: twelve equal blocks in a row become one block "x 12".

What lies in a group (or outside of all) is a sequence of items, nodes and groups, in the order in
which they were made. A part of it repeats with period p if each item looks like the one p places
later (the same operation on the same shapes, or a group of such), and if what that one reads lies p
places later as well, or is the very same (weights that all repeats share, a mask). So no edge
changes its meaning when all repeats are drawn as the first one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.viz.contract import ancestors, depths, merge
from tensorflow_lite_clone.viz.model import Group, Node

if TYPE_CHECKING:
    from tensorflow_lite_clone.viz.graph import Graph

#: So many periods of each kind are tried.
PERIODS = 12
#: Single nodes are drawn once if that saves so many.
WORTH = 6


def fold(graph: Graph) -> Graph:
    """The graph with its repeats drawn once; their times, sizes and parameters are summed.

    Repeats may show only when others have been drawn once (a sum over equal branches), hence again
    until nothing changes.
    """
    while True:
        folded = _fold_once(graph)
        if len(folded.nodes) == len(graph.nodes):
            return folded
        graph = folded


def _fold_once(graph: Graph) -> Graph:
    folding = _Folding(graph)
    level = depths(graph.groups)
    for group in sorted(folding.items, key=level.__getitem__, reverse=True):  # innermost first
        folding.shorten(folding.items[group], group)
    folded = merge(graph, folding.into, folding.groups_in_use())
    places = {key: number for number, key in enumerate(folded.nodes)}
    folded.edges = [
        edge if places[edge.source] < places[edge.target] else replace(edge, kind="next")
        for edge in folded.edges
        if edge.kind != "order" or places[edge.source] < places[edge.target]
    ]
    return folded


class _Folding:
    """`into` says as which node each node is drawn."""

    def __init__(self, graph: Graph) -> None:
        self.groups = {key: replace(group) for key, group in graph.groups.items()}
        self.into = {key: replace(node) for key, node in graph.nodes.items()}
        self._paths: dict[str, list[str]] = {}  # "", its groups from the outermost, itself
        self.parts: dict[str, dict[str, int]] = {}  # per item its nodes, numbered
        self._reads: dict[str, list[str]] = {key: [] for key in graph.nodes}
        for edge in graph.edges:
            if edge.kind != "order":
                self._reads[edge.target].append(edge.source)
        contents: dict[str, dict[str, None]] = {"": {}}
        for key, node in graph.nodes.items():
            path = ["", *[*ancestors(graph.groups, node.group)][::-1], key]
            self._paths[key] = path
            for outer, item in zip(path, path[1:]):
                contents.setdefault(outer, {})[item] = None
                parts = self.parts.setdefault(item, {})
                parts[key] = len(parts)
        #: Per group (with "" for what lies outside) its nodes and groups, in order.
        self.items = {key: list(inside) for key, inside in contents.items()}
        self.inputs = {item: self._inputs_of(item) for item in self.parts}
        numbers: dict[tuple, int] = {}
        shapes = {key: _look(node) for key, node in graph.nodes.items()}
        self.looks = {
            item: numbers.setdefault(self._look(item, shapes), len(numbers)) for item in self.parts
        }

    def _inputs_of(self, item: str) -> list[str]:
        """The nodes outside of an item that it reads."""
        parts = self.parts[item]
        return [x for part in parts for x in self._reads[part] if x not in parts]

    def _look(self, item: str, shapes: dict[str, tuple]) -> tuple:
        """Equal for items that look alike: nodes, and how they are connected inside."""
        parts = self.parts[item]
        group = self.groups.get(item)
        kind = None if group is None else (group.kind, group.repeats)
        return kind, *[
            (shapes[part], *[parts[x] for x in self._reads[part] if x in parts]) for part in parts
        ]

    def shorten(self, items: list[str], scope: str) -> None:
        """Draw the repeats in a sequence of items of the group `scope` once."""
        taken: set[int] = set()
        for start, period, count in _Sequence(self, items, scope).runs():
            span = range(start, start + period * count)
            if taken.isdisjoint(span):
                taken.update(span)
                self._draw_once([items[i] for i in span], period, count, scope)

    def item_of(self, node: str, scope: str) -> str:
        """The item of a group that a node is or lies in; "" if it lies elsewhere."""
        path = self._paths[node]
        return path[path.index(scope) + 1] if scope in path else ""

    def _draw_once(self, span: list[str], period: int, count: int, scope: str) -> None:
        unit = span[:period]
        if period == 1 and unit[0] in self.groups:
            self.groups[unit[0]].repeats *= count
        else:
            key = f"{scope}/{unit[0]} x {count} of {period}"
            while key in self.groups:
                key += "'"
            parent = self._present_parent(unit[0])
            self.groups[key] = Group(key, "repeated", parent=parent, repeats=count)
            for item in unit:
                if item in self.groups:
                    self.groups[item].parent = key
                else:
                    self.into[item].group = key
        if period > 1:
            self.shorten(unit, scope)
        for place, item in enumerate(span[period:]):
            first = list(self.parts[unit[place % period]])
            for part, kept in zip(self.parts[item], first):
                self.into[part] = self.into[kept]

    def _present_parent(self, item: str) -> str:
        return self.groups[item].parent if item in self.groups else self.into[item].group

    def groups_in_use(self) -> dict[str, Group]:
        """The groups that something is drawn in, outer ones first."""
        used = {key for node in self.into.values() for key in ancestors(self.groups, node.group)}
        level = depths(self.groups)
        kept = [key for key in self.groups if key in used]
        return {key: self.groups[key] for key in sorted(kept, key=level.__getitem__)}


class _Sequence:
    """Items of one group, in order, in which repeats are looked for."""

    def __init__(self, folding: _Folding, items: list[str], scope: str) -> None:
        self.items = items
        self._looks = [folding.looks[item] for item in items]
        self._grouped = [item in folding.groups for item in items]
        self._parts = [folding.parts[item] for item in items]
        places = {item: number for number, item in enumerate(items)}
        #: Per item the nodes it reads, each with the place of the item it lies in (-1: none here).
        self._reads = [
            [(x, places.get(folding.item_of(x, scope), -1)) for x in folding.inputs[item]]
            for item in items
        ]

    def runs(self) -> list[tuple[int, int, int]]:
        """Repeats as (start, period, count); those that save most come first."""
        found = []
        for period in self._periods():
            start, last = 0, len(self.items) - period
            while start < last:
                end = start  # items from `start` to `end` are like those a period later
                while end < last and self._alike(end, period, start):
                    end += 1
                count = (end - start) // period + 1
                modules = any(self._grouped[start : start + period])
                if count > 1 if modules else count > 2 and period * (count - 1) >= WORTH:
                    found.append((start, period, count))
                    start += period * (count - 1)
                start += 1
        return sorted(found, key=lambda run: (run[1] * (1 - run[2]), run[1], run[0]))

    def _periods(self) -> list[int]:
        """The distances at which the most items look alike, and those at which the most look and
        read alike (which tells one of many equal branches from the next)."""
        found: dict[int, None] = {}
        wired = [
            (look, *[here - there if there >= 0 else 0 for _, there in reads])
            for here, (look, reads) in enumerate(zip(self._looks, self._reads))
        ]
        for marks in (self._looks, wired):
            gaps: Counter[int] = Counter()
            seen: dict[Any, list[int]] = {}
            for number, mark in enumerate(marks):
                before = seen.setdefault(mark, [])
                gaps.update([number - place for place in before[-4:]])
                before.append(number)
            found.update(dict.fromkeys([gap for gap, _ in gaps.most_common(PERIODS)]))
        return list(found)

    def _alike(self, i: int, period: int, start: int) -> bool:
        """Whether item `i` and the one a period later look and read alike, in a run from `start`.

        What the first unit reads from before the run, the second may read from the first.
        """
        if self._looks[i] != self._looks[i + period]:
            return False
        reads, others = self._reads[i], self._reads[i + period]
        unit = range(start, start + period)
        if i in unit:
            shared = {y for y, _ in others}
            reads = [(x, place) for x, place in reads if place in unit or x in shared]
            others = [(y, place) for y, place in others if place not in unit]
        if len(reads) != len(others):
            return False
        for (x, here), (y, there) in zip(reads, others):
            if here < start:  # from outside of the run
                if x != y:
                    return False
            elif there - here != period or self._parts[here][x] != self._parts[there][y]:
                return False
        return True


def _look(node: Node) -> tuple:
    """Equal for nodes that look alike; names of parameters and modules do not count."""
    name = node.label if node.kind == "op" else (node.op, *node.notes.items())
    return name, node.kind, node.shape, node.dtype, node.view, node.inplace, node.parameters

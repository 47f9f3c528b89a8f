"""Smaller graphs with the same meaning: nodes merged into others, groups closed into one node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tensorflow_lite_clone.viz.model import Edge, Group, Node

if TYPE_CHECKING:
    from tensorflow_lite_clone.viz.graph import Graph

#: With more boxes than this a picture is hard to read.
READABLE = 60


def merge(graph: Graph, into: Mapping[str, Node], groups: dict[str, Group]) -> Graph:
    """The graph in which each node is replaced by ``into[key]``; what was measured adds up.

    Edges that become loops disappear, and so does the second of two equal ones.
    """
    nodes: dict[str, Node] = {}
    for key, node in graph.nodes.items():
        kept = into[key]
        known = nodes.get(kept.key)
        if known is None:
            nodes[kept.key] = replace(kept) if kept is not node else node
        elif known is not node:
            known = nodes[kept.key] = replace(known)
            known.time = _sum(known.time, node.time)
            known.memory = _sum(known.memory, node.memory)
            known.gradient = _worst(known.gradient, node.gradient)
            known.parameters += node.parameters
    edges: dict[Edge, None] = {}
    seen: dict[tuple[str, str], str] = {}
    for edge in graph.edges:
        source, target = into[edge.source].key, into[edge.target].key
        if source != target and seen.setdefault((source, target), edge.kind) == edge.kind:
            edges[Edge(source, target, edge.kind)] = None
    return replace(graph, nodes=nodes, edges=list(edges), groups=groups)


def _sum(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else a + b


def _worst(a: float | None, b: float | None) -> float | None:
    """The larger norm; NaN if one is."""
    if a is None or b is None:
        return b if a is None else a
    return b if b > a or b != b else a


def ancestors(groups: Mapping[str, Group], key: str) -> Iterator[str]:
    """The group and those it lies in, from the innermost."""
    while key:
        yield key
        key = groups[key].parent


def depths(groups: Mapping[str, Group]) -> dict[str, int]:
    """How many groups each group is in, itself among them."""
    return {"": 0, **{key: sum([1 for _ in ancestors(groups, key)]) for key in groups}}


def collapse(graph: Graph, depth: int) -> Graph:
    """The graph in which every group below `depth` groups is one node of kind "module"."""
    level = depths(graph.groups)
    closed = {key: group for key, group in graph.groups.items() if level[key] == depth + 1}
    if not closed:
        return graph
    members: dict[str, list[Node]] = {key: [] for key in closed}
    home: dict[str, str] = {}
    for key, node in graph.nodes.items():
        group = node.group
        while group and level[group] > depth + 1:
            group = graph.groups[group].parent
        if group in closed:
            members[group].append(node)
            home[key] = group
    boxes = {key: _closed(group, members[key], graph) for key, group in closed.items()}
    into = {key: boxes[home[key]] if key in home else node for key, node in graph.nodes.items()}
    kept = {key: group for key, group in graph.groups.items() if level[key] <= depth}
    return merge(graph, into, kept)


def _closed(group: Group, members: list[Node], graph: Graph) -> Node:
    """One node for a group; its measures are those of the first member, `merge` adds the rest."""
    made = [node for node in members if node.kind in ("op", "module")] or members
    last = made[-1]
    first = members[0]
    ops = sum([node.kind == "op" for node in members])
    inside: dict[str, str] = {"operations": str(ops)} if ops else {}
    return Node(
        group.key,
        group.title,
        "module",
        group.parent,
        last.shape,
        last.dtype,
        last.device,
        last.size,
        first.parameters,
        time=first.time,
        memory=first.memory,
        gradient=first.gradient,
        notes={**group.notes, **inside},
    )


def readable_depth(graph: Graph) -> int:
    """How many levels of groups can be open with at most `READABLE` boxes; one box is too few."""
    level = depths(graph.groups)
    deepest, before = max(level.values()), 0
    for depth in range(deepest + 1):
        visible = sum([level[node.group] <= depth for node in graph.nodes.values()])
        visible += sum([level[key] == depth + 1 for key in graph.groups])
        if visible > READABLE:
            return max(depth - 1, 0) if before > 1 else depth
        before = visible
    return deepest

"""Which events of a profile belong to which nodes."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.viz.model import Node

if TYPE_CHECKING:
    from tensorflow_lite_clone.viz.graph import Graph

COLORS = ("kind", "time", "memory", "gradient")


def color(graph: Graph, what: str, prof: Any = None) -> Graph:
    """`Graph.color_by`."""
    if what not in COLORS:
        raise ValueError(f"cannot colour a graph by '{what}': expected one of {', '.join(COLORS)}")
    nodes = {key: replace(node) for key, node in graph.nodes.items()}
    if prof is not None:
        if what not in ("time", "memory"):
            raise ValueError(f"a profile has no '{what}': expected time or memory")
        _measure(nodes, list(prof.events()), what)
    if what == "memory" and all([node.memory is None for node in nodes.values()]):
        for node in nodes.values():
            if node.kind == "op" and not node.view and not node.inplace:
                node.memory = node.size
    if what != "kind" and all([getattr(node, what) is None for node in nodes.values()]):
        raise ValueError(f"no node has a {what}: {_HINTS[what]}")
    return replace(graph, nodes=nodes, colors=what)


_HINTS = {
    "time": "give a profile of these operations, or draw viz.forward(..., time=True)",
    "memory": "give a profile of these operations",
    "gradient": "draw viz.backward(..., gradients=True)",
}


def _measure(nodes: dict[str, Node], events: list[Any], what: str) -> None:
    """Give nodes what their events cost."""
    for node in nodes.values():
        setattr(node, what, None)
    events = [event for event in events if _kind(event) in ("op", "backward")]
    place = "device" if any([_cost(event, "device", what) for event in events]) else "cpu"
    for node, event in _by_number(nodes, events) or _by_name(nodes, events):
        cost = _cost(event, place, what)
        if math.isfinite(cost):
            setattr(node, what, (getattr(node, what) or 0.0) + cost)


def _by_number(nodes: dict[str, Node], events: list[Any]) -> list[tuple[Node, Any]]:
    """Nodes and their events, if the profile covered the run that made the graph."""
    numbers = {node.sequence: node for node in nodes.values() if node.sequence >= 0}
    return [
        (numbers[event.sequence_nr], event)
        for event in events
        if getattr(event, "sequence_nr", -1) in numbers
    ]


def _by_name(nodes: dict[str, Node], events: list[Any]) -> list[tuple[Node, Any]]:
    """The n-th operation of each name and the n-th event of that name.

    Not copies: some are the second half of an operation in place, which is one node.
    """
    waiting: dict[str, list[Node]] = defaultdict(list)
    for node in reversed(nodes.values()):
        if node.kind == "op" and node.op != "copy":
            waiting[node.op].append(node)
    pairs = []
    for event in events:
        same = waiting[event.name.removeprefix("aten::").removesuffix("_")]
        if same and _kind(event) == "op":
            pairs.append((same.pop(), event))
    return pairs


def _kind(event: Any) -> str:
    return getattr(event, "kind", "op")


def _cost(event: Any, place: str, what: str) -> float:
    """Microseconds or bytes; children of an event have their own time on the CPU."""
    if what == "memory":
        return abs(getattr(event, f"{place}_memory_usage", 0) or 0)
    name = "self_cpu_time_total" if place == "cpu" else "device_time_total"
    return float(getattr(event, name, 0.0) or 0.0)

"""Orders of nodes, and whether nodes can be one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from tensorflow_lite_clone.fx.node import Node


def topo_sort(nodes: list[Node]) -> list[Node]:
    """The nodes such that each comes after those of them that it uses; AssertionError in a circle.

    Of the nodes that may follow, the first in the old order does.
    """
    position = {node: number for number, node in enumerate(nodes)}
    missing = {node: sum([used in position for used in node.all_input_nodes]) for node in nodes}
    ready = [position[node] for node in nodes if not missing[node]]  # a heap, as it is sorted
    ordered = []
    while ready:
        node = nodes[heappop(ready)]
        ordered.append(node)
        for user in node.users:
            if user in position:
                missing[user] -= 1
                if not missing[user]:
                    heappush(ready, position[user])
    if len(ordered) != len(nodes):
        raise AssertionError(
            f"these nodes use each other: {[node for node in nodes if missing[node]]}"
        )
    return ordered


def reaches_itself(nodes: Iterable[Node], together: Callable[[Node], Iterable[Node]]) -> bool:
    """Whether something outside uses one of some nodes and is used by another.

    What is outside goes ``together(node)`` with others.
    """
    inside = set(nodes)
    reached = {user for node in inside for user in node.users if user not in inside}
    waiting = list(reached)
    while waiting:
        for user in [user for node in together(waiting.pop()) for user in node.users]:
            if user in inside:
                return True
            if user not in reached:
                reached.add(user)
                waiting.append(user)
    return False


def validate_partition(partition: Iterable[Node]) -> bool:
    """Whether nodes can be one: nothing outside that uses one of them is used by another."""
    return not reaches_itself(partition, lambda node: (node,))

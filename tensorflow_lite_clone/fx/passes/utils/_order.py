"""Orders of nodes, and whether nodes can be one."""

from __future__ import annotations

from collections.abc import Iterable

from tensorflow_lite_clone.fx.node import Node


def topo_sort(nodes: list[Node]) -> list[Node]:
    """The nodes such that each comes after those of them that it uses; AssertionError in a circle.

    Nodes become free in the order in which what they use did.
    """
    among = set(nodes)
    missing = {node: sum([used in among for used in node.all_input_nodes]) for node in nodes}
    ordered = [node for node in nodes if not missing[node]]
    for node in ordered:
        for user in node.users:
            if user in among:
                missing[user] -= 1
                if not missing[user]:
                    ordered.append(user)
    if len(ordered) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return ordered


def validate_partition(partition: Iterable[Node]) -> bool:
    """Whether nodes can be one: nothing outside that uses one of them is used by another."""
    inside = set(partition)
    reached = {user for node in inside for user in node.users if user not in inside}
    waiting = list(reached)
    while waiting:
        for user in waiting.pop().users:
            if user in inside:
                return False
            if user not in reached:
                reached.add(user)
                waiting.append(user)
    return True

"""Recorded calls as a graph of `torch.fx`."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from tensorflow_lite_clone import fx
from tensorflow_lite_clone.compiler.dynamo.steps import Segment, Step, replaced
from tensorflow_lite_clone.nn.modules.module import Module


@dataclass
class GraphCompileReason:
    """Why a graph ends where it does: a reason, where, and whether the function goes on."""

    reason: str
    user_stack: list[Any]
    graph_break: bool = True


def _used(steps: list[Step], live: Any) -> set[int]:
    numbers = set(live)
    for step in steps:
        replaced((step.args, step.kwargs), numbers.add)
    return numbers


def module_of(segment: Segment, live: Any) -> fx.GraphModule:
    """The recorded calls as a module that returns the values of the numbers in `live`."""
    graph = fx.Graph()
    nodes: dict[int, Any] = {}
    used = _used(segment.path, live)
    for step in segment.path:
        for number, given in step.inputs:
            nodes[number] = node = graph.placeholder(given.name)
            node.meta["example_value"] = given.snapshot.fake()
    for step in segment.path:
        args, kwargs = replaced((step.args, step.kwargs), nodes.__getitem__)
        whole = step.leaves[0][0] == () if step.leaves else True
        hint = step.auxiliary_outputs[0] if whole and len(step.auxiliary_outputs) == 1 else None
        node = graph.create_node(step.form, step.target, args, kwargs)
        if hint is not None:
            node._rename(hint)
        snapshots = dict(step.fresh)
        if step.stack:
            node.meta["stack_trace"] = "".join(step.stack.format())
        for position, (path, number) in enumerate(step.leaves):
            if path == ():
                if number not in nodes or step.renames:
                    nodes[number] = node
            elif number in used and number not in nodes:
                part = node
                named = (
                    step.auxiliary_outputs[position]
                    if len(step.auxiliary_outputs) == len(step.leaves)
                    else None
                )
                for index in path[:-1]:
                    part = graph.call_function(operator.getitem, (part, index))
                part = graph.call_function(operator.getitem, (part, path[-1]))
                if named is not None:
                    part._rename(named)
                nodes[number] = part
            if number in snapshots and number in nodes:
                nodes[number].meta["example_value"] = snapshots[number].fake()
    graph.output(tuple([nodes[number] for number in live]))
    return fx.GraphModule(Module(), graph)

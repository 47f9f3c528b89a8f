"""Parts of graphs replaced by others, as ``torch.fx.subgraph_rewriter``."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tensorflow_lite_clone.fx._symbolic_trace import symbolic_trace
from tensorflow_lite_clone.fx.graph import Graph
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.node import Node
from tensorflow_lite_clone.fx.passes.split_utils import getattr_recursive
from tensorflow_lite_clone.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from tensorflow_lite_clone.nn.modules.module import Module

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

_Filter = Callable[[InternalMatch, Graph, Graph], bool]


class Match(NamedTuple):
    """A place where a pattern was: its last node, and its nodes' counterparts in the graph."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A `Match`, with the nodes that are in its place now."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:
    """Replace each part of a module's graph that looks like a pattern; returns what was found.

    Pattern and replacement are functions or modules, which are traced, with the same number of
    parameters and results. Every parameter of the pattern must be used in it. A parameter stands
    for any value or constant, a result may be used anywhere, what is computed in between must be
    used in the pattern alone. Of places that overlap the first is replaced. Modules and attributes
    that `replacement`, a module, uses and `gm` lacks are copied. For example::

        traced = torch.fx.symbolic_trace(lambda x, w: torch.relu(x) + w)
        replace_pattern(traced, lambda x: torch.relu(x), lambda x: torch.tanh(x))

    AssertionError where the numbers of parameters or results differ.
    """
    found = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(match.anchor, match.nodes_map) for match in found]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable[..., Any] | Graph | GraphModule,
    replacement: Callable[..., Any] | Graph | GraphModule | None = None,
    match_filters: list[_Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """`replace_pattern`, of the matches for which all filters are true.

    A filter is called with the match, the module's graph and the pattern's. With `ignore_literals`
    constants of the pattern match any others. `replacement_callback` gives the graph that replaces
    a match, in place of `replacement`. Where `node_name_match` is a part of a node's name, that
    node matches the last one of the pattern. AssertionError without any replacement.
    """
    pattern_graph = _graph_of(pattern)
    if replacement is None and replacement_callback is None:
        raise AssertionError(
            "Must provide either a replacement GraphModule or a replacement callback"
        )
    common = None if replacement is None else _graph_of(replacement)
    matcher = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals)
    matches = [
        match
        for match in matcher.match(gm.graph, node_name_match=node_name_match)
        if all([accepts(match, gm.graph, pattern_graph) for accepts in match_filters or ()])
    ]
    replaced: dict[Node, Node] = {}  # results of earlier matches
    found = []
    for match in matches:
        graph = common
        if replacement_callback is not None:
            graph = replacement_callback(match, gm.graph, pattern_graph)
        found.append(_replace(gm.graph, pattern_graph, graph, match, replaced))
    gm.recompile()
    if isinstance(replacement, Module):
        _copy_attributes(gm, replacement)
    return found


def _graph_of(program: Any) -> Graph:
    if isinstance(program, GraphModule):
        return program.graph
    return program if isinstance(program, Graph) else symbolic_trace(program).graph


def _replace(
    graph: Graph,
    pattern: Graph,
    replacement: Any,
    match: InternalMatch,
    replaced: dict[Node, Node],
) -> ReplacedPatterns:
    """Put a copy of `replacement` where a match is; notes the new results in `replaced`."""
    match.placeholder_nodes = [_current(node, replaced) for node in match.placeholder_nodes]
    match.nodes_map = {pn: _current(gn, replaced) for pn, gn in match.nodes_map.items()}
    inputs = [node for node in replacement.nodes if node.op == "placeholder"]
    if len(inputs) != len(match.placeholder_nodes):
        raise AssertionError(
            f"Placeholder count mismatch: the pattern has {len(match.placeholder_nodes)}, the "
            f"replacement {len(inputs)}"
        )
    copies: dict[Node, Any] = dict(zip(inputs, match.placeholder_nodes, strict=True))
    with graph.inserting_before(_insertion_point(graph, match)):
        results = graph.graph_copy(replacement, copies)
    if isinstance(results, Node):
        results = (results,)
    if len(results) != len(match.returning_nodes):
        raise AssertionError(
            f"Returning nodes count mismatch: the pattern has {len(match.returning_nodes)}, the "
            f"replacement {len(results)}"
        )
    for old, new in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(new)
        replaced[old] = new
    for node in reversed(pattern.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    added = [node for node in copies.values() if node not in match.placeholder_nodes]
    return ReplacedPatterns(match.anchors[0], match.nodes_map, added)


def _current(node: Any, replaced: dict[Node, Node]) -> Any:
    return replaced.get(node, node) if isinstance(node, Node) else node


def _insertion_point(graph: Graph, match: InternalMatch) -> Node:
    """The first node that uses a result of a match, else what follows the last result."""
    users = {user for node in match.returning_nodes for user in node.users}
    if users:
        return next(node for node in graph.nodes if node in users)
    last = next(node for node in reversed(graph.nodes) if node in match.returning_nodes)
    if last.op == "output":
        raise AssertionError(f"The insert point can't be None: nothing follows {last}")
    return last.next


def _copy_attributes(gm: GraphModule, replacement: Module) -> None:
    """Copy what the graph calls and reads and the module lacks; RuntimeError where both lack it."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if (
            node.op not in ("call_module", "get_attr")
            or getattr_recursive(gm, node.target) is not None
        ):
            continue
        value = getattr_recursive(replacement, node.target)
        if value is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target '
                f"{node.target}, but the referenced attribute does not exist in the replacement "
                "GraphModule"
            )
        if isinstance(value, Module):
            gm.add_submodule(node.target, copy.deepcopy(value))
        else:
            setattr(gm, node.target, copy.deepcopy(value))
    gm.graph.lint()

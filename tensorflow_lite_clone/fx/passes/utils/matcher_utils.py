"""Places of a graph that look like a pattern, as ``torch.fx.passes.utils.matcher_utils``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from tensorflow_lite_clone.fx.graph import Graph
from tensorflow_lite_clone.fx.node import Node
from tensorflow_lite_clone.fx.passes.utils._order import validate_partition
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["InternalMatch", "SubgraphMatcher"]

#: Nodes of a pattern that are no part of what is matched.
_ENDS = ("placeholder", "output")


@dataclass
class InternalMatch:
    """A place where a pattern was found.

    `anchors` are the pattern's last nodes, `nodes_map` maps its nodes to those of the graph,
    `placeholder_nodes` are what its inputs, and `returning_nodes` what its results are there.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors,
            dict(self.nodes_map),
            list(self.placeholder_nodes),
            list(self.returning_nodes),
        )


class SubgraphMatcher:
    """Finds a pattern, a graph itself, in graphs.

    The pattern's inputs match anything, its results may be used elsewhere, what lies between may
    not. With `match_output` or `match_placeholder` these nodes must be such nodes of the graph.
    Of matches that overlap the first is kept, unless `remove_overlapping_matches` is False. With
    `ignore_literals` constants match any others. ValueError for an empty pattern, AssertionError
    for one with nodes that nothing uses.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        if not len(pattern.nodes):
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.users and not node.is_impure():
                raise AssertionError(
                    "SubgraphMatcher cannot be initialized with an pattern with dead code: "
                    f"nothing uses {node}"
                )
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        output = list(pattern.nodes)[-1]
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        self.pattern_returning_nodes: list[Node] = output.all_input_nodes
        sinks = [node for node in output.all_input_nodes if len(node.users) == 1]
        self.pattern_anchors: list[Node] = [output] if match_output else sinks

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places where the pattern is found, in the order of the graph.

        Each of the pattern's last nodes is tried with each node that is like it, and from there
        what the two are computed from is compared. Left out are matches with a node in between
        that is used elsewhere, and those that could not be one node, as something outside depends
        on a part of them and another part on that. Where `node_name_match` is a part of a node's
        name, the last nodes need not be alike.
        """
        candidates = [
            [node for node in graph.nodes if self._are_alike(anchor, node, node_name_match)]
            for anchor in self.pattern_anchors
        ]
        matches = []
        for nodes_map in self._matches(candidates, 0, {}, node_name_match):
            inside = [gn for pn, gn in nodes_map.items() if pn.op not in _ENDS]
            if self._is_contained(nodes_map) and validate_partition(inside):
                inputs = [nodes_map[pn] for pn in self.pattern_placeholder_nodes]
                results = [nodes_map[pn] for pn in self.pattern_returning_nodes]
                matches.append(InternalMatch(self.pattern_anchors, nodes_map, inputs, results))
        return _without_overlaps(matches) if self.remove_overlapping_matches else matches

    def _matches(
        self, candidates: list[list[Node]], number: int, nodes_map: dict[Node, Any], name: str
    ) -> Iterator[dict[Node, Any]]:
        """Extensions of a mapping by the pattern's last nodes from a number on."""
        if number == len(candidates):
            if candidates:
                yield nodes_map
            return
        for node in candidates[number]:
            extended = dict(nodes_map)
            if self._match_nodes(self.pattern_anchors[number], node, extended, name):
                yield from self._matches(candidates, number + 1, extended, name)

    def _are_alike(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        """Whether a node of the pattern and one of the graph do the same, of whatever inputs."""
        if pn.op == "placeholder" and not self.match_placeholder:
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op or pn.op in _ENDS:
            return pn.op == gn.op
        return _same_kind(pn, gn) if pn.op == "get_attr" else pn.target == gn.target

    def _match_nodes(
        self, pn: Node, gn: Node, nodes_map: dict[Node, Any], node_name_match: str = ""
    ) -> bool:
        """Whether two nodes match with all that they are computed from; extends the mapping."""
        if pn in nodes_map:
            return nodes_map[pn] is gn
        if any([gn is known for known in nodes_map.values()]):
            return False
        if not self._are_alike(pn, gn, node_name_match):
            return False
        nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        if list(pn.kwargs) != list(gn.kwargs):
            return False
        expected, found = (*pn.args, *pn.kwargs.values()), (*gn.args, *gn.kwargs.values())
        return len(pn.args) == len(gn.args) and self._match_args(expected, found, nodes_map)

    def _match_args(
        self, expected: Sequence[Any], found: Sequence[Any], nodes_map: dict[Node, Any]
    ) -> bool:
        return len(expected) == len(found) and all(
            self._match_arg(a, b, nodes_map) for a, b in zip(expected, found, strict=True)
        )

    def _match_arg(self, a: Any, b: Any, nodes_map: dict[Node, Any]) -> bool:
        if isinstance(a, Node) and isinstance(b, Node):
            return self._match_nodes(a, b, nodes_map)
        if isinstance(a, list | tuple) and isinstance(b, list | tuple):
            return self._match_args(a, b, nodes_map)
        return self._match_literals(a, b, nodes_map) or self.ignore_literals

    def _match_literals(self, a: Any, b: Any, nodes_map: dict[Node, Any]) -> bool:
        """Whether two arguments match, of which one at most is a node: an input takes constants."""
        if isinstance(a, Node):
            return a.op == "placeholder" and nodes_map.setdefault(a, b) == b
        return not isinstance(b, Node) and type(a) is type(b) and bool(a == b)

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether nothing outside uses what is no result of the pattern."""
        inside = {gn for pn, gn in nodes_map.items() if pn.op != "placeholder"}
        return all(
            pn in self.pattern_returning_nodes or inside.issuperset(gn.users)
            for pn, gn in nodes_map.items()
            if pn.op != "placeholder"
        )


def _same_kind(pn: Node, gn: Node) -> bool:
    """Whether the attributes that two nodes read are tensors of one type, of whatever values."""
    value, other = (attrgetter(str(n.target))(n.graph.owning_module) for n in (pn, gn))
    if type(value) is not type(other):
        return False
    if not isinstance(value, Tensor):
        raise RuntimeError(f"Unsupported type {type(value)} when matching attributes: {value}")
    return True


def _without_overlaps(matches: list[InternalMatch]) -> list[InternalMatch]:
    """The matches that share no node with an earlier one."""
    result: list[InternalMatch] = []
    matched: set[Node] = set()
    for match in matches:
        inside = {gn for pn, gn in match.nodes_map.items() if pn.op not in _ENDS}
        if matched.isdisjoint(inside):
            result.append(match)
            matched |= inside
    return result

"""Matches whose nodes have names, as ``torch.fx.passes.utils.matcher_with_name_node_map_utils``."""

from __future__ import annotations

from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.node import Node
from tensorflow_lite_clone.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from tensorflow_lite_clone.fx.graph import Graph

__all__ = ["SubgraphMatcherWithNameNodeMap"]


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """A matcher for a pattern that returns, beside its results, a dictionary of nodes by name.

    The matches' `name_node_map` says which nodes of the graph these are. For example::

        def pattern(x, w):
            conv = F.conv2d(x, w)
            return F.relu(conv), {"conv": conv}
    """

    def __init__(
        self,
        pattern_gm: GraphModule,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        graph = Graph()
        copied: dict[Node, Node] = {}
        output = graph.graph_copy(pattern_gm.graph, copied)
        *results, names = output
        if not isinstance(names, dict):
            raise AssertionError(
                "the pattern must return a dictionary of nodes by name as its last result, not "
                f"{type(names).__name__}"
            )
        self.name_node_map: dict[str, Node] = dict(names)
        graph.output(tuple(results) if len(results) != 1 else results[0])
        graph.owning_module = pattern_gm
        super().__init__(
            graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals
        )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places where the pattern is found, with the names of their nodes."""
        matches = super().match(graph, node_name_match)
        for match in matches:
            match.name_node_map = {
                name: match.nodes_map[node] for name, node in self.name_node_map.items()
            }
        return matches

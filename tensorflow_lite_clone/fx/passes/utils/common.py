"""Graphs as modules of their own, as ``torch.fx.passes.utils.common``."""

from __future__ import annotations

from collections.abc import Mapping

from tensorflow_lite_clone.fx.graph import Graph
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.passes.utils.matcher_utils import SubgraphMatcher
from tensorflow_lite_clone.nn.modules.module import Module

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(Module):
    """A module that has these modules, and does nothing."""

    def __init__(self, d: Mapping[str, Module | None]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """A module of a graph whose nodes are copies of nodes of `gm`, with what these call and read.

    Also returned is, for each name of these in `gm`, the name below `comp_name`.
    """
    root = HolderModule({})
    names: dict[str, str] = {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        *path, last = node.target.split(".")
        holder, original = root, gm
        for name in path:
            if not hasattr(holder, name):
                holder.add_module(name, HolderModule({}))
            holder, original = getattr(holder, name), getattr(original, name)
        setattr(holder, last, getattr(original, last))
        names[node.target] = f"{comp_name}.{node.target}"
    return GraphModule(root, subgraph, class_name), names


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs have the same inputs and results in order, and the same calls between."""
    matcher = SubgraphMatcher(left, match_output=True, match_placeholder=True)
    return bool(matcher.match(right))

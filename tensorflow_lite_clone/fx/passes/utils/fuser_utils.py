"""Parts of a graph as one node each, as ``torch.fx.passes.utils.fuser_utils``."""

from __future__ import annotations

import copy
from typing import Any

from tensorflow_lite_clone.fx.graph import Graph
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.node import Node
from tensorflow_lite_clone.fx.passes.tools_common import stable_topological_sort
from tensorflow_lite_clone.fx.passes.utils._order import topo_sort, validate_partition
from tensorflow_lite_clone.fx.passes.utils.common import lift_subgraph_as_module
from tensorflow_lite_clone.fx.proxy import Proxy

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: list[Node],
    module_name: str,
    partition_lookup_table: dict[Node, int | None] | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """A module that does what `nodes` of `gm`, given in order, do: it, its inputs and its outputs.

    Inputs and outputs are nodes of `gm`. AssertionError for nodes of another graph, and for some
    that cannot be one, see `validate_partition`.
    """
    known = set(gm.graph.nodes)
    for node in nodes:
        if node not in known:
            raise AssertionError(f"{node} doesn't belong to passed in graph module")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = set(nodes)
    subgraph = Graph()
    copies: dict[Node, Node] = {}
    inputs: dict[Node, Node] = {}

    def inner(node: Node) -> Node:
        if node in inside:
            return copies[node]
        if node not in inputs:
            inputs[node] = subgraph.placeholder(node.name, type_expr=node.type)
            inputs[node].meta = copy.copy(node.meta)
        return inputs[node]

    for node in nodes:
        copies[node] = subgraph.node_copy(node, inner)
    outputs = [node for node in nodes if not inside.issuperset(node.users)]
    results = tuple([copies[node] for node in outputs])
    subgraph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    subgraph.lint()
    fused, _ = lift_subgraph_as_module(gm, subgraph, class_name=module_name)
    return fused, tuple(inputs), tuple(outputs)


def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Call `sub_gm` in `gm`, behind a node, the last of the outputs if none is given.

    What used the outputs uses its results. The module is called as its class is.
    """
    if insertion_point is None:
        among = [node for node in gm.graph.nodes if node in orig_outputs]
        if not among:
            raise AssertionError("no insertion_point was given, and there is no output to follow")
        insertion_point = among[-1]
    name = sub_gm.__class__.__name__
    gm.add_submodule(name, sub_gm)
    with gm.graph.inserting_after(insertion_point):
        call = gm.graph.call_module(name, orig_inputs)
    [output] = [node for node in sub_gm.graph.nodes if node.op == "output"]
    with gm.graph.inserting_before(call.next):
        if len(orig_outputs) == 1 and not isinstance(output.args[0], tuple):
            orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
        elif orig_outputs:
            for number, node in enumerate(orig_outputs):
                item: Any = Proxy(call)[number]  # type: ignore[index]
                node.replace_all_uses_with(item.node, propagate_meta=True)
            call.meta["val"] = tuple([node.meta.get("val") for node in orig_outputs])
    return gm


def erase_nodes(gm: GraphModule, nodes: list[Node]) -> None:
    """Erase nodes, given in order, from the last to the first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule,
    partitions: list[dict[Node, int | None]],
    prefix: str = "fused_",
    always_return_tuple: bool = False,
) -> GraphModule:
    """Make each partition, the keys of a dictionary, a module of its own, called "fused_0" ..."""
    for number, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        fused, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", partition, always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, fused, inputs, outputs, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm

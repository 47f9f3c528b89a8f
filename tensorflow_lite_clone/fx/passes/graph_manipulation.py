"""Nodes replaced by kind, and sizes of what they give: ``torch.fx.passes.graph_manipulation``."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from tensorflow_lite_clone.fx.graph import Graph
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.node import Node, Target, map_arg
from tensorflow_lite_clone.fx.passes.shape_prop import ShapeProp, TensorMetadata

__all__ = [
    "get_size_of_all_nodes",
    "get_size_of_node",
    "get_tensor_meta",
    "replace_target_nodes_with",
    "size_bytes",
]


def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Target, new_op: str, new_target: Target
) -> None:
    """Let the nodes with an op and a target have others, and the same arguments."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in fx_module.graph.nodes:
        if (node.op, node.target) == (old_op, old_target):
            args, kwargs = map_arg((node.args, node.kwargs), copies.__getitem__)
            copies[node] = graph.create_node(new_op, new_target, args, kwargs, node.name)
        else:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    fx_module.graph = graph


class size_bytes(NamedTuple):  # noqa: N801  PyTorch's name
    """The bytes of what a node gives, and with the parameters of the module that it calls."""

    output_size: int
    total_size: int


def get_size_of_all_nodes(fx_module: GraphModule, args: list[Any] | None = None) -> None:
    """Note ``node.size_bytes`` on all nodes but the result; runs the module for `args`, if any."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op != "output":
            node.size_bytes = get_size_of_node(fx_module, node)


def get_tensor_meta(node: Node) -> TensorMetadata:
    """What `ShapeProp` noted of a node; RuntimeError if it has not run."""
    found = node.meta.get("tensor_meta")
    if not found:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation "
            "has run."
        )
    return found


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The bytes of what a node gives; parameters count as if they had the same dtype."""
    meta = get_tensor_meta(node)
    elements = prod(meta.shape)
    parameters = 0
    if node.op == "call_module":
        parameters = sum([p.numel() for p in fx_module.get_submodule(node.target).parameters()])  # type: ignore
    size = meta.dtype.itemsize
    return size_bytes(size * elements, size * (elements + parameters))

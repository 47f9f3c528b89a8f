"""What passes have in common, as ``torch.fx.passes.tools_common``."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Mapping
from typing import Any

from tensorflow_lite_clone.fx.graph import Graph
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.node import Node, _get_qualified_name
from tensorflow_lite_clone.fx.passes.utils._order import topo_sort
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]

_AT_ONCE = frozenset(
    map(vars(operator).get, "add mul sub floordiv truediv mod le lt ge gt eq ne".split())
)
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}
NodeList = list[Node]
NodeSet = set[Node]
Names = list[str]
Tensors = tuple[Tensor] | list[Tensor]
TensorOrTensors = Tensor | Tensors


def get_acc_ops_name(k: str | type) -> str:
    """The name of a class with its module; a name as it is."""
    if isinstance(k, str):
        return k
    if k.__module__ and "acc_ops" in k.__module__:
        return f"acc_ops.{k.__name__}"
    return f"{(k.__module__ or '').replace('torch._ops', 'torch.ops')}.{k.__name__}"


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """What a node calls: a method's name, or a function's or a module's class's, qualified.

    AssertionError for a node that calls nothing.
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(
            f"Expect op types of {', '.join(sorted(CALLABLE_NODE_OPS))}, but found {node.op}"
        )
    target: Any = node.target
    if node.op == "call_method":
        return str(target)
    if node.op == "call_module":
        module = submodules[target]
        return get_acc_ops_name(getattr(module, "_base_class_origin", type(module)))
    if "acc_ops" in (target.__module__ or ""):
        return f"acc_ops.{target.__name__}"
    return _get_qualified_name(target)


def is_node_output_tensor(node: Node) -> bool:
    """Whether a node gives a tensor, as `ShapeProp` noted."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, Tensor)


def _take_order(gm: GraphModule, order: list[Node]) -> GraphModule:
    """Give the module a graph with copies of its nodes in this order."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in order:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph._codegen = gm.graph._codegen
    gm.graph = graph
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Put a module's nodes into an order in which each follows what it uses; returns the module.

    Nodes follow in the order in which they become free, but for arithmetic and comparisons, which
    come at once: assertions about sizes consist of them. RuntimeError where nodes use each other.
    """
    missing = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    ready = deque([node for node, number in missing.items() if not number])
    order = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for user in node.users:
            missing[user] -= 1
            if not missing[user]:
                at_once = user.op == "call_function" and user.target in _AT_ONCE
                (ready.appendleft if at_once else ready.append)(user)
    if len(order) < len(missing):
        rest = [node for node, number in missing.items() if number]
        raise RuntimeError(f"Input graph has cycles, unable to add {rest}")
    return _take_order(gm, order)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """As `legalize_graph`, but of the nodes that may follow the first in the old order does.

    AssertionError where nodes use each other.
    """
    return _take_order(gm, topo_sort(list(gm.graph.nodes)))

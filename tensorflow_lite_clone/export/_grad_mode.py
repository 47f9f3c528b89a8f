"""Parts of a program that ran with gradients switched off, or on, as graphs of their own."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.mode import set_grad_enabled
from tensorflow_lite_clone.fx import Graph, GraphModule, Node


def wrap_with_set_grad_enabled(enabled: bool, wrapped_func: Callable[..., Any], *args: Any) -> Any:
    """``wrapped_func(*args)``, with gradients recorded or not."""
    with set_grad_enabled(enabled):
        return wrapped_func(*args)


def fold_grad_modes(root: GraphModule, outside: bool) -> None:
    """Put consecutive calls under another grad mode than `outside` into modules of the root."""
    graph, parts = root.graph, []
    current: list[Node] = []
    number = 0
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        inside = node.meta.get("grad", outside) != outside
        if inside:
            current.append(node)
        elif current:
            parts.append(current)
            current = []
    if current:
        parts.append(current)
    for part in parts:
        number += 1
        _fold(root, part, 2 * number - 1, not outside)
    for node in graph.nodes:
        node.meta.pop("grad", None)


def _fold(root: GraphModule, nodes: list[Node], number: int, enabled: bool) -> None:
    graph, inner = root.graph, Graph()
    inside = set(nodes)
    copies: dict[Node, Node] = {}
    inputs = [
        each
        for each in dict.fromkeys(used for node in nodes for used in node.all_input_nodes)
        if each not in inside
    ]
    for node in inputs:
        copies[node] = inner.placeholder(node.name)
        copies[node].meta = dict(node.meta)
        copies[node].name = node.name
    for node in nodes:
        copies[node] = inner.node_copy(node, copies.__getitem__)
    results = [node for node in nodes if any(user not in inside for user in node.users)]
    inner.output(tuple([copies[node] for node in results]))
    name = f"submod_{number}"
    root.add_module(name, GraphModule(root, inner, class_name=name))
    with graph.inserting_before(nodes[0]):
        module = graph.create_node("get_attr", name, name=f"submod_{number + 2}")
    args = (enabled, module, *inputs)
    names = [node.name for node in results]
    with graph.inserting_after(nodes[-1]):
        call = graph.call_function(wrap_with_set_grad_enabled, args)
        call.meta = {key: value for key, value in nodes[0].meta.items() if key != "val"}
        call.meta["val"] = tuple([node.meta.get("val") for node in results])
    last = call
    items = []
    for place, node in enumerate(results):
        with graph.inserting_after(last):
            last = graph.call_function(operator.getitem, (call, place))
        last.meta = dict(node.meta)
        node.replace_all_uses_with(last, delete_user_cb=lambda user: user not in inside)
        items.append(last)
    for node in reversed(nodes):
        graph.erase_node(node)
    if len(items) == 1:  # as PyTorch names them
        call.name = names[0]
    else:
        for item, each in zip(items, names):
            item.name = each

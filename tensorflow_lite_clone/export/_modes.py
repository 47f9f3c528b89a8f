"""Parts of a program that ran with gradients off, or with autocast on, as graphs of their own."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from tensorflow_lite_clone.amp import autocast
from tensorflow_lite_clone.autograd.mode import mode, set_grad_enabled
from tensorflow_lite_clone.fx import Graph, GraphModule, Node
from tensorflow_lite_clone.ops.decorators.autocast import state as autocast_state
from tensorflow_lite_clone.ops.namespaces import namespace


class Modes(NamedTuple):
    """What is on where an operation is called: gradients; the device and dtype of autocast."""

    grad: bool
    autocast: tuple[tuple[str, Any], ...]


def modes() -> Modes:
    """Those of this thread now."""
    return Modes(mode.grad, tuple(sorted(autocast_state.dtypes.items(), key=str)))


def wrap_with_set_grad_enabled(enabled: bool, wrapped_func: Callable[..., Any], *args: Any) -> Any:
    """``wrapped_func(*args)``, with gradients recorded or not."""
    with set_grad_enabled(enabled):
        return wrapped_func(*args)


def wrap_with_autocast(
    device_type: str,
    dtype: Any,
    enabled: bool,
    cache_enabled: bool,
    wrapped_func: Callable[..., Any],
    *args: Any,
) -> Any:
    """``wrapped_func(*args)``, with autocast on or off."""
    with autocast(device_type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled):
        return wrapped_func(*args)


for _function in (wrap_with_set_grad_enabled, wrap_with_autocast):
    _function.__module__ = "torch.ops.higher_order"  # where code that is made of graphs finds them
    namespace("higher_order")[_function.__name__] = _function


def is_wrapper(function: Any) -> bool:
    """Whether a function runs a module of the graph under other modes."""
    return function in (wrap_with_set_grad_enabled, wrap_with_autocast)


def fold(root: GraphModule, outside: Modes) -> None:
    """Put consecutive calls under other modes than `outside` into modules of the root."""
    for number, part in enumerate(_parts(root.graph, "autocast", outside.autocast)):
        inside = dict(part[0].meta["modes"].autocast)
        device, dtype = next(iter(inside.items()), (None, None))
        if device is None:  # switched off inside of a block
            device, dtype = outside.autocast[0]
        given = (device, dtype, bool(inside), False)
        name = _fold(root, part, 2 * number + 1, 1, wrap_with_autocast, given)
        _fold_grad(root.get_submodule(name), outside.grad)
    _fold_grad(root, outside.grad)


def _fold_grad(root: GraphModule, outside: bool) -> None:
    first = len(list(root.children()))
    for number, part in enumerate(_parts(root.graph, "grad", outside), first):
        _fold(root, part, 2 * number + 1, 2, wrap_with_set_grad_enabled, (not outside,))
    for node in root.graph.nodes:
        node.meta.pop("modes", None)


def _parts(graph: Graph, name: str, outside: Any) -> list[list[Node]]:
    """The runs of calls under another mode."""
    parts: list[list[Node]] = [[]]
    for node in graph.nodes:
        if node.op == "call_function":
            now = node.meta.get("modes")
            value = outside if now is None else getattr(now, name)
            before = parts[-1][-1].meta["modes"] if parts[-1] else None
            if value == outside:
                parts.append([])
            elif before is not None and getattr(before, name) != value:
                parts.append([node])
            else:
                parts[-1].append(node)
    return [part for part in parts if part]


def _fold(
    root: GraphModule,
    nodes: list[Node],
    number: int,
    step: int,
    wrapper: Callable[..., Any],
    given: tuple,
) -> str:
    """Replace calls by one of `wrapper`, given the module that they become; the module's name."""
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
        module = graph.create_node("get_attr", name, name=f"submod_{number + step}")
    args = (*given, module, *inputs)
    names = [node.name for node in results]
    with graph.inserting_after(nodes[-1]):
        call = graph.call_function(wrapper, args)
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
    return name

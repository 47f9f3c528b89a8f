"""A module taken apart by tags of its nodes, as ``torch.fx.passes.split_utils``."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tensorflow_lite_clone.fx.graph import Graph
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.node import Node, map_arg
from tensorflow_lite_clone.fx.passes.utils.common import HolderModule, lift_subgraph_as_module
from tensorflow_lite_clone.fx.proxy import Proxy

__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]

_OUTSIDE = ("placeholder", "get_attr")


def getattr_recursive(obj: Any, name: str) -> Any:
    """What an object has under a dotted name, None if it has nothing there."""
    for name_part in name.split("."):
        obj = getattr(obj, name_part, None)
    return obj


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Set what an object has under a dotted name."""
    *path, last = attr.split(".")
    for name_part in path:
        obj = getattr(obj, name_part)
    setattr(obj, last, value)


@dataclass
class Component:
    """The nodes with one tag, as a graph: `order` is the tag's, `orig_...` are of the whole."""

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None

    def inner(self, copies: dict[Node, Node], node: Node) -> Node:
        """What stands for a node of the whole in this graph: a copy, or an input."""
        if node.op == "get_attr":
            if node not in self.getattr_maps:
                self.getattr_maps[node] = self.graph.get_attr(str(node.target), node.type)
                self.getattr_maps[node].meta = copy.copy(node.meta)
            return self.getattr_maps[node]
        if node in copies and copies[node].graph is self.graph:
            return copies[node]
        if node not in self.orig_inputs:
            self.orig_inputs.append(node)
            placeholder = self.graph.placeholder(node.name, type_expr=node.type)
            placeholder.meta = copy.copy(node.meta)
            self.input_placeholders.append(placeholder)
        return self.input_placeholders[self.orig_inputs.index(node)]


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,  # noqa: N803  PyTorch's name
) -> GraphModule | tuple[GraphModule, dict[str, str]]:
    """A module that calls one for each tag, in this order, which does what nodes with it do.

    The attribute `tag` of each node that calls something is one of `tags`, not before those of the
    nodes that it uses. Attributes are read where they are used. A module gives its one result, or
    a tuple of several; always a tuple with `return_tuple`. With `return_fqn_mapping` also the names
    of what is called and read in the new module, by the old ones. AssertionError for a node
    without a tag, and one whose tag comes too early::

        for node in traced.graph.nodes:
            node.tag = "first" if node.name in names else "second"
        split_by_tags(traced, ["first", "second"])
    """
    components = {tag: Component(Graph(), order, tag) for order, tag in enumerate(tags)}
    of_node: dict[Node, Component] = {}
    copies: dict[Node, Node] = {}  # in the components
    main = Graph()
    values: dict[Node, Node] = {}
    output = None
    for node in gm.graph.nodes:
        if node.op == "output":
            output = node
        elif node.op == "placeholder":
            values[node] = main.placeholder(node.name, type_expr=node.type)
            values[node].meta = copy.copy(node.meta)
        elif node.op != "get_attr":
            component = of_node[node] = _component(node, components, of_node)
            copies[node] = component.graph.node_copy(node, partial(component.inner, copies))
            copies[node].tag = node.tag  # type: ignore[attr-defined]
    if output is None:
        raise RuntimeError("Graph had no output node!")
    returned: list[Node] = []
    map_arg(output.args[0], returned.append)
    used = [node for item in components.values() for node in item.orig_inputs]
    for node in dict.fromkeys([*used, *returned]):
        if node.op not in _OUTSIDE:
            of_node[node].orig_outputs.append(node)
    attributes = [node for node in returned if node.op == "get_attr"]
    for node in attributes:
        values[node] = main.get_attr(node.name, node.type)
    names: dict[str, str] = {}
    for component in components.values():
        results = tuple([copies[node] for node in component.orig_outputs])
        single = len(results) == 1 and not return_tuple
        component.graph.output(results[0] if single else results)
        component.gm, inner_names = lift_subgraph_as_module(gm, component.graph, component.name)
        names.update(inner_names)
        inputs = tuple([values[node] for node in component.orig_inputs])
        call = main.call_module(component.name, inputs)
        for number, node in enumerate(component.orig_outputs):
            values[node] = call if single else Proxy(call)[number].node  # type: ignore[index]
    main.output(map_arg(output.args[0], values.__getitem__))
    main._codegen = gm.graph._codegen
    root = HolderModule({item.name: item.gm for item in components.values()})
    for node in attributes:
        setattr(root, node.name, getattr_recursive(gm, str(node.target)))
    split = GraphModuleCls(root, main)
    return (split, names) if return_fqn_mapping else split


def _component(
    node: Any, components: dict[str, Component], of_node: dict[Node, Component]
) -> Component:
    """The component of a node with a tag; AssertionError if it needs one that comes later."""
    if not hasattr(node, "tag"):
        raise AssertionError(f"Node does not have tag: {node.format_node()}")
    component = components[node.tag]
    latest = max([of_node[x].order for x in node.all_input_nodes if x in of_node], default=0)
    if component.order < latest:
        raise AssertionError(
            f"Component {component.name} order must be >= max of its upstream components, "
            f"order={component.order} and max={latest}"
        )
    return component

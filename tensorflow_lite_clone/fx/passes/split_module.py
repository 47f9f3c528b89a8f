"""A module taken apart into modules of some of its nodes each, as ``torch.fx.passes.split_module``.

The nodes are divided among partitions by a function. What goes from one partition to another
becomes a result of the one and an input of the other; parameters are read outside and handed in.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from tensorflow_lite_clone.fx.graph import Graph
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.node import Node, map_arg
from tensorflow_lite_clone.fx.proxy import Proxy
from tensorflow_lite_clone.nn.modules.module import Module

__all__ = ["Partition", "split_module"]

_ENDS = ("placeholder", "get_attr", "output")


class Partition:
    """Nodes that become one module, with the names of what goes in and out; dicts are ordered sets.

    `dependencies` are the partitions whose results it takes, `dependents` those that take its own.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}  # nodes of the whole graph -> of this one
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n"
            f" outputs: {self.outputs},\n partitions depended on: {self.dependencies},\n"
            f" partition dependents: {self.dependents}"
        )


def split_module(
    m: GraphModule,
    root_m: Module | None,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A module that does what `m` does by calling ``submod_0``, ``submod_1``, ...

    ``split_callback(node)`` gives the number of the partition that a node belongs to; it is not
    asked about inputs, attributes and the result. The modules are called in an order in which each
    has its inputs, or, with `keep_original_order`, in that of their first nodes. Inputs are called
    as the nodes are, or ``arg_0``, ... without `keep_original_input_name`;
    `keep_original_node_name` keeps the other names. With a `partition_affix` modules are called
    "submod_AFFIX_0". A module gives its one result, or a tuple of several; always a tuple with
    `tuple_return`. `qualname_map` is filled with the old names of what the modules call, by the new
    ones. `root_m` is not used.

    RuntimeError where partitions need each other's results. For example::

        traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()))
        split = split_module(traced, None, lambda node: int(node.target))  # submod_0, submod_1
    """
    splitter = _Splitter(m, split_callback, partition_affix)
    order = splitter.order()
    for name in order:
        splitter.add_inputs(splitter.partitions[name], keep_original_input_name)
    splitter.fill(qualname_map, bool(keep_original_node_name))
    calls = list(splitter.partitions) if keep_original_order else order
    return splitter.assemble(calls, keep_original_order, keep_original_node_name, tuple_return)


class _Splitter:
    """A module on its way to be split."""

    def __init__(
        self, m: GraphModule, split_callback: Callable[[Node], int], affix: str | None
    ) -> None:
        self.module = m
        self.nodes: dict[str, Node] = {node.name: node for node in m.graph.nodes}
        self.partitions: dict[str, Partition] = {}
        self.partition_of: dict[Node, Partition] = {}
        for node in m.graph.nodes:
            if node.op not in _ENDS:
                name = "_".join([*([affix] if affix else []), str(split_callback(node))])
                partition = self.partitions.setdefault(name, Partition(name))
                partition.node_names.append(node.name)
                self.partition_of[node] = partition
        for node in m.graph.nodes:
            for used in _used(node):
                self._record_use(used, self.partition_of.get(node))

    def _record_use(self, used: Node, user: Partition | None) -> None:
        """Note what crosses a border, into a partition or, with None, to the whole's result."""
        source = self.partition_of.get(used)
        if source is user:
            return
        if source is not None:
            source.outputs.setdefault(used.name)
        if user is not None:
            user.inputs.setdefault(used.name)
        if source is not None and user is not None:
            source.dependents.setdefault(user.name)
            user.dependencies.setdefault(source.name)

    def order(self) -> list[str]:
        """The names of partitions, each after those it depends on."""
        missing = {name: len(partition.dependencies) for name, partition in self.partitions.items()}
        ready = [name for name, number in missing.items() if not number]
        order = []
        while ready:
            name = ready.pop()
            order.append(name)
            for dependent in self.partitions[name].dependents:
                missing[dependent] -= 1
                if not missing[dependent]:
                    ready.append(dependent)
        if len(order) != len(self.partitions):
            raise RuntimeError("cycle exists between partitions!")
        return order

    def attribute(self, target: Any) -> Any:
        """What the module has under a dotted name; AttributeError if it has not."""
        return attrgetter(target)(self.module)

    def add_inputs(self, partition: Partition, keep_names: bool) -> None:
        """Begin a partition's graph with its inputs; modules among them become its own."""
        nodes = [self.nodes[name] for name in partition.inputs]
        modules = [
            node
            for node in nodes
            if node.op == "get_attr" and isinstance(self.attribute(node.target), Module)
        ]
        placeholders = [node for node in nodes if node not in modules]
        for number, node in enumerate(placeholders):
            name = node.name if keep_names else f"arg_{number}"
            partition.environment[node] = partition.graph.placeholder(name, type_expr=node.type)
        for node in modules:
            partition.environment[node] = partition.graph.get_attr(str(node.target))
            partition.targets[str(node.target)] = self.attribute(node.target)
        for node in nodes:
            partition.environment[node].meta = node.meta.copy()
        partition.inputs = dict.fromkeys([node.name for node in placeholders])

    def fill(self, qualname_map: dict[str, str] | None, keep_names: bool) -> None:
        """Copy the nodes into the graphs of their partitions."""
        for node, partition in self.partition_of.items():
            inner = partition.environment.__getitem__
            target: Any = node.target
            if node.op == "call_module":
                target = target.replace(".", "_")
                partition.targets[target] = self.attribute(node.target)
                if qualname_map is not None:
                    qualname_map[f"{partition.submod_name}.{target}"] = str(node.target)
            copy = partition.graph.create_node(
                node.op,
                target,
                map_arg(node.args, inner),
                map_arg(node.kwargs, inner),
                name=node.name if keep_names else None,
                type_expr=node.type,
            )
            copy.meta = node.meta.copy()
            partition.environment[node] = copy

    def assemble(
        self, calls: list[str], original_order: Any, keep_names: Any, tuple_return: bool
    ) -> GraphModule:
        """The module that calls the partitions in this order."""
        graph = Graph()
        values: dict[str, Node] = {}
        targets: dict[str, Any] = {}

        def add(node: Node) -> None:
            if node.name in values:
                return
            if node.op == "placeholder":
                name = node.name if keep_names else node.target
                copy = graph.create_node("placeholder", name, node.args, type_expr=node.type)
            else:
                targets[str(node.target)] = self.attribute(node.target)
                copy = graph.get_attr(str(node.target))
            copy.meta = node.meta.copy()
            values[node.name] = copy

        ends = [node for node in self.nodes.values() if node.op in ("placeholder", "get_attr")]
        for node in ends:
            if node.op == "placeholder" or not (original_order and calls):
                add(node)
        for name in calls:
            partition = self.partitions[name]
            for input_name in partition.inputs:
                if self.nodes[input_name].op in _ENDS:
                    add(self.nodes[input_name])
            results = [partition.environment[self.nodes[output]] for output in partition.outputs]
            single = len(results) == 1 and not tuple_return
            partition.graph.output(results[0] if single else tuple(results))
            targets[partition.submod_name] = GraphModule(partition.targets, partition.graph)
            inputs = tuple([values[input_name] for input_name in partition.inputs])
            call = graph.call_module(partition.submod_name, inputs)
            for number, output in enumerate(partition.outputs):
                values[output] = call if single else Proxy(call)[number].node  # type: ignore[index]
        for node in self.nodes.values():
            if node.op == "output":
                graph.output(map_arg(node.args[0], lambda used: values[used.name]))
        split = GraphModule(targets, graph)
        split.meta["partition_names"] = {
            partition.submod_name for partition in self.partitions.values()
        }
        return split


def _used(node: Node) -> list[Node]:
    """The nodes among a node's arguments, in order."""
    found: list[Node] = []
    map_arg((node.args, node.kwargs), lambda used: found.append(used) or used)  # type: ignore
    return found

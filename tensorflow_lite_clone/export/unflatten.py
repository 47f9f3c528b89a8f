"""Exported programs as trees of modules again, as ``torch.export.unflatten``."""

from __future__ import annotations

import abc
import operator
from collections.abc import Iterable, Sequence
from typing import Any

from tensorflow_lite_clone.export.exported_program import (
    ExportedProgram,
    ModuleCallSignature,
)
from tensorflow_lite_clone.export.graph_signature import ConstantArgument
from tensorflow_lite_clone.fx import Graph, Interpreter, Node
from tensorflow_lite_clone.fx.graph_module import _assign_attr
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.utils import _pytree

__all__ = ["FlatArgsAdapter", "InterpreterModule", "UnflattenedModule", "unflatten"]


class FlatArgsAdapter(abc.ABC):
    """Turns arguments that are nested otherwise than a program expects into those that it does."""

    @abc.abstractmethod
    def adapt(
        self,
        target_spec: _pytree.TreeSpec,
        input_spec: _pytree.TreeSpec,
        input_args: list[Any],
        metadata: dict[str, Any] | None = None,
        obj: Any | None = None,
    ) -> list[Any]:
        """The leaves in the order of `target_spec`, of those of `input_spec`."""


class InterpreterModule(Module):
    """A module that runs a graph call by call; its submodules may be replaced."""

    graph: Graph

    def __init__(self, graph: Graph, signature: ModuleCallSignature | None = None) -> None:
        super().__init__()
        self.graph, self.signature = graph, signature

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph; nested arguments are those of the exported module's call."""
        if self.signature is None:
            return Interpreter(self, graph=self.graph).run(*args, **kwargs)
        leaves, spec = _pytree.tree_flatten((args, kwargs))
        if spec != self.signature.in_spec:
            raise TypeError(
                f"Expected arguments of the structure {self.signature.in_spec}, got {spec}"
            )
        results = Interpreter(self, graph=self.graph).run(*leaves)
        return _pytree.tree_unflatten(results, self.signature.out_spec)


class UnflattenedModule(Module):
    """The modules of an exported program, each with the part of the graph that it ran.

    A module that was called several times has a graph for each different one, under its name with
    ``@1``, ``@2``. It is called as the exported one; arguments are checked as `ExportedProgram.
    module` does.
    """

    def __init__(
        self, export_module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None
    ) -> None:
        super().__init__()
        self.module_call_graph = export_module.module_call_graph
        self.flat_args_adapter = flat_args_adapter
        signature = self.module_call_graph[0].signature
        assert signature is not None
        self._signature = signature
        self._guards = [export_module.guards()]  # in a list: it is no part of the tree
        flat = export_module.module(check_guards=False)
        for name, value in (*flat.named_parameters(remove_duplicate=False), *flat.named_buffers()):
            _assign_attr(value, self, name)
        preserved = {each.fqn: each.signature for each in self.module_call_graph if each.fqn}
        self.graph = _Builder(flat.graph, preserved).build(self, "", list(flat.graph.nodes), 0)
        for each in self.module_call_graph:
            if each.fqn:
                _ensure(self, each.fqn)

    def process_forward_inputs(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The leaves of the arguments in the program's order."""
        spec = self._signature.in_spec
        order = spec.child(1).context
        if kwargs.keys() == set(order):
            kwargs = {name: kwargs[name] for name in order}
        leaves, found = _pytree.tree_flatten((args, kwargs))
        if found != spec:
            if self.flat_args_adapter is None:
                raise TypeError(
                    "There is no flat args adapter specified. Are you sure you are calling this "
                    f"with the right arguments? The structure is {found}, expected {spec}"
                )
            leaves = self.flat_args_adapter.adapt(spec, found, leaves)
        self._guards[0](*leaves)
        return leaves

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        leaves = self.process_forward_inputs(*args, **kwargs)
        results = Interpreter(self, graph=self.graph).run(*leaves)
        return _pytree.tree_unflatten(results, self._signature.out_spec)

    def finalize(self) -> None:
        """Nothing: the graphs are run as they are."""


def unflatten(
    module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None
) -> UnflattenedModule:
    """An exported program as a tree of modules, with the names and parameters of the exported one.

    Submodules may be replaced by others of the same inputs and outputs. These are the values that
    go in and out, or, for those in `preserve_module_call_signature` of `export`, the arguments and
    results of the original. `flat_args_adapter` is asked about arguments of another structure.

    >>> program = torch.export.export(
    ...     torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()), (torch.ones(1, 2),)
    ... )
    >>> module = torch.export.unflatten(program)
    >>> [name for name, _ in module.named_children()]
    ['0', '1']
    >>> module(torch.ones(4, 2)[:1]).shape
    torch.Size([1, 3])
    """
    return UnflattenedModule(module, flat_args_adapter)


def _ensure(root: Module, path: str) -> Module:
    """The module at a path, which is made if it is not there."""
    for name in path.split("."):
        child = root._modules.get(name)
        if child is None:
            child = InterpreterModule(Graph())
            root.add_module(name, child)
        root = child
    return root


def _frames(node: Node) -> list[tuple[str, str]]:
    """The calls of modules that a node is in, from outside: their keys and paths."""
    return [(key, value[0]) for key, value in node.meta.get("nn_module_stack", {}).items()]


class _Builder:
    """Divides the graph of a program among its modules."""

    def __init__(self, graph: Graph, preserved: dict[str, ModuleCallSignature | None]) -> None:
        self.flat = graph
        self.preserved = preserved
        self.by_name = {node.name: node for node in graph.nodes}

    def build(
        self, module: Module, path: str, nodes: list[Node], depth: int,
        inputs: Sequence[Node] | None = None, outputs: Sequence[Any] | None = None,
    ) -> Graph:  # fmt: skip
        """The graph of one call, and the modules that it calls, entered into `module`."""
        graph, values = Graph(), {}
        for node in inputs if inputs is not None else self.flat.find_nodes(op="placeholder"):
            values[node] = graph.placeholder(node.name)
            values[node].meta = dict(node.meta)

        def value(node: Node) -> Node:
            if node not in values:  # a parameter or buffer, where it is first used
                name = str(node.target).removeprefix(f"{path}.") if path else str(node.target)
                values[node] = graph.create_node("get_attr", name, name=name.replace(".", "_"))
                values[node].meta = dict(node.meta)
            return values[node]

        calls = [node for node in nodes if node.op == "call_function"]
        for key, child, group in _groups(calls, depth):
            if key is None:
                values[group[0]] = graph.node_copy(group[0], value)
            else:
                self._call(module, path, child, group, depth + 1, graph, values, value)
        if outputs is None:
            outputs = self.flat.output_node().args[0]
            graph.output(tuple([value(x) if isinstance(x, Node) else x for x in outputs]))
        else:
            results = [value(x) if isinstance(x, Node) else x for x in outputs]
            one = len(results) == 1 and self.preserved.get(path) is None
            graph.output(results[0] if one else tuple(results))
        return graph

    def _call(
        self, module: Module, path: str, child: str, group: list[Node], depth: int, graph: Graph,
        values: dict[Node, Node], value: Any,
    ) -> None:  # fmt: skip
        inside, signature = set(group), self.preserved.get(child)
        inputs: list[Any]
        outputs: list[Any]
        used = dict.fromkeys(each for node in group for each in node.all_input_nodes)
        free = [
            node
            for node in used
            if node not in inside and not (node.op == "get_attr" and _is_below(node.target, child))
        ]
        if signature is not None:
            inputs = [self._argument(each) for each in signature.inputs]
            outputs = [self._argument(each) for each in signature.outputs]
            if not {*free} <= {x for x in inputs if isinstance(x, Node)}:
                signature = None
        if signature is None:
            inputs = free
            outputs = [node for node in group if any(user not in inside for user in node.users)]
        places = _distinct(inputs)
        made = InterpreterModule(Graph(), signature)
        target = self._enter(module, path, child, made)
        made.graph = self.build(made, child, group, depth, places, outputs)
        target = self._same(module, path, child, made, target)
        args: Any = [value(x) if isinstance(x, Node) else x for x in inputs]
        kwargs: dict[str, Any] = {}
        if signature is not None:
            args, kwargs = _pytree.tree_unflatten(args, signature.in_spec)
        call = graph.create_node("call_module", target, tuple(args), kwargs)
        if signature is not None:
            call = graph.call_function(_pytree.tree_leaves, (call,))
        elif len(outputs) == 1:
            values[outputs[0]] = call
            return
        for place, node in enumerate(outputs):
            if isinstance(node, Node):
                values[node] = graph.call_function(operator.getitem, (call, place))

    def _argument(self, argument: Any) -> Any:
        if isinstance(argument, ConstantArgument):
            return argument.value
        return self.by_name[argument.name]

    def _enter(self, module: Module, path: str, child: str, made: Module) -> str:
        """Give a module a submodule at a path; the name it has there."""
        local = child.removeprefix(f"{path}.") if path and _is_below(child, path) else child
        *parents, last = local.split(".")
        for name in parents:
            if name not in module._modules:
                module.add_module(name, InterpreterModule(Graph()))
            module = module._modules[name]
        number, name = 0, last
        while isinstance(module._modules.get(name), InterpreterModule):
            number += 1
            name = f"{last}@{number}"
        before = module._modules.get(last)
        if before is not None:  # it has parameters
            for key, tensor in before._parameters.items():
                made.register_parameter(key, tensor)
            for key, tensor in before._buffers.items():
                saved = key not in before._non_persistent_buffers_set
                made.register_buffer(key, tensor, persistent=saved)
            for key, each in before._modules.items():
                if number == 0 or not isinstance(each, InterpreterModule):
                    made.add_module(key, each)
        module._modules[name] = made
        return ".".join([*parents, name])

    @staticmethod
    def _same(module: Module, path: str, child: str, made: InterpreterModule, target: str) -> str:
        """The name of an earlier call of the same graph, if there is one, else its own."""
        base, _, number = target.partition("@")
        if not number:
            return target
        *parents, last = target.split(".")
        for name in parents:
            module = module._modules[name]
        for count in range(int(number)):
            name = last.partition("@")[0] + (f"@{count}" if count else "")
            earlier = module._modules[name]
            if isinstance(earlier, InterpreterModule) and _shape(earlier) == _shape(made):
                del module._modules[last]
                return ".".join([*parents, name])
        return target


def _shape(module: InterpreterModule) -> list[Any]:
    """A graph without the names of its nodes, and those of the modules that it calls."""
    places = {node: place for place, node in enumerate(module.graph.nodes)}

    def plain(value: Any) -> Any:
        if isinstance(value, Node):
            return ("node", places[value])
        if isinstance(value, (list, tuple)):
            return [plain(each) for each in value]
        return value

    found: list[Any] = []
    for node in module.graph.nodes:
        target = "" if node.op == "placeholder" else str(node.target).partition("@")[0]
        kwargs = {key: plain(each) for key, each in node.kwargs.items()}
        found.append((node.op, target, plain(node.args), kwargs))
    for name, child in module.named_children():
        if isinstance(child, InterpreterModule):
            found.append((name.partition("@")[0], _shape(child)))
    return found


def _is_below(path: Any, parent: str) -> bool:
    return str(path).startswith(f"{parent}.")


def _distinct(values: Iterable[Any]) -> list[Node]:
    return list(dict.fromkeys([each for each in values if isinstance(each, Node)]))


def _groups(nodes: list[Node], depth: int) -> list[tuple[str | None, str, list[Node]]]:
    """Consecutive calls in one call of a module below `depth`; others alone, with None."""
    found: list[tuple[str | None, str, list[Node]]] = []
    for node in nodes:
        frames = _frames(node)
        if len(frames) <= depth + 1:
            found.append((None, "", [node]))
            continue
        key, path = frames[depth + 1]
        if found and found[-1][0] == key:
            found[-1][2].append(node)
        else:
            found.append((key, path, [node]))
    return found

"""Running a graph node by node."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from tensorflow_lite_clone.core.interception import intercept, release
from tensorflow_lite_clone.fx import traceback as fx_traceback
from tensorflow_lite_clone.fx._compatibility import compatibility
from tensorflow_lite_clone.fx._symbolic_trace import Tracer
from tensorflow_lite_clone.fx.graph import Graph
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.node import Node, Target, map_aggregate, map_arg
from tensorflow_lite_clone.fx.proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


@compatibility(is_backward_compatible=True)
class Interpreter:
    """Runs the graph of a module. Subclasses change what is done for the kinds of nodes.

    With `garbage_collect_values` a value is dropped after its last use. Another `graph` than that
    of the module may be given. `env` has the values of the nodes that have run.

    >>> class Count(torch.fx.Interpreter):
    ...     calls = 0
    ...     def call_function(self, target, args, kwargs):
    ...         self.calls += 1
    ...         return super().call_function(target, args, kwargs)
    >>> count = Count(torch.fx.symbolic_trace(lambda x: torch.neg(x) + 1))
    >>> count.run(torch.ones(2)), count.calls
    (tensor([0., 0.]), 2)
    """

    def __init__(
        self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        #: Whether errors say which node was run.
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for used in node.all_input_nodes:
                    if used not in seen:
                        seen.add(used)
                        self.user_to_last_uses.setdefault(node, []).append(used)

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """Run the graph; returns what its output does.

        Nodes in `initial_env` have values and are not run. Without `enable_io_processing` the
        arguments are those of the graph, see `Graph.process_inputs`, and so is the result.
        """
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    self._explain(error, node)
                    if isinstance(error, KeyError):
                        raise RuntimeError(*error.args) from error
                raise
            for used in self.user_to_last_uses.get(node, ()):
                del self.env[used]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    @staticmethod
    def _explain(error: Exception, node: Node) -> None:
        message = f"While executing {node.format_node()}"
        if error.args:
            message = f"{error.args[0]}\n\n{message}"
        message += f"\nOriginal traceback:\n{node.stack_trace}"
        error.args = (message, *error.args[1:])

    def boxed_run(self, args_list: list[Any]) -> Any:
        """`run`, with a list of arguments, which is emptied; RuntimeError for a wrong number."""
        nodes = [node for node in self.graph.nodes if node.op == "placeholder"]
        if len(args_list) != len(nodes):
            detail = "extra" if len(args_list) > len(nodes) else "missing"
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(nodes)} arguments for placeholders but "
                f"received {len(args_list)} ({detail} arguments)"
            )
        env = dict(zip(nodes, args_list))
        args_list.clear()
        return self.run(initial_env=env)

    def _set_current_node(self, node: Node) -> AbstractContextManager[None]:
        return fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}")

    def run_node(self, n: Node) -> Any:
        """Run a node: what the method for its kind returns of its target and arguments."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The next argument, or the default; with a star all that are left.

        RuntimeError where there is neither.
        """
        if str(target).startswith("*"):
            return list(self.args_iter)
        value = next(self.args_iter, inspect.Signature.empty)
        if value is not inspect.Signature.empty:
            return value
        if not args:
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            )
        return args[0]

    def get_attr(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The value at a path in the module."""
        return self.fetch_attr(target)  # type: ignore[arg-type]

    def call_function(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What a function returns."""
        return target(*args, **kwargs)  # type: ignore[operator]

    def call_method(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What the method of that name of ``args[0]`` returns."""
        return getattr(args[0], target)(*args[1:], **kwargs)  # type: ignore[arg-type]

    def call_module(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What the module at a path returns."""
        return self.fetch_attr(target)(*args, **kwargs)  # type: ignore[arg-type]

    def output(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of the graph."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The value at a path in the module; RuntimeError where there is none."""
        value: Any = self.module
        names = target.split(".")
        for i, name in enumerate(names):
            if not hasattr(value, name):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(names[: i + 1])}")
            value = getattr(value, name)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict[str, Any]]:
        """The arguments of a node, with values for nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Arguments of the node `n` with values for nodes; RuntimeError for one without a value."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose "
                    "such issues"
                )
            return self.env[node]

        return map_arg(args, value)


class _TransformerTracer(Tracer):
    """Enters no module."""

    def __init__(self, graph: Graph, root: Any) -> None:
        super().__init__()
        self.graph = graph
        self.root = root
        self.tensor_attrs = {}

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        return True


@compatibility(is_backward_compatible=True)
class Transformer(Interpreter):
    """Runs a graph with proxies, so that a new graph comes of it. Subclasses change what is done.

    >>> class Faster(torch.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         target = torch.relu if target is torch.sigmoid else target
    ...         return super().call_function(target, args, kwargs)
    >>> module = Faster(torch.fx.symbolic_trace(lambda x: torch.sigmoid(x))).transform()
    >>> module(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer: Any = _TransformerTracer(self.new_graph, module)

    def placeholder(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An argument of the new graph."""
        default = args[0] if args else inspect.Signature.empty
        node = self.new_graph.placeholder(target, default_value=default)  # type: ignore[arg-type]
        return Proxy(node, self.tracer)

    def get_attr(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A node of the new graph for the value at a path."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A node for a module, or what its call does, as the tracer says."""
        module = self.fetch_attr(target)  # type: ignore[arg-type]
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A node for a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the new graph."""
        intercept()
        try:
            with fx_traceback.preserve_node_meta():
                result = super().run(enable_io_processing=False)
        finally:
            release()
        if result is not None:
            values = map_aggregate(
                result, lambda value: value.node if isinstance(value, Proxy) else value
            )
            self.new_graph.output(values).meta.update(self.graph.output_node().meta)
        return GraphModule(self.module, self.new_graph)

"""A function as a list of calls, which programs read, change and turn into code."""

from __future__ import annotations

import contextlib
import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.fx._codegen import (
    CodeGen,
    PythonCode,
    TransformCodeFunc,
    _BoxedCodeGen,
    _PyTreeCodeGen,
    _PyTreeInfo,
    inplace_methods,
    magic_methods,
    reflectable_magic_methods,
)
from tensorflow_lite_clone.fx._compatibility import compatibility
from tensorflow_lite_clone.fx._names import type_name
from tensorflow_lite_clone.fx._namespace import Namespace, snake_case
from tensorflow_lite_clone.fx.node import Node, Target, _legal_ops, _node_list, map_arg
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Buffer, Parameter

if TYPE_CHECKING:
    from tensorflow_lite_clone.fx._symbolic_trace import Tracer

__all__ = [
    "CodeGen",
    "Graph",
    "PythonCode",
    "_BoxedCodeGen",
    "_PyTreeCodeGen",
    "_PyTreeInfo",
    "inplace_methods",
    "magic_methods",
    "reflectable_magic_methods",
]

_Namespace = Namespace


class _InsertPoint:
    """Where new nodes go; as a block, until its end."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self._graph = graph
        self._before, graph._insert = graph._insert, insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self._graph._insert = self._before


@compatibility(is_backward_compatible=True)
class Graph:
    """The steps of a function, from its arguments to its result; see `Node` for their kinds.

    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_method("relu", (x,))
    >>> result = graph.output(y)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_method[target=relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(
        self,
        owning_module: Any = None,
        tracer_cls: type[Tracer] | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._is_numbered = False
        self._graph_namespace = Namespace()
        #: The `GraphModule` that the graph is of, if any.
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    # ------------------------------------------------------------------------------------ reading

    @property
    def nodes(self) -> _node_list:
        """All nodes in order; ``reversed`` works. A loop may add and erase nodes."""
        return _node_list(self)

    def _number_nodes(self) -> None:
        """Let each node know its place, unless all do."""
        if not self._is_numbered:
            self._is_numbered = True
            for position, node in enumerate(self.nodes):
                node._position = position

    def output_node(self) -> Node:
        """The last node; AssertionError if it is no output."""
        node = self._root._prev
        if node.op != "output":
            raise AssertionError(f"Expected output node, got op={node.op}")
        return node

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Any]:
        """The nodes of a kind, with a target if one is given, in order.

        AssertionError for functions without a target. With `sort` or not, the order is the same.
        """
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return [
            node
            for node in self.nodes
            if node.op == op and (target is None or node.target == target)
        ]

    def process_inputs(self, *args: Any) -> Any:
        """The arguments of the graph, of those of its function; see `CodeGen`."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """What the function returns, of what the graph does; see `CodeGen`."""
        return self._codegen.process_outputs(out)

    # ------------------------------------------------------------------------------ adding nodes

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node at the point where nodes are inserted, by default the end.

        Its name is `name`, or made of the target, with a number where that is in use. `type_expr`
        is the type that generated code shows. ValueError for a target that does not go with `op`.
        """
        if not isinstance(args or (), tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs or {}, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = name if name is not None else self._target_to_str(target)
        name = self._graph_namespace.create_name(candidate, None)
        node = Node(self, name, op, target, args or (), kwargs or {}, type_expr)
        for hook in getattr(self.owning_module, "_create_node_hooks", None) or ():
            hook(node)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._len += 1
        return node

    @staticmethod
    def _target_to_str(target: Any) -> str:
        """A target as the beginning of a name."""
        name = getattr(target, "__name__", None) if callable(target) else target
        if not isinstance(name, str):
            raise AssertionError(f"Expected target to be str, got {type(target)}")
        if not callable(target) and name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return snake_case(name)

    def placeholder(
        self, name: str, type_expr: Any = None, default_value: Any = inspect.Signature.empty
    ) -> Node:
        """Add an argument of the function, with a default if one is given."""
        default = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, default, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add a parameter, buffer or module of the owning module, by its path.

        A warning says so where the module has no such thing.
        """
        if self.owning_module is not None and not self._has_state(qualified_name):
            warnings.warn(
                f"Attempted to insert a get_attr Node with no underlying reference in the owning "
                f"GraphModule: {qualified_name!r} is no module, parameter or buffer of it. Call "
                "GraphModule.add_submodule, register_parameter or register_buffer",
                stacklevel=level_outside(),
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def _has_state(self, path: str) -> bool:
        parent, _, name = path.rpartition(".")
        try:
            module = self.owning_module.get_submodule(parent)
        except AttributeError:
            return False
        value = getattr(module, name, None)
        return isinstance(value, (Module, Parameter, Buffer)) or name in module._buffers

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of the method of that name of ``args[0]``."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of the module at a path in the owning module."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add the return of `result`, a node or a collection of nodes."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Insert new nodes before `n`, or at the beginning; as a block, until its end."""
        if n is not None and n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, self._root.append if n is None else n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Insert new nodes behind `n`, or at the end; as a block, until its end.

        What is inserted later comes to stand before what was inserted earlier.
        """
        if n is not None and n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, self._root.prepend if n is None else n.append)

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nobody uses; RuntimeError if somebody does."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(
                f"erase_node({to_erase}) on an already erased node", stacklevel=level_outside()
            )
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update_args_kwargs(
            map_arg(to_erase._args, lambda node: None), map_arg(to_erase._kwargs, lambda node: None)
        )

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.meta.clear()
            self.erase_node(node)

    # ------------------------------------------------------------------------------------ copying

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Add a copy of a node of another graph, in which ``arg_transform(n)`` stands for `n`."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = copy.copy(node.meta)
        return copied

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Add copies of the nodes of another graph, but of its output; returns what that returns.

        `val_map` gets the copy of each node; nodes in it already are not copied.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo: dict[Any, Any] | None = None) -> Graph:
        memo = memo if memo is not None else {}
        copied = Graph(tracer_cls=self._tracer_cls)
        copied._codegen = copy.deepcopy(self._codegen)
        nodes: dict[Node, Node] = {}
        found = copied.graph_copy(self, nodes, return_output_node=True)
        if found is not None:
            result, old = found
            new = copied.output(result, old.type)
            new.meta = copy.copy(old.meta)
        memo.update({id(old): new for old, new in nodes.items()})
        return copied

    # --------------------------------------------------------------------------------- generating

    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        """The graph as the code of a function; `root_module` is what it calls the module.

        With `verbose` it shows where calls were made and what tensors passes noted, with strides,
        devices and colors if asked for; with `expanded_def` each parameter has a line of its own.
        `additional_meta` are keys of `meta` to show.
        """
        namespace = Namespace()
        nodes = [*self.nodes]
        written = [node._repr_fn for node in nodes]
        for node in nodes:
            # In the code a value may need another name than in the graph, where no functions are.
            node._repr_fn = lambda node: namespace.create_name(node.name, node)
        try:
            return self._codegen._gen_python_code(
                nodes,
                root_module,
                namespace,
                verbose=verbose,
                include_stride=include_stride,
                include_device=include_device,
                colored=colored,
                expanded_def=expanded_def,
                additional_meta=additional_meta,
            )
        finally:
            for node, before in zip(nodes, written):
                node._repr_fn = before

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let another `CodeGen` make the code."""
        self._codegen = codegen

    def on_generate_code(
        self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc]
    ) -> AbstractContextManager[None]:
        """Let a function change the lines of the body whenever code is made.

        ``make_transformer(current)`` returns it, of the one that does so now, or None. As a block,
        until its end.
        """
        codegen = self._codegen
        before = codegen._body_transformer
        codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def block() -> Iterator[None]:
            try:
                yield
            finally:
                codegen._body_transformer = before

        return block()

    def __str__(self) -> str:
        names: list[str] = []
        lines = [node.format_node(names) for node in self.nodes]
        head = f"graph({', '.join(names)}):"
        return "\n    ".join([head, *filter(None, lines)])

    def print_tabular(self) -> None:
        """Print the nodes as a table; ImportError without the package ``tabulate``."""
        try:
            from tabulate import tabulate
        except ImportError:
            print("`print_tabular` needs the package `tabulate`: run `pip install tabulate`.")
            raise
        rows = [[node.op, node.name, node.target, node.args, node.kwargs] for node in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    # ----------------------------------------------------------------------------------- checking

    def lint(self) -> None:
        """Check the graph; RuntimeError where it is not sound.

        Nodes must be of this graph, have names of their own and come before those that use them;
        what they call in the owning module must be there.
        """
        seen: dict[Node, str] = {}
        names: set[str] = set()
        for node in self.nodes:
            if node.op not in _legal_ops or node.op == "root":
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node._input_nodes:
                if used.graph is not self:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' does not belong to this Graph, but "
                        "was used as an argument! If you are copying nodes from another graph, "
                        f"use ``arg_transform`` of node_copy() to remap values\n{self}"
                    )
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! "
                        f"Please check that Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            seen[node] = node.name
            if self.owning_module is not None:
                self._check_target(node)

    def _check_target(self, node: Node) -> None:
        is_function = node.op == "call_function"
        if callable(node.target) is not is_function:
            expected = "Callable" if is_function else "str"
            raise ValueError(
                f"Node {node} target {node.target} has type {type_name(type(node.target))} but a "
                f"{expected} is expected"
            )
        if node.op not in ("get_attr", "call_module"):
            return
        value, names = self.owning_module, str(node.target).split(".")
        for i, name in enumerate(names):
            parent = ".".join(names[:i])
            value = getattr(value, name, None)
            if value is None:
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {name} of "
                    f"{parent}"
                )
            if node.op == "call_module" and not isinstance(value, Module):
                raise RuntimeError(
                    f"Node {node} target {node.target} {name} of {parent} does not reference an "
                    "nn.Module"
                )

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase nodes that nobody uses and that do nothing else; returns whether there were any.

        What does something else is said by `is_impure_node`, or else by `Node.is_impure`. Modules
        of graphs that the graph names by ``get_attr`` are treated likewise.
        """
        self.lint()
        is_impure = is_impure_node or Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not is_impure(node):
                self.erase_node(node)
                changed = True
        if self.owning_module is not None:
            named = {node.target for node in self.find_nodes(op="get_attr")}
            for name, child in self.owning_module.named_children():
                if name in named and isinstance(getattr(child, "graph", None), Graph):
                    changed |= child.graph.eliminate_dead_code()
                    child.recompile()
        return changed

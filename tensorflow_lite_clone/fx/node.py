"""One call in a graph: what is called, with which values, and who uses the result."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import total_ordering
from typing import TYPE_CHECKING, Any, TypeVar

from tensorflow_lite_clone.core.device import Device, Layout
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.strides import MemoryFormat
from tensorflow_lite_clone.fx._compatibility import compatibility
from tensorflow_lite_clone.fx._names import qualified_name, type_name
from tensorflow_lite_clone.fx.immutable_collections import immutable_dict, immutable_list
from tensorflow_lite_clone.fx.operator_schemas import (
    ArgsKwargsPair,
    normalize_function,
    normalize_module,
)
from tensorflow_lite_clone.ops.checks import _assert
from tensorflow_lite_clone.ops.namespaces import OpOverload
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._dtype_abbrs import dtype_abbrs

if TYPE_CHECKING:
    from tensorflow_lite_clone.fx.graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

_F = TypeVar("_F", bound=Callable[..., Any])

Target = Callable[..., Any] | str
Argument = Any
#: Types of what stands in a graph as it is, beside nodes and collections.
base_types = (
    str, int, float, bool, complex, DType, Tensor, Device, MemoryFormat, Layout, OpOverload,
)  # fmt: skip

_legal_ops = dict.fromkeys(
    "placeholder call_method call_module call_function get_attr output root".split()
)
#: Functions that are called for what they do, not for what they return.
_side_effectful_functions: set[Callable[..., Any]] = {_assert, operator.setitem}

_type_repr = type_name
_get_qualified_name = qualified_name


def has_side_effect(fn: _F) -> _F:
    """Keep calls of `fn` in graphs though nothing uses their results; returns `fn`.

    >>> @torch.fx.has_side_effect
    ... def note(x):
    ...     print(x)
    """
    _side_effectful_functions.add(fn)
    return fn


@compatibility(is_backward_compatible=True)
def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """A copy of `a` with ``fn(node)`` for each node in its tuples, lists, dictionaries, slices.

    Lists and dictionaries of the copy cannot be written to.

    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> torch.fx.map_arg([x, 1], lambda node: node.name)
    ['x', 1]
    """
    return map_aggregate(a, lambda each: fn(each) if isinstance(each, Node) else each)


@compatibility(is_backward_compatible=True)
def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """A copy of `a` with ``fn(x)`` for each `x` in it that is no collection."""
    if isinstance(a, tuple):
        values = [map_aggregate(each, fn) for each in a]
        return type(a)(*values) if hasattr(a, "_fields") else tuple(values)
    if isinstance(a, list):
        return immutable_list([map_aggregate(each, fn) for each in a])
    if isinstance(a, dict):
        return immutable_dict([(key, map_aggregate(each, fn)) for key, each in a.items()])
    if isinstance(a, (slice, range)):
        return type(a)(*[map_aggregate(each, fn) for each in (a.start, a.stop, a.step)])
    return fn(a)


@total_ordering
@compatibility(is_backward_compatible=True)
class Node:
    """A step of a `Graph`. Programs make nodes by the methods of the graph.

    `op` is the kind of step, `target` what it is about, `args` and `kwargs` its arguments, in which
    nodes stand for the values that they give:

    * ``placeholder``: an argument of the graph; its name, with stars as in a signature, and its
      default in `args`;
    * ``get_attr``: a parameter, buffer or module, by its path from the root module;
    * ``call_function``: a call of the function `target`;
    * ``call_module``: a call of the module at the path `target`;
    * ``call_method``: a call of the method of that name of ``args[0]``;
    * ``output``: returns ``args[0]``.

    `users` are the nodes that use the value, in the order in which they came to do so; `meta` is
    for what passes note. Nodes compare by their order in the graph.

    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(torch.relu, (x,))
    >>> list(x.users), y.all_input_nodes, x < y
    ([relu], [x], True)
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                    f"{type_name(type(target))} but a Callable is expected"
                )
        elif op not in _legal_ops:
            raise AssertionError(f"{op!r} is no kind of node: expected one of {[*_legal_ops]}")
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type_name(type(target))} but a str is expected"
            )
        self.graph = graph
        self._name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.meta: dict[str, Any] = {}
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._args: tuple = ()
        self._kwargs: dict[str, Any] = immutable_dict()
        self._erased = False
        self._prev = self._next = self
        self._position = 0
        #: Says how the node is written where it is not by its name.
        self._repr_fn: Callable[[Node], str] | None = None
        self._update_args_kwargs(args, kwargs)

    @property
    def name(self) -> str:
        """The name of the value, unique in the graph."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        for hook in self._replace_hooks():
            for user in self.users:
                hook(old=self, new=name, user=user)
        self._name = name

    def _rename(self, candidate: str) -> None:
        """Take a name, or if it is in use a similar one."""
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace._rename_object(self, self.name)

    def _replace_hooks(self) -> list[Any]:
        return getattr(self.graph.owning_module, "_replace_hooks", None) or []

    # ----------------------------------------------------------------------- place in the graph

    @property
    def next(self) -> Node:
        """The node behind this one; behind the last one the graph's root."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one; before the first one the graph's root."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move `x`, a node of the same graph, to the place before this one."""
        if x.graph is not self.graph:
            raise AssertionError(f"Attempting to move {x} into a different Graph")
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move `x`, a node of the same graph, to the place behind this one."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        # Its own links stay: a loop over the graph that stands here goes on from them.
        self._prev._next, self._next._prev = self._next, self._prev
        self.graph._is_numbered = False

    @property
    def _sort_key(self) -> int:
        self.graph._number_nodes()
        return self._position

    def __lt__(self, other: Node) -> bool:
        return self._sort_key < other._sort_key

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    # -------------------------------------------------------------------------------- arguments

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments by position. Assignment updates the users of what was and is in them."""
        return self._args

    @args.setter
    def args(self, a: tuple[Any, ...]) -> None:
        self._update_args_kwargs(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments by keyword. Assignment updates the users of what was and is in them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Any]) -> None:
        self._update_args_kwargs(self._args, k)

    def _update_args_kwargs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def use(node: Node) -> Node:
            self._input_nodes[node] = None
            node.users[self] = None
            return node

        self._args, self._kwargs = map_arg(args, use), map_arg(kwargs, use)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once, in order."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace the argument at a position."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Insert an argument at a position, from 0 to ``len(args)``."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(
                f"insert_args index must be between 0 and len(self.args), got {idx}"
            )
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Replace or add an argument by keyword."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use `new_input` wherever the arguments have `old_input`."""
        for hook in self._replace_hooks():
            hook(old=old_input, new=new_input.name, user=self)
        self._replace_input_with(old_input, new_input)

    def _replace_input_with(self, old: Node, new: Node) -> None:
        def replace(node: Node) -> Node:
            return new if node is old else node

        self._update_args_kwargs(map_arg(self._args, replace), map_arg(self._kwargs, replace))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let all users of this node use another; returns these users.

        Users for which `delete_user_cb` is false remain. With `propagate_meta` the other node,
        which must have no `meta`, gets what this one has.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but "
                    "replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        replaced = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in replaced:
            user.replace_input_with(self, replace_with)
        return replaced

    # ----------------------------------------------------------------------------- what it does

    @property
    def stack_trace(self) -> str | None:
        """Where the program made the call, the innermost line last, if that was recorded."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node does something beside giving a value, so that it must stay.

        So do placeholders and outputs, writes, functions marked by `has_side_effect`, and, unless
        `impure_random` is false, operations of aten's that draw random numbers.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return getattr(owner.get_submodule(self.target), "_is_impure", False)
        if self.op != "call_function":
            return False
        if self.target in _side_effectful_functions:
            return True
        writes = getattr(self.target, "__name__", "").split(".")[0].endswith("_")
        return isinstance(self.target, OpOverload) and writes

    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> ArgsKwargsPair | None:
        """The arguments as the signature of what is called has them, with its defaults.

        With `normalize_to_only_use_kwargs` all are by keyword. None for what is neither a function
        nor a module, and where they do not fit.
        """
        if self.op == "call_function":
            return normalize_function(
                self.target,  # type: ignore[arg-type]
                self.args,
                self.kwargs,
                arg_types,
                kwarg_types,
                normalize_to_only_use_kwargs,
            )
        if self.op == "call_module":
            return normalize_module(
                root,
                self.target,  # type: ignore[arg-type]
                self.args,
                self.kwargs,
                normalize_to_only_use_kwargs,
            )
        return None

    # --------------------------------------------------------------------------------- printing

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    @staticmethod
    def _pretty_print_target(target: Any) -> str:
        """A target in words, such as ``operator.add`` or ``torch.relu``."""
        if isinstance(target, str):
            return target
        module = getattr(target, "__module__", None)
        if module in ("builtins", "_operator"):
            return f"{module.lstrip('_')}.{target.__name__}"
        return qualified_name(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The line of the node in the text of its graph.

        With `include_tensor_metadata` it shows the tensor that `meta` has, its dtype, shape,
        strides and device. The lists are filled by ``Graph.__str__``: a placeholder that adds its
        name to a list has no line.
        """
        kind = f"{type_name(self.type)} " if self.type is not None else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_name(self.type)}"
            return f"return {self.args[0]}"
        target = self._pretty_print_target(self.target)
        if self.op == "placeholder":
            if placeholder_names:
                annotation = f"{target}: {type_name(self.type)}" if self.type else ""
                placeholder_names.append(target + annotation)
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{head}[target={target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={target}]"
        if include_tensor_metadata:
            value = noted_value(self)
            if isinstance(value, Tensor):
                kind = f'Tensor "{abbreviation(value)}{list(value.stride())}{value.device}"'
                head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        arguments = f"args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)}"
        return f"{head}[target={target}]({arguments})"


class _node_list:  # noqa: N801  PyTorch's name
    """The nodes of a graph in order. A loop over it may add and erase nodes."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph = graph
        self.direction = direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Any]:
        return self._walk(self.direction)

    def __reversed__(self) -> Iterator[Any]:
        return self._walk("_prev" if self.direction == "_next" else "_next")

    def _walk(self, direction: str) -> Iterator[Node]:
        root = self.graph._root
        node = getattr(root, direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, direction)


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    if hasattr(arg, "_custom_fx_repr_fn"):
        return arg._custom_fx_repr_fn()
    if isinstance(arg, (list, tuple)):
        items = [_format_arg(each) for i, each in enumerate(arg) if i < max_list_len]
        more = f", ...[total_len={len(arg)}]" if len(arg) > max_list_len else ""
        if isinstance(arg, list):
            return f"[{', '.join(items)}{more}]"
        return f"({', '.join(items)}{',' if len(arg) == 1 else ''}{more})"
    if isinstance(arg, dict):
        return f"{{{', '.join([f'{key}: {_format_arg(each)}' for key, each in arg.items()])}}}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


def noted_value(node: Node) -> Any:
    """What a pass noted of the value of a node: a tensor, a record of one, or None."""
    for key in ("val", "tensor_meta", "example_value"):
        if node.meta.get(key) is not None:
            return node.meta[key]
    return None


def abbreviation(tensor: Any) -> str:
    """The dtype and shape of a tensor in few letters, such as ``f32[2, 3]``."""
    return f"{dtype_abbrs[tensor.dtype]}[{', '.join(map(str, tensor.shape))}]"

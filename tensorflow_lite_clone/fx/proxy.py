"""What stands for a value while a function is traced: it notes what is done with it."""

from __future__ import annotations

import collections
import copy
import dataclasses
import dis
import enum
import operator
import sys
import traceback
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from tensorflow_lite_clone.core.errors import PACKAGE_FOLDER
from tensorflow_lite_clone.core.interception import enable_for
from tensorflow_lite_clone.core.torch_function import intercepting
from tensorflow_lite_clone.fx import traceback as fx_traceback
from tensorflow_lite_clone.fx._compatibility import compatibility
from tensorflow_lite_clone.fx._names import function_name
from tensorflow_lite_clone.fx.graph import Graph, magic_methods, reflectable_magic_methods
from tensorflow_lite_clone.fx.node import Node, Target, base_types, map_arg
from tensorflow_lite_clone.overrides import is_tensor_method_or_property
from tensorflow_lite_clone.tensor.parameter import Parameter
from tensorflow_lite_clone.utils._pytree import tree_leaves

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]


@compatibility(is_backward_compatible=False)
class Scope:
    """The path and the type of the module whose ``forward`` runs."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


@compatibility(is_backward_compatible=False)
class ScopeContextManager:
    """A block in which `scope` is what `current_scope` is."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope, self._before = scope, copy.copy(scope)
        vars(scope).update(vars(current_scope))

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *error: object) -> None:
        vars(self._scope).update(vars(self._before))


#: What a node that comes of another takes from its ``meta``.
_COPIED_META = (
    "nn_module_stack", "torch_fn", "source_fn_stack", "original_aten", "from_node", "custom",
)  # fmt: skip


@compatibility(is_backward_compatible=True)
class TracerBase:
    """What makes nodes of what is done with proxies."""

    graph: Graph
    #: Whether nodes note where the program made the call; see `Node.stack_trace`.
    record_stack_traces = False
    #: Whether nothing but frames of functions called ``forward`` is noted.
    _record_forward_stack_traces_only = False
    #: Whether asserted proxies become nodes, instead of errors.
    trace_asserts = False
    #: Whether buffers become nodes wherever a module names them.
    proxy_buffer_attributes = False
    #: The method of a module that is traced.
    traced_func_name = "forward"

    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, Any]]

    def __init__(self) -> None:
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node to the graph. Subclasses check or change here what they want to."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if fx_traceback.has_preserved_node_meta():
            meta = fx_traceback.get_current_meta()
            if meta.get("stack_trace"):
                node.stack_trace = meta["stack_trace"]
            node.meta.update({key: copy.copy(meta[key]) for key in _COPIED_META if key in meta})
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            lines = self._filter_traceback_frames(traceback.extract_stack())
            if lines:
                node.stack_trace = "".join(lines.format()).strip()
        return node

    def _filter_traceback_frames(
        self, user_stack_summary: traceback.StackSummary
    ) -> traceback.StackSummary:
        """The frames of the program, from the outermost ``forward`` on."""
        frames = [
            frame for frame in user_stack_summary if not frame.filename.startswith(PACKAGE_FOLDER)
        ]
        names = [frame.name for frame in frames]
        if self._record_forward_stack_traces_only:
            frames = [frame for frame in frames if frame.name == "forward"]
        else:
            frames = frames[names.index("forward") :] if "forward" in names else []
        return traceback.StackSummary.from_list(frames)

    def proxy(self, node: Node) -> Proxy:
        """What stands for the value of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Add a node of a call, in whose arguments proxies may be; returns its proxy."""
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def _find_user_frame(self) -> FrameType | None:
        """The frame of the program."""
        frame: FrameType | None = sys._getframe()
        while frame is not None and frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
            frame = frame.f_back
        return frame

    def create_arg(self, a: Any) -> Any:
        """An argument as nodes have it: nodes for proxies, also in collections.

        NotImplementedError for what does not stand in graphs.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            values = [self.create_arg(each) for each in a]
            return type(a)(*values) if hasattr(a, "_fields") else type(a)(values)
        if isinstance(a, list):
            return [self.create_arg(each) for each in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(each) for key, each in a.items()}
        if isinstance(a, (slice, range)):
            return type(a)(*[self.create_arg(each) for each in (a.start, a.stop, a.step)])
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = dataclasses.fields(a)
            kwargs = {field.name: self.create_arg(getattr(a, field.name)) for field in fields}
            return self.create_node("call_function", type(a), (), kwargs)
        if isinstance(a, (*base_types, enum.Enum)) or a is None or a is ...:
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        def refuse(node: Node) -> None:
            raise RuntimeError(
                f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}"
            )

        if not isinstance(key, str):
            key = self.create_arg(key)
            map_arg(key, refuse)
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """What ``bool(obj)`` is: TraceError, for nothing is known of its value."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """What ``iter(obj)`` is: TraceError, for nobody knows how many there are."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument. See the torch.fx docs on "
            "pytorch.org for a more detailed explanation of what types of control flow can be "
            "traced, and check out the Proxy docstring for help troubleshooting Proxy iteration "
            "errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """What ``obj.keys()`` is, which ``**obj`` asks for: a call of the method."""
        return Attribute(obj, "keys")()


@compatibility(is_backward_compatible=True)
class GraphAppendingTracer(TracerBase):
    """What adds nodes to a graph without tracing anything."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph


@compatibility(is_backward_compatible=False)
def assert_fn(x: Any) -> None:
    """AssertionError if `x` is false."""
    if not x:
        raise AssertionError("Assertion failed")


@compatibility(is_backward_compatible=True)
class TraceError(ValueError):
    """A function does what cannot be traced, such as to branch on a value."""


@compatibility(is_backward_compatible=True)
class Proxy:
    """Stands for the value of a node: what is done with it is added to the graph.

    >>> graph = torch.fx.Graph()
    >>> x = torch.fx.Proxy(graph.placeholder("x"))
    >>> y = torch.relu(x + 1).sum(dim=0)
    >>> [node.name for node in graph.nodes]
    ['x', 'add', 'relu', 'sum_1']
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = tracer or GraphAppendingTracer(node.graph)
        self.node = node
        if not intercepting:  # made by hand, with no end of the tracing in sight
            enable_for(type(self))

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return copied

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        instruction = _instructions(sys._getframe(1))[0]
        if instruction.opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(instruction.argval))  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _is_asserted(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """A call of the method, or what the tracer makes of ``**proxy``."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls,
        orig_method: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> Proxy:
        args, kwargs = args or (), kwargs or {}
        leaves = tree_leaves((args, kwargs))
        tracers = list(dict.fromkeys([leaf.tracer for leaf in leaves if isinstance(leaf, cls)]))
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {tracers} while trying to trace operations "
                f"{orig_method}"
            )
        tracer = tracers[0]
        if is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        name = tracer.graph._target_to_str(function_name(orig_method))
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


@compatibility(is_backward_compatible=True)
class Attribute(Proxy):
    """An attribute of a proxy: a call of it is one of a method, else it is a node of its own."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node of the attribute, which is added when first asked for."""
        if self._node is None:
            args = (self.root, self.attr)
            self._node = self.tracer.create_proxy("call_function", getattr, args, {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


@compatibility(is_backward_compatible=False)
class ParameterProxy(Proxy):
    """A proxy of a parameter, whose shape is known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, Parameter):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param: Any = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"


def _of_parameter(name: str) -> Any:
    known = getattr(Parameter, name)
    if isinstance(known, property):
        return property(lambda proxy: getattr(proxy.param, name))
    return lambda proxy: getattr(proxy.param, name)()


for _name in ("shape", "ndim", "size", "dim", "numel", "nelement"):
    setattr(ParameterProxy, _name, _of_parameter(_name))


def _instructions(frame: FrameType) -> list[dis.Instruction]:
    """The instructions of a frame from the one that it is at."""
    every = list(dis.get_instructions(frame.f_code))
    return every[bisect_left(every, frame.f_lasti, key=lambda each: each.offset) :]


def _is_asserted(frame: FrameType) -> bool:
    """Whether a frame asks for a truth value in order to assert it."""
    jump, following, *_ = _instructions(frame)
    return "JUMP" in jump.opname and (
        following.opname == "LOAD_ASSERTION_ERROR" and jump.opname.endswith("IF_TRUE")
    )


def _operator(name: str) -> Callable[..., Any]:
    target: Any = getattr(operator, name, None)

    def method(*args: Any, **kwargs: Any) -> Proxy:
        return args[0].tracer.create_proxy("call_function", target, args, kwargs)

    return method


def _reflected(name: str) -> Callable[..., Any]:
    target: Any = getattr(operator, name, None)

    def method(self: Proxy, other: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (other, self), {})

    return method


for _name in magic_methods:
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(_name))
for _name in reflectable_magic_methods:
    setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(_name))

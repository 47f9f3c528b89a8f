"""Functions traced into graphs of aten's operations, by running them: `make_fx`.

The function runs on the tensors it is given. A mode with `__torch_dispatch__` sees each operation,
of forward and of backward passes, and writes a node for it; what an operation gave is known again
by its array. So what is traced is what ran, with the sizes that there were.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tensorflow_lite_clone._subclasses.fake_tensor import FakeTensorMode
from tensorflow_lite_clone.autograd.mode import mode as thread_mode
from tensorflow_lite_clone.fx._symbolic_trace import PH, Tracer
from tensorflow_lite_clone.fx.graph import Graph
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.interpreter import Interpreter
from tensorflow_lite_clone.fx.passes.shape_prop import _extract_tensor_metadata
from tensorflow_lite_clone.fx.proxy import Proxy
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.namespaces import OpOverload, aten
from tensorflow_lite_clone.python_dispatch.creations import seen_creations
from tensorflow_lite_clone.tensor import Parameter, Tensor
from tensorflow_lite_clone.utils import _pytree as pytree
from tensorflow_lite_clone.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
)

__all__ = [
    "DecompositionInterpreter",
    "ProxyTorchDispatchMode",
    "PythonKeyTracer",
    "dispatch_trace",
    "get_innermost_proxy_mode",
    "get_isolated_graphmodule",
    "get_proxy_mode",
    "get_proxy_slot",
    "has_proxy_slot",
    "make_fx",
    "maybe_disable_fake_tensor_mode",
    "track_tensor_tree",
]

#: Values of at most so many elements that come of constants alone may be read while tracing.
CONSTANT_NUMEL_LIMIT = 1

_READ_ERROR = (
    "It appears that you're trying to get value out of a tracing tensor with {func} - erroring "
    "out! It's likely that this is caused by data-dependent control flow or similar.  It may be "
    "possible to trace this with dynamic shapes; try setting tracing_mode='symbolic' in your "
    "make_fx call."
)


class _Slot(NamedTuple):
    """A tensor that was traced, its proxy, and whether it depends on no input."""

    tensor: Tensor
    proxy: Proxy
    constant: bool


def _address(tensor: Tensor) -> int | None:
    """Where a tensor's first element is, None for one without memory."""
    storage = tensor._storage
    backend = storage.backend
    if backend.dispatches or not backend.has_values or not storage.array.size:
        return None
    address: int = backend.data_pointer(storage.array)
    return address


def _key(tensor: Tensor) -> Any:
    """What two tensors have in common that are the same elements of the same memory."""
    address, storage = _address(tensor), tensor._storage
    if address is None:
        return id(storage.array.tensor if storage.backend.dispatches else storage.array)
    return address, tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, tensor.device


class PythonKeyTracer(Tracer):
    """A tracer of values that are there: modules are run, and memory has proxies."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        self._slots: dict[Any, _Slot] = {}  # with the tensors, so that memory is not used again
        self._beginning: dict[Any, list[_Slot]] = {}  # by their addresses
        self._attributes: dict[Any, Tensor] = {}  # the tensors from elsewhere, by their memory
        self._fake = FakeTensorMode()

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """Run the module's forward: calls of modules are no nodes."""
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """The attribute itself."""
        return attr_val

    def create_arg(self, a: Any) -> Any:
        """As any tracer's; a parameter of no traced module becomes an attribute of the root."""
        if not isinstance(a, Tensor):
            return super().create_arg(a)
        a = self._attributes.setdefault(_key(a), a)
        if not isinstance(a, Parameter):
            node = super().create_arg(a)
        else:
            names = [name for name, value in self.root.named_parameters() if value is a]
            if not names:
                known = [name for name, _ in self.root.named_parameters()]
                number = sum([name.startswith("_param_constant") for name in known])
                names = [f"_param_constant{number}"]
                setattr(self.root, names[0], a)
            node = self.create_node("get_attr", names[0], (), {})
        node.meta["val"] = self._fake.describe(a)
        return node

    def proxy_of(self, value: Any) -> Any:
        """The proxy of a tensor that was traced; what is none, or was not, as it is."""
        if not isinstance(value, Tensor):
            return value
        slot = self._slots.get(_key(value))
        return self._view_of_slot(value) if slot is None else slot.proxy

    def _view_of_slot(self, tensor: Tensor) -> Any:
        """The proxy of a view, of a traced tensor, that no operation made; else the tensor."""
        layout = tensor.numel(), tensor.dtype, tensor.is_contiguous()
        for other, proxy, constant in self._beginning.get(_address(tensor), ()):
            if layout[2] and layout == (other.numel(), other.dtype, other.is_contiguous()):
                arguments = (proxy, list(tensor.shape))
                view = self.create_proxy("call_function", aten.view.default, arguments, {}, "view")
                self.track(tensor, view, constant)
                return view
        return tensor

    def is_constant(self, value: Any) -> bool:
        """Whether a value depends on no input."""
        if not isinstance(value, Tensor):
            return True
        slot = self._slots.get(_key(value))
        return slot is None or slot.constant

    def track(self, value: Any, proxy: Proxy, constant: bool = False) -> None:
        """Let tensors, and those in lists and tuples, be what `proxy` and its items stand for."""
        if isinstance(value, Tensor):
            proxy.node.meta["val"] = self._fake.describe(value)
            proxy.node.meta["tensor_meta"] = _extract_tensor_metadata(value)
            slot = self._slots[_key(value)] = _Slot(value, proxy, constant)
            address = _address(value)
            if address is not None:
                self._beginning.setdefault(address, []).append(slot)
        elif isinstance(value, list | tuple):
            fakes = [self._fake.describe(x) if isinstance(x, Tensor) else x for x in value]
            proxy.node.meta["val"] = fakes if type(value) is list else tuple(fakes)
            for number, item in enumerate(value):
                if item is not None:
                    self.track(item, proxy[number], constant)  # type: ignore[index]


class ProxyTorchDispatchMode(TorchDispatchMode):
    """A mode that writes each operation into the graph of a `PythonKeyTracer`."""

    def __init__(
        self,
        tracer: PythonKeyTracer,
        tracing_mode: str = "real",
        pre_dispatch: bool = False,
        decomposition_table: dict[Any, Callable[..., Any]] | None = None,
    ) -> None:
        super().__init__()
        self.tracer, self.tracing_mode, self.pre_dispatch = tracer, tracing_mode, pre_dispatch
        self.decomposition_table = decomposition_table or {}
        self.enable_tracing = True

    follows_values = True

    @classmethod
    def is_infra_mode(cls) -> bool:
        """True: it is a part of tracing."""
        return True

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if not self.enable_tracing:
            return func(*args, **kwargs)
        if func in self.decomposition_table:
            with self:
                result = self.decomposition_table[func](*args, **kwargs)
            if result is not NotImplemented:
                return result
        return self._record(func, args, kwargs)

    def _record(self, func: OpOverload, args: tuple, kwargs: dict[str, Any]) -> Any:
        tracer = self.tracer
        constant = all([tracer.is_constant(x) for x in pytree.tree_leaves((args, kwargs))])
        if func is aten._local_scalar_dense.default:
            if not constant:
                raise RuntimeError(_READ_ERROR.format(func=func))
            return func(*args, **kwargs)
        recorded = func
        if func is aten.lift_fresh.default:
            recorded = aten.lift_fresh_copy.default
        proxy_args, proxy_kwargs = pytree.tree_map(tracer.proxy_of, (args, kwargs))
        name = tracer.graph._target_to_str(recorded.overloadpacket.__name__)
        try:
            proxy = tracer.create_proxy("call_function", recorded, proxy_args, proxy_kwargs, name)
        except NotImplementedError:  # parameters of an op that do not stand in graphs
            bound = functools.partial(func, **kwargs)
            bound.__name__ = bound.__qualname__ = func._opname  # type: ignore[attr-defined]
            bound.__module__ = "tlc"
            proxy = tracer.create_proxy("call_function", bound, proxy_args, {}, name)
        result = func(*args, **kwargs)
        tensors = [x for x in pytree.tree_leaves(result) if isinstance(x, Tensor)]
        small = all([x.numel() <= CONSTANT_NUMEL_LIMIT for x in tensors])
        lifted = func is aten.lift_fresh.default
        tracer.track(result, proxy, constant and (small or lifted) and not _draws(func))
        return result


def _draws(func: OpOverload) -> bool:
    """Whether an operation's result is random."""
    return any([name in func._opname for name in ("rand", "bernoulli", "normal", "dropout")])


def get_innermost_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The innermost mode of this thread that traces, or None."""
    modes = _get_current_dispatch_mode_stack()
    found = [mode for mode in modes if isinstance(mode, ProxyTorchDispatchMode)]
    return found[-1] if found else None


get_proxy_mode = get_innermost_proxy_mode


@contextmanager
def disable_proxy_modes_tracing(enable_current: bool = False) -> Iterator[Any]:
    """A block in which this thread's operations are not traced; it is given the mode, if any."""
    modes = thread_mode.dispatch_modes
    thread_mode.dispatch_modes = [x for x in modes if not isinstance(x, ProxyTorchDispatchMode)]
    tracing = [x for x in modes if isinstance(x, ProxyTorchDispatchMode)]
    try:
        yield tracing[-1] if tracing else None
    finally:
        thread_mode.dispatch_modes = modes


@contextmanager
def maybe_disable_fake_tensor_mode() -> Iterator[None]:
    """A block without the modes of fake tensors, which is any: tracing runs on real ones."""
    yield


def has_proxy_slot(obj: Any, tracer: PythonKeyTracer) -> bool:
    """Whether a tensor was traced."""
    return isinstance(tracer.proxy_of(obj), Proxy)


def get_proxy_slot(obj: Any, tracer: PythonKeyTracer, default: Any = None) -> Any:
    """The proxy of a tensor that was traced, else `default`; KeyError without one."""
    proxy = tracer.proxy_of(obj)
    if isinstance(proxy, Proxy):
        return proxy
    if default is None:
        raise KeyError(f"{obj} is not tracked with proxy for {tracer}")
    return default


def track_tensor_tree(
    inner_res: Any, proxy_res: Proxy, *, constant: Any = None, tracer: PythonKeyTracer
) -> Any:
    """Let the tensors of a result be what a proxy and its items stand for; returns the result."""
    tracer.track(inner_res, proxy_res, constant is not None)
    return inner_res


def dispatch_trace(
    root: Module | Callable[..., Any], tracer: Tracer, concrete_args: Any = None
) -> GraphModule:
    """The module of the graph that `tracer` traces of `root`."""
    graph = tracer.trace(root, concrete_args)
    name = root.__class__.__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


def fake_signature(fn: Callable[..., Any], nargs: int) -> Callable[..., Any]:
    """`fn` as a function of `nargs` arguments ``arg0``, ``arg1``, ..."""
    names = ", ".join([f"arg{i}" for i in range(nargs)])
    function: Callable[..., Any] = eval(f"lambda {names}: fn({names})", {"fn": fn})
    return function


def _has_plain_signature(function: Any) -> bool:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is not None and not code.co_flags & inspect.CO_VARARGS


def make_fx(
    f: Callable[..., Any],
    decomposition_table: dict[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
) -> Callable[..., GraphModule]:
    """A function that gives, for arguments, the graph of what `f` does with them.

    The nodes are operations of ``torch.ops.aten``, of forward and, where `f` asks for gradients,
    of backward passes. Arguments may be nested in lists, tuples and dictionaries. Tensors that `f`
    takes from elsewhere become attributes, numbers constants. A node's ``meta`` has "val", a fake
    tensor, and "tensor_meta". An operation with an entry in `decomposition_table` is replaced by
    what that function does.

    `f` runs on the values given in every `tracing_mode` ("real", "fake" or "symbolic"), and the
    graph holds for their sizes. Raises AssertionError for another mode, RuntimeError where `f`
    reads a number out of a tensor that depends on its arguments. For example::

        graph = make_fx(lambda x: x.sin() + 1)(torch.ones(3))
        print(graph.code)  # sin = torch.ops.aten.sin.default(x_1); add = ...add.Tensor(sin, 1)
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be real/fake/symbolic, got {tracing_mode}")

    @functools.wraps(f)
    def traced(*args: Any) -> GraphModule:
        leaves, _ = pytree.tree_flatten(args)
        function = f if _has_plain_signature(f) else fake_signature(f, len(args))
        tracer = PythonKeyTracer()
        tracing = ProxyTorchDispatchMode(tracer, tracing_mode, pre_dispatch, decomposition_table)

        @functools.wraps(function)
        def run(*proxies: Any) -> Any:
            for value, proxy in zip(leaves, pytree.tree_leaves(proxies), strict=True):
                if isinstance(value, Tensor):
                    tracer.track(value, proxy)
            with seen_creations(), tracing:
                result = function(*args)
            return pytree.tree_map(tracer.proxy_of, result)

        placeholders = pytree.tree_map(lambda _: PH, args)
        return dispatch_trace(run, tracer, tuple(placeholders))

    return traced


def get_isolated_graphmodule(
    func: Callable[..., Any],
    args: tuple,
    kwargs: dict[str, Any],
    tracing_mode: str = "real",
    decomposition_table: dict[Any, Callable[..., Any]] | None = None,
) -> GraphModule:
    """The graph of what `func` does with arguments, traced apart from modes that are on."""
    leaves, spec = pytree.tree_flatten((args, kwargs))

    def run(flat_args: list[Any]) -> Any:
        args, kwargs = pytree.tree_unflatten(flat_args, spec)
        return func(*args, **kwargs)

    with disable_proxy_modes_tracing():
        return make_fx(run, decomposition_table, tracing_mode)(leaves)


class DecompositionInterpreter(Interpreter):
    """An interpreter of a graph that writes what its operations consist of into another graph."""

    def __init__(
        self,
        module: GraphModule,
        new_graph: Graph,
        decomposition_table: dict[Any, Callable[..., Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(module, **kwargs)
        self.new_graph = new_graph
        self.tracer = PythonKeyTracer()
        self.tracer.graph, self.tracer.root = new_graph, module
        self.mode = ProxyTorchDispatchMode(
            self.tracer, decomposition_table=decomposition_table or {}
        )

    def placeholder(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The next argument, which becomes an input of the new graph."""
        value = super().placeholder(target, args, kwargs)
        if isinstance(value, Tensor):
            self.tracer.track(value, Proxy(self.new_graph.placeholder(target), self.tracer))
        return value

    def get_attr(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An attribute, which is read in the new graph."""
        value = super().get_attr(target, args, kwargs)
        if isinstance(value, Tensor):
            self.tracer.track(value, Proxy(self.new_graph.get_attr(target), self.tracer))
        return value

    def output(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result, which is that of the new graph."""
        value = super().output(target, args, kwargs)
        found = pytree.tree_map(self.tracer.proxy_of, value)
        nodes = pytree.tree_map(lambda x: x.node if isinstance(x, Proxy) else x, found)
        self.new_graph.output(nodes)
        return value

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The result for arguments; the new graph is written on the way."""
        with seen_creations(), self.mode:
            return super().run(*args, **kwargs)

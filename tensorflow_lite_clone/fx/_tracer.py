"""What calls functions and modules with proxies, and makes graphs of what these note."""

from __future__ import annotations

import copy
import functools
import inspect
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any, ClassVar

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.interception import intercept, release
from tensorflow_lite_clone.fx._compatibility import compatibility
from tensorflow_lite_clone.fx._names import torch_path
from tensorflow_lite_clone.fx._patching import Patcher, find_proxy, wrap
from tensorflow_lite_clone.fx.graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from tensorflow_lite_clone.fx.node import base_types
from tensorflow_lite_clone.fx.proxy import (
    ParameterProxy,
    Proxy,
    Scope,
    ScopeContextManager,
    TracerBase,
)
from tensorflow_lite_clone.nn.modules.container import Sequential
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.checks import _assert
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.tensor.parameter import Parameter
from tensorflow_lite_clone.utils import _pytree as pytree

_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS

_orig_module_call: Callable[..., Any] = Module.__call__
_orig_module_getattr: Callable[..., Any] = Module.__getattr__

_proxyable_classes: dict[type, None] = {}
_tracing: list[Tracer] = []  # the tracers that are at work, the innermost last


def is_fx_tracing() -> bool:
    """Whether a function is being traced."""
    return bool(_tracing)


def is_fx_symbolic_tracing() -> bool:
    """Whether a function is being traced."""
    return bool(_tracing)


@compatibility(is_backward_compatible=True)
class ProxyableClassMeta(type):
    """The type of classes whose construction is noted where an argument is a proxy.

    >>> class Pair(metaclass=torch.fx.ProxyableClassMeta):
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    >>> Pair(1, 2).right
    2
    """

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs) if is_fx_tracing() else None
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


@compatibility(is_backward_compatible=False)
class PHBase:
    """Stands in `concrete_args` for what is not to be specialized."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


@compatibility(is_backward_compatible=False)
class PHWithMeta(PHBase):
    """One whose attributes the node of the argument gets."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


@compatibility(is_backward_compatible=True)
class Tracer(TracerBase):
    """Makes the graph of a function or module; subclasses say how.

    `autowrap_modules` are modules whose functions are noted and not entered, `autowrap_functions`
    more such functions. With `param_shapes_constant` the shapes of parameters are numbers and not
    nodes.

    >>> class Whole(torch.fx.Tracer):
    ...     def is_leaf_module(self, m, module_qualified_name):
    ...         return True
    """

    _qualname_counter: ClassVar[dict[str, int]] = defaultdict(int)

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap_search = list(autowrap_modules)
        self._autowrap_function_ids = {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        } | {id(function) for function in autowrap_functions}
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.num_calls: dict[str, int] = {}

    # ----------------------------------------------------------------------------- what is noted

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that begins so and that the root has no attribute of."""
        if not hasattr(self.root, f"{prefix}0"):
            self._qualname_counter[prefix] = 0
            return f"{prefix}0"
        number = self._qualname_counter[prefix]
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        self._qualname_counter[prefix] = number + 1
        return f"{prefix}{number}"

    def create_arg(self, a: Any) -> Any:
        """An argument as nodes have it.

        Parameters, buffers and modules of the root become ``get_attr`` nodes, and so do other
        tensors, which the root gets as constants. NameError for parameters of other modules.
        """
        if isinstance(a, Parameter):
            path = self._path(a, self.root.named_parameters())
            if path is None:
                raise NameError("parameter is not a member of this module")
            return self.create_node("get_attr", path, (), {})
        members: Iterable[tuple[str, Any]] = ()
        if isinstance(a, Tensor):
            members = self.root.named_buffers()
        elif isinstance(a, Module):
            members = self.root.named_modules()
        path = self._path(a, members)
        if path is not None:
            return self.create_node("get_attr", path, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            args = tuple([self.create_arg(each) for each in a])
            return self.create_node("call_function", type(a), args, {})
        if isinstance(a, (Tensor, pytree.TreeSpec)):
            path = self.tensor_attrs.get(a)
            if path is None:
                kind = "_tensor_constant" if isinstance(a, Tensor) else "_tree_spec_constant"
                path = self.tensor_attrs[a] = self.get_fresh_qualname(kind)
                setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        if type(a) in _proxyable_classes:
            path = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        return super().create_arg(a)

    @staticmethod
    def _path(value: Any, members: Iterable[tuple[str, Any]]) -> str | None:
        return next((path for path, member in members if member is value), None)

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether calls of a module are noted, and not what it does: for those of `torch.nn`.

        It is at the path `module_qualified_name`. A `Sequential` is entered.
        """
        home = torch_path(type(m).__module__)
        return home.startswith(("torch.nn", "torch.ao.nn")) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The path of a module in the root; NameError if it is not there."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = self._path(mod, self.root.named_modules())
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """What a call of a module gives: the proxy of a node for leaves, else what it returns.

        ``forward(*args, **kwargs)`` calls it.
        """
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            count = self.num_calls.get(path, 0)
            self.num_calls[path] = count + 1
            key = f"{scope.module_path}@{count}" if count else scope.module_path
            self.module_stack[key] = (path, scope.module_type)
            if self.is_leaf_module(m, path):
                result = self.create_proxy("call_module", path, args, kwargs)
            else:
                result = forward(*args, **kwargs)
            self.module_stack.popitem()
        return result

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """What an attribute of a module is: for parameters a proxy, which is kept in the cache."""
        if isinstance(attr_val, Parameter):
            path = self._path(attr_val, self.root.named_parameters())
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            path = self._path(attr_val, self.root.named_buffers())
        else:
            path = None
        if path is None:
            return attr_val
        if path not in parameter_proxy_cache:
            options: dict[str, Any] = {}
            if self.param_shapes_constant:
                options["proxy_factory_fn"] = lambda node: ParameterProxy(
                    self, node, path, attr_val
                )
            proxy = self.create_proxy("get_attr", path, (), {}, **options)
            parameter_proxy_cache[path] = proxy
        return parameter_proxy_cache[path]

    # --------------------------------------------------------------------------------- arguments

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> tuple[Any, list[Any]]:
        """The function to be called and its arguments: proxies for what is not concrete.

        Where concrete arguments are trees, the graph has an argument for each leaf.
        """
        function: Any = inspect.unwrap(root_fn)
        code, signature = function.__code__, inspect.signature(function)
        count = code.co_argcount + code.co_kwonlyargcount
        if is_module and count == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        args: list[Any] = [self.root] if is_module else []
        names = list(code.co_varnames)
        is_variadic = bool(code.co_flags & _VARIADIC)
        if isinstance(concrete_args, tuple) and concrete_args and is_variadic and count == 1:
            for i, value in enumerate(concrete_args):
                proxy = self.create_proxy("placeholder", f"input_{i}", (), {})
                args.append(_with_attributes(proxy, value))
            return root_fn, args
        own = names[len(args) : count]
        if isinstance(concrete_args, tuple):
            if len(own) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(own)} arguments but got {len(concrete_args)} concrete "
                    "arguments"
                )
            concrete_args = dict(zip(own, concrete_args))
        if is_variadic:
            stars = [
                star
                for star, flag in (("*", inspect.CO_VARARGS), ("**", inspect.CO_VARKEYWORDS))
                if code.co_flags & flag
            ]
            own += [star + name for star, name in zip(stars, names[count:])]
        args += [self._argument(name, concrete_args or {}, signature, function) for name in own]
        if is_variadic or code.co_kwonlyargcount:
            root_fn = _with_plain_parameters(root_fn, len(args))
        leaves, spec = pytree.tree_flatten(tuple(args))
        if all([child.is_leaf() for child in spec.children()]):
            return root_fn, args
        codegen = _PyTreeCodeGen(_PyTreeInfo(names[:count], spec, None))
        self.graph._codegen = codegen

        # Without annotations, which graphs would show.
        def call_with_leaves(*leaves):
            result = root_fn(*pytree.tree_unflatten(leaves, spec))
            values, out_spec = pytree.tree_flatten(result)
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return values

        return call_with_leaves, leaves

    def _argument(
        self,
        name: str,
        concrete: dict[str, Any],
        signature: inspect.Signature,
        function: Callable[..., Any],
    ) -> Any:
        default: tuple = ()
        if name[0] != "*":
            given = signature.parameters[name].default
            default = () if given is inspect.Parameter.empty else (given,)
        if name not in concrete:
            kind = _annotation(function, name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        count = 0

        def leaf(value: Any) -> Any:
            nonlocal count
            count += 1
            proxy = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(value, PHBase):
                return _with_attributes(proxy, value)
            self._check_specialized(name, proxy, value)
            return value

        return pytree.tree_map(leaf, concrete[name])

    def _check_specialized(self, name: str, proxy: Proxy, value: Any) -> None:
        """Let the graph see that an argument has the value with which it was traced."""
        message = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (proxy, message), {})
        elif type(value) in base_types and type(value) is not Tensor:
            _assert(proxy == value, message)
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized "
                "function. It is up to the user to make sure that your inputs match the inputs "
                "you specialized the function with.",
                stacklevel=level_outside(),
            )

    # ----------------------------------------------------------------------------------- tracing

    def trace(
        self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
    ) -> Graph:
        """The graph of a module or function.

        Arguments in `concrete_args` have values instead of proxies. Afterwards ``self.root`` is the
        module, or for a function a new one that has its constants.
        """
        if isinstance(root, Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in "
                    f"{type(root).__name__}"
                )
            function = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: path for path, module in root.named_modules()}
        else:
            self.root = Module()
            function = root
        if not isinstance(function, FunctionType):
            raise AssertionError(f"Expected FunctionType, got {type(function)}")
        self.graph = Graph(tracer_cls=type(self))
        code = function.__code__
        self.graph._co_fields = {
            name: getattr(code, name) for name in ("co_name", "co_filename", "co_firstlineno")
        }
        self.tensor_attrs: dict[Any, str] = dict(self._constants(self.root, ""))
        _tracing.append(self)
        intercept()
        try:
            called, args = self.create_args_for_root(
                function, isinstance(root, Module), concrete_args
            )
            with self._patched(function.__globals__):
                result = self.create_arg(called(*args))
            kind = _annotation(inspect.unwrap(called), "return")
            self.create_node("output", "output", (result,), {}, type_expr=kind)
        finally:
            release()
            _tracing.pop()
        self.submodule_paths = None
        return self.graph

    def _constants(self, module: Module, prefix: str) -> Iterator[tuple[Any, str]]:
        """The tensors that modules have as plain attributes, and their paths."""
        for name, value in vars(module).items():
            if isinstance(value, (Tensor, pytree.TreeSpec)):
                yield value, prefix + name
        for name, child in module.named_children():
            yield from self._constants(child, f"{prefix}{name}.")

    @contextmanager
    def _patched(self, names: dict[str, Any]) -> Iterator[None]:
        """A block in which modules and wrapped functions note that they are called."""
        cache: dict[str, Proxy] = {}

        @functools.wraps(_orig_module_getattr)
        def get(module: Module, name: str) -> Any:
            return self.getattr(name, _orig_module_getattr(module, name), cache)

        @functools.wraps(_orig_module_call)
        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _orig_module_call(module, *args, **kwargs)

            scope = getattr(getattr(module, "forward", module), "__globals__", {})
            patcher.patch_functions(scope, self._autowrap_function_ids)
            return self.call_module(module, forward, args, kwargs)

        with Patcher() as patcher:
            patcher.patch_method(Module, "__getattr__", get)
            patcher.patch_method(Module, "__call__", call)
            patcher.patch_wrapped()
            patcher.patch_functions(names, self._autowrap_function_ids)
            for module in self._autowrap_search:
                patcher.patch_functions(vars(module), self._autowrap_function_ids)
            yield

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        copied = type(self).__new__(type(self))
        for name, value in vars(self).items():
            is_list = name == "_autowrap_search"  # modules of Python's, which cannot be copied
            vars(copied)[name] = copy.copy(value) if is_list else copy.deepcopy(value, memo)
        return copied


def _annotation(function: Any, name: str) -> Any:
    """The annotation of a parameter or of ``return``, if any.

    Those of this package are written as text and for its own checks, where PyTorch's are types.
    """
    kind = inspect.get_annotations(function).get(name)
    if isinstance(kind, str) and torch_path(function.__module__).startswith("torch"):
        kind = eval(kind, function.__globals__)
        return None if kind is Any else kind
    return kind


def _with_attributes(proxy: Proxy, placeholder: Any) -> Proxy:
    """The proxy of an argument, whose node gets the attributes that its placeholder has."""
    if isinstance(placeholder, PHBase) and placeholder is not PH:
        for name, value in vars(placeholder).items():
            if not callable(value) and not hasattr(proxy.node, name):
                setattr(proxy.node, name, value)
    return proxy


def _with_plain_parameters(function: Any, count: int) -> FunctionType:
    """A function whose parameters, with stars or by keyword, all are taken by position."""
    code: CodeType = function.__code__
    code = code.replace(
        co_argcount=count,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=code.co_flags & ~_VARIADIC,
    )
    return FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )


@wrap
def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)

"""Operations of a program's own, as ``torch.library``.

A custom operation is a Python function, with a kernel per device type and a gradient if it gets
them; it is called as itself or as ``torch.ops.NAMESPACE.NAME``. The inside of an operation is not
recorded: without `register_autograd` a backward pass through it raises RuntimeError. Gradients go
to tensors that are arguments themselves, not to those in lists. Schemas are read for their names
only, and fake kernels, which are for PyTorch's tracing compiler, are kept and never called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tensorflow_lite_clone.autograd import Function
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.ops.namespaces import (
    OpOverload,
    OpOverloadPacket,
    namespace,
    namespaces,
)
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._pytree import tree_map_only

_COMPOSITE = ("CompositeImplicitAutograd", "Autograd", "AutogradCPU", "AutogradCUDA")
_DEVICES = {"CPU": "cpu", "CUDA": "cuda", "CompositeExplicitAutograd": None, "": None}


class CustomOpDef:
    """An operation of a namespace: what it runs on each type of device, and its gradient."""

    def __init__(self, name: str) -> None:
        self._namespace, self._name = name.split("::")
        self._qualname = name
        self.__name__ = self._name
        self._kernels: dict[str | None, Callable[..., Any]] = {}
        self._composite: Callable[..., Any] | None = None
        self._signature: inspect.Signature | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self._fake: Callable[..., Any] | None = None
        self._plain_function: type[Function] | None = None
        self._overload = OpOverloadPacket(name, self._dispatch).default

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    @property
    def default(self) -> OpOverload:
        """The only overload of the operation."""
        return self._overload

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._overload(*args, **kwargs)  # which asks modes first

    def _dispatch(self, *args: Any, **kwargs: Any) -> Any:
        if self._composite is not None:
            return self._composite(*args, **kwargs)
        if self._signature is not None:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        if not any([isinstance(x, Tensor) and x.requires_grad for x in args]):
            return self._run(args, kwargs)
        return self._function(kwargs).apply(*args)

    def _run(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        args, kwargs = tree_map_only(Tensor, Tensor.detach, (args, kwargs))
        tensors = [x for x in args if isinstance(x, Tensor)]
        device = tensors[0].device.type if tensors else None
        kernel = self._kernels.get(device) or self._kernels.get(None)
        if kernel is None:
            raise NotImplementedError(
                f"Could not run '{self._qualname}': it has no kernel for the device type {device}"
            )
        with no_grad():
            result = kernel(*args, **kwargs)
        outputs = result if isinstance(result, tuple) else (result,)
        if any([y is x for y in outputs for x in tensors]):
            raise RuntimeError(
                f"{self._name}: The output of this custom operator must not also be an input to it"
            )
        return result

    def _function(self, keywords: dict[str, Any]) -> type[Function]:
        """An autograd function over the positional arguments."""
        if self._plain_function is not None and not keywords:
            return self._plain_function

        def forward(ctx: Any, *inputs: Any) -> Any:
            output = self._run(inputs, keywords)
            if self._setup is not None:
                given: dict[str, Any] = {"inputs": inputs, "output": output}
                if keywords:
                    given["keyword_only_inputs"] = keywords
                self._setup(ctx, **given)
            return output

        def backward(ctx: Any, *gradients: Any) -> Any:
            if self._backward is None:
                raise RuntimeError(
                    f"Trying to backward through {self._namespace}.{self._name}.default but no "
                    "autograd formula was registered. Please use register_autograd to add one."
                )
            return self._backward(ctx, *gradients)

        name = f"GeneratedBackwardFor_{self._namespace}_{self._name}_default"
        body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        function = type(name, (Function,), body)
        if not keywords:
            self._plain_function = function
        return function

    def register_kernel(
        self, device_types: str | Sequence[str] | None, fn: Any = None, /
    ) -> Callable[..., Any]:
        """What runs on tensors of these device types (None, "default": all); also a decorator."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            types = None if device_types == "default" else device_types
            for device in (types,) if types is None or isinstance(types, str) else types:
                self._kernels[device] = function
            return function

        return register if fn is None else register(fn)

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """The gradient: ``backward(ctx, *grads)`` gives one for each argument.

        ``setup_context(ctx, inputs, output)`` saves what it needs, as in `autograd.Function`.
        """
        self._backward, self._setup = backward, setup_context

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Keep what PyTorch's compiler would run on shapes alone; it is never called here."""
        self._fake = fn
        return fn


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make a function the operation ``"namespace::name"``; also a decorator.

    Its parameters have annotations unless there is a `schema`: ValueError otherwise. It must not
    return what it was given: RuntimeError when it does.
    """

    def make(function: Callable[..., Any]) -> CustomOpDef:
        signature = inspect.signature(function)
        for parameter in signature.parameters.values() if schema is None else ():
            if parameter.annotation is inspect.Parameter.empty:
                raise ValueError(
                    f"infer_schema(func): Parameter {parameter.name} must have a type annotation. "
                    f"Got func with signature {signature})"
                )
        operation = _defined(name)
        operation._signature = signature
        operation.register_kernel(device_types, function)
        return operation

    return make if fn is None else make(fn)


def _defined(name: str) -> CustomOpDef:
    operation = CustomOpDef(name)
    namespace(operation._namespace)[operation._name] = operation
    return operation


def _found(op: str | CustomOpDef) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    space, _, name = op.partition("::")
    operation = namespaces[space].members.get(name) if space in namespaces else None
    if operation is None:
        raise RuntimeError(f"operator {op} does not exist")
    return operation


def register_kernel(
    op: str | CustomOpDef,
    device_types: str | Sequence[str] | None,
    func: Any = None,
    /,
    *,
    lib: Any = None,
) -> Any:
    """`CustomOpDef.register_kernel` of an operation or of its name."""
    return _found(op).register_kernel(device_types, func)


def register_autograd(
    op: str | CustomOpDef,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Any = None,
) -> None:
    """`CustomOpDef.register_autograd` of an operation or of its name."""
    _found(op).register_autograd(backward, setup_context=setup_context)


def register_fake(
    op: str | CustomOpDef,
    func: Any = None,
    /,
    *,
    lib: Any = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """`CustomOpDef.register_fake` of an operation or of its name; also a decorator."""
    register = _found(op).register_fake
    return register if func is None else register(func)


impl_abstract = register_fake


class Library:
    """A namespace to which operations are added by schema and function.

    `kind` is "DEF" (a new one), "FRAGMENT" or "IMPL"; all add to what is there.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Add ``name(arguments) -> results``; gives the name. RuntimeError the second time."""
        name = schema.partition("(")[0].strip()
        if name in namespace(self.ns):
            raise RuntimeError(
                f"Tried to register an operator ({self.ns}::{schema}) with the same name and "
                "overload name multiple times."
            )
        _defined(f"{self.ns}::{name}")
        return name

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", **_: Any) -> None:
        """Let an operation run `fn` for a dispatch key.

        "CPU", "CUDA" and "CompositeExplicitAutograd" are kernels, "CompositeImplicitAutograd" and
        "Autograd" functions that are recorded; "Meta" is kept. ValueError for others.
        """
        name = op_name if isinstance(op_name, str) else op_name._qualname
        operation = _found(name if "::" in name else f"{self.ns}::{name}")
        key = dispatch_key or self.dispatch_key
        if key in _COMPOSITE:
            operation._composite = fn
        elif key == "Meta":
            operation.register_fake(fn)
        elif key in _DEVICES:
            operation.register_kernel(_DEVICES[key], fn)
        else:
            raise ValueError(f"there is no dispatch key {key!r} here")


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Add the operation ``"namespace::name"`` with a schema ``(arguments) -> results``."""
    space, _, name = qualname.partition("::")
    Library(space, "FRAGMENT").define(name + schema)


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Let an operation run a function on device types ("default": all); also a decorator.

    The older form ``impl(library, name, dispatch_key)`` works as well.
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, function, key or "")
            return function

        return register
    types = None if types == "CompositeExplicitAutograd" else types
    types = types.lower() if isinstance(types, str) else types
    return _found(qualname).register_kernel(types, func)


__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "impl",
    "impl_abstract",
    "register_autograd",
    "register_fake",
    "register_kernel",
]

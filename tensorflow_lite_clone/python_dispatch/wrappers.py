"""Classes of tensors with `__torch_dispatch__`: their instances are arrays of a backend.

An instance's `_storage` is made when it is asked for: its array is a `Handle` of the instance, its
backend a `DispatchBackend`, on which every op hands PyTorch's operations to the class. So
functions, autograd and the graph's saved values work as on any device. What an op returns there
is a Tensor over a handle; public functions, and the engine, give the tensor behind it (`unwrapped`)
its place in the graph and return that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone._bind.overridable import OPERATORS
from tensorflow_lite_clone.autograd.apply import current_edge
from tensorflow_lite_clone.autograd.interpreters import Interpreter, interpreters
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.autograd.namespaces import recorded
from tensorflow_lite_clone.backends.base import Backend
from tensorflow_lite_clone.core import interception, torch_function
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType, get_default_dtype
from tensorflow_lite_clone.core.public import export
from tensorflow_lite_clone.core.shape import contiguous_strides
from tensorflow_lite_clone.core.strides import preserve_format
from tensorflow_lite_clone.dispatch.op import TABLE, is_op
from tensorflow_lite_clone.ops.properties import _attributes, _set_attributes
from tensorflow_lite_clone.python_dispatch.calls import (
    call,
    dispatches,
    gradients,
    overload_of,
    perform,
    steps,
    unwrap,
    watch,
    with_memory,
)
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor, new_tensor

_slot: Any = vars(Tensor)["_storage"]


class Handle:
    """A tensor, or a number, in the place of an array of `DispatchBackend`."""

    __slots__ = ("dtype", "shape", "strides", "tensor")
    __array_ufunc__ = None

    def __init__(self, tensor: Any, shape: tuple, strides: tuple, dtype: Any) -> None:
        self.tensor, self.shape, self.strides, self.dtype = tensor, shape, strides, dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for length in self.shape:
            size *= length
        return size

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    def __getitem__(self, index: Any) -> Handle:
        """Itself, for views are made by ops; IndexError for what is out of bounds."""
        dim = 0
        for item in index if isinstance(index, tuple) else (index,):
            if item is Ellipsis:
                break
            if isinstance(item, int):
                range(self.shape[dim])[item]
            dim += item is not None
        return self


class _Primitives:
    """The primitives of F over handles: those over Tensors."""

    def __init__(self, backend: DispatchBackend) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        backend = self._backend

        def primitive(*values: Any, **parameters: Any) -> Any:
            found = partial(call, name) if name in _LIKE else getattr(recorded(backend), name)
            tensors = _tensors(values)
            if parameters.get("dtype") in backend.dtypes:
                parameters["dtype"] = backend.dtypes[parameters["dtype"]]
            return backend.handle(found(*tensors, **parameters))

        return primitive


def _tensors(values: Any) -> list[Any]:
    """Values, and those in lists and tuples, with tensors or numbers in place of handles."""
    return [
        v.tensor if isinstance(v, Handle) else _tensors(v) if isinstance(v, list | tuple) else v
        for v in values
    ]


class DispatchBackend(Backend):
    """What runs ops on tensors of classes with `__torch_dispatch__`, by calling that."""

    name = "dispatch"
    dispatches = True
    array_type = Handle

    def __init__(self, device: Device) -> None:
        host = backends.load("cpu")
        self.device, self.dtypes, self.native = device, host.dtypes, host.native
        self.generator = host.generator
        self.primitives = self.xp = _Primitives(self)
        super().__init__()

    def handle(self, value: Any) -> Any:
        """Handles of tensors, and of those in lists and tuples."""
        if isinstance(value, list | tuple):
            return tuple([self.handle(item) for item in value])
        if not isinstance(value, Tensor):
            return value
        value = unwrapped(value)
        native = self.native[value.dtype]
        return Handle(value, tuple(value.shape), tuple(value.stride()), native)

    def fused(self, name: str, body: Any, generic: Any, kept: tuple[int, ...] = ()) -> Any:
        return partial(self._perform, TABLE[name]) if is_op(TABLE[name]) else generic

    def _perform(self, op: Any, *handles: Any, **parameters: Any) -> Any:
        numbers = [x.tensor if isinstance(x, Handle) else x for x in handles]
        tensors = [
            x if x is None or isinstance(x, Tensor) else self._tensor(x, handle.dtype)
            for x, handle in zip(numbers, handles, strict=True)
        ]
        numbers = numbers if len(numbers) == 2 else tensors
        return self.handle(perform(op, tensors, parameters, numbers))

    def _tensor(self, number: Any, native_dtype: Any) -> Tensor:
        host = backends.load(self.device)
        return new_tensor(Storage(host.constant(number, native_dtype), host))

    def asarray(self, data: Any, dtype: DType | None = None) -> Any:
        if isinstance(data, Handle):
            return data if dtype is None else self.F.astype(data, dtype)
        host = backends.load(self.device)
        return self.handle(new_tensor(Storage(host.asarray(data, dtype), host)))

    def constant(self, value: complex, native_dtype: Any) -> Any:
        return Handle(value, (), (), native_dtype)

    def write(self, target: Handle, value: Any) -> None:
        value = value.tensor if isinstance(value, Handle) else value
        call("copy_" if isinstance(value, Tensor) else "fill_.Scalar", target.tensor, value)

    def writer(self, op: Any) -> Any:
        return None

    def to_host(self, array: Any, non_blocking: bool = False) -> Any:
        number = array.tensor
        if isinstance(number, Tensor):
            kept = _slot.__get__(number)
            if not kept.backend.dispatches:
                return kept.backend.to_host(kept.array)
        if isinstance(number, Tensor) and not array.ndim:
            number = call("_local_scalar_dense", number)
        if not isinstance(number, Tensor):
            return backends.load("cpu").asarray(number)
        raise RuntimeError(
            f"Cannot access the data of a {type(array.tensor).__name__}, whose class has "
            "__torch_dispatch__: it has none of its own"
        )

    def strides(self, array: Handle) -> tuple[int, ...]:
        return array.strides

    def is_contiguous(self, array: Handle) -> bool:
        return not array.size or array.strides == contiguous_strides(array.shape)

    def owns_memory(self, array: Any) -> bool:
        return False

    def make_generator(self) -> Any:
        return backends.load(self.device).make_generator()


_backends: dict[Device, DispatchBackend] = {}


def _backend(device: Device) -> DispatchBackend:
    if device not in _backends:
        _backends[device] = DispatchBackend(device)
    return _backends[device]


# -- instances -------------------------------------------------------------------------------------


def _make_wrapper_subclass(
    cls: type,
    size: Any,
    strides: Any = None,
    storage_offset: int | None = None,
    memory_format: Any = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **others: Any,
) -> Any:
    """An instance of `cls` that has a shape, a dtype and a device, but no memory of its own.

    All that is done to it goes to the class's `__torch_dispatch__`. TypeError without one.
    """
    if not dispatches(cls):
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    expect(cls)
    shape = tuple(size)
    backend = _backend(Device("cpu" if device is None else device))
    strides = contiguous_strides(shape) if strides is None else tuple(strides)
    native = backend.native[dtype or get_default_dtype()]
    tensor: Any = object.__new__(cls)
    _slot.__set__(tensor, Storage(Handle(None, shape, strides, native), backend))
    tensor._edge = tensor._view = None
    if requires_grad:
        tensor.requires_grad_()
    return tensor


export(staticmethod(_make_wrapper_subclass), "method", name="_make_wrapper_subclass")


def _storage_of(tensor: Any) -> Storage:
    """The storage of an instance: a handle of it, beside the memory's version, which it keeps."""
    kept: Storage = _slot.__get__(tensor)
    array = kept.array
    if kept.backend.dispatches:
        handle = Handle(tensor, array.shape, array.strides, array.dtype)
        return Storage(handle, kept.backend, kept)
    backend = _backend(kept.backend.device)  # `_make_subclass`: it has memory as well
    native = backend.native[kept.backend.dtypes[array.dtype]]
    return Storage(Handle(tensor, array.shape, kept.backend.strides(array), native), backend, kept)


def _set_storage(tensor: Any, storage: Storage) -> None:
    """Take another instance's place, or memory: ``tensor.data = other``."""
    other = storage.array.tensor if storage.backend.dispatches else None
    if other is None:
        _slot.__set__(tensor, storage)
    else:
        _slot.__set__(tensor, _slot.__get__(other))
        vars(tensor).update(vars(other))


def _parameter(data: Any, requires_grad: bool) -> Any:
    """A parameter of the class of `data`; RuntimeError if `detach` gives another class."""
    parameter = data.detach()
    if type(parameter) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that "
            "detach() returns an instance of the same type, but return type "
            f"{type(parameter).__name__} was found instead. To use the type as a Parameter, please "
            "correct the detach() semantics defined by its __torch_dispatch__() implementation."
        )
    parameter.requires_grad_(requires_grad)
    parameter._is_param = True
    return parameter


def expect(cls: Any) -> None:
    """Let functions, ops and backward passes look out for instances of a class that dispatches."""
    if not dispatches(cls) or isinstance(vars(cls).get("_storage"), property):
        return
    own = [vars(kind) for kind in cls.__mro__[: -len(Tensor.__mro__)]]
    if not any(["__torch_function__" in names for names in own]):
        cls.__torch_function__ = torch_function.disabled  # as PyTorch does
    cls._storage = property(_storage_of, _set_storage)
    cls._as_parameter = staticmethod(_parameter)
    if not interpreters.dispatch.lowers:
        type(mode).dispatching = 1
        interpreters.dispatch.lowers = True
        watch()
        interception.around_intercepted.append(_run)
        interception.intercept()


interception.on_new_class.append(expect)


# -- functions -------------------------------------------------------------------------------------

#: Methods that end in an underscore and do not write elements.
_NO_WRITES = frozenset("requires_grad_ retain_grad_ share_memory_ detach_ rename_ set_".split())
#: Functions that make tensors like another one, which are no ops here.
_LIKE = frozenset(
    """
    empty_like full_like ones_like rand_like randint_like randn_like zeros_like new_empty
    new_empty_strided new_full new_ones new_zeros
    """.split()
)


def _run(function: Callable[..., Any], name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What a public function gives, of which an argument may be an instance."""
    space, _, name = name.rpartition(".")
    name = OPERATORS.get(name, name)
    if args and dispatches(type(args[0])):
        if name in _LIKE:
            return call(name, *args, **kwargs)
        if name == "detach":
            return call("detach", *args)
        if name == "as_subclass" and not dispatches(args[1]):
            return with_memory(args[0]).as_subclass(args[1])
        if name == "__deepcopy__":
            return _deep_copy(*args)
        if name == "__reduce_ex__":
            return _reduced(*args)
    writes = name.endswith("_") and not name.endswith("__") and name not in _NO_WRITES
    if writes and space != "torch.nn.init" and any([dispatches(type(x)) for x in args]):
        return _write(name, args, kwargs)
    return unwrap(function(*args, **kwargs))


def _write(name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """An in-place function of an instance, outside of any graph."""
    target = args[0]
    if mode.grad and any([isinstance(x, Tensor) and x.requires_grad for x in args]):
        if target.requires_grad and target.is_leaf:
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
        raise NotImplementedError(
            f"{name} of a {type(target).__name__} is not recorded here: use the function that is "
            "not in place, or no_grad()"
        )
    call(f"{name}.{overload_of(name[:-1], args)}", *args, **kwargs)
    target._storage.bump()
    return target


def _deep_copy(tensor: Any, memo: dict[int, Any]) -> Any:
    if id(tensor) not in memo:
        twin = call("clone", tensor)
        if getattr(tensor, "_is_param", False):
            twin = _parameter(twin, tensor.requires_grad)
        elif tensor.requires_grad:
            twin.requires_grad_()
        memo[id(tensor)] = twin
    return memo[id(tensor)]


def _reduced(tensor: Any, protocol: Any) -> tuple:
    """What pickle calls to make an instance again, with the attributes that it has."""
    storage, attributes = _slot.__get__(tensor), _attributes(tensor)
    if storage.backend.dispatches:
        form = tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device
        return _rebuild, (type(tensor), *form, tensor.requires_grad, attributes)
    rebuild, arguments = with_memory(tensor).__reduce_ex__(protocol)
    return rebuild, (type(tensor), *arguments[1:-2], tensor.requires_grad, attributes)


def _rebuild(
    cls: type,
    size: tuple,
    strides: tuple,
    dtype: DType,
    device: Device,
    requires_grad: bool,
    attributes: dict,
) -> Any:
    options: dict[str, Any] = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    tensor = _make_wrapper_subclass(cls, size, strides, **options)
    _set_attributes(tensor, attributes)
    return tensor


def unwrapped(tensor: Any) -> Any:
    """The tensor behind a handle, at the place in the graph of the Tensor over it; others as is."""
    if type(tensor) is not Tensor or not tensor._storage.backend.dispatches:
        return tensor
    inner = tensor._storage.array.tensor
    if isinstance(inner, Tensor) and inner._edge is not tensor._edge:
        if inner._edge is not None:  # an argument that was returned
            inner = _alias(inner)
        inner._edge = tensor._edge
    return inner


def _alias(tensor: Any) -> Any:
    """Another object that is the same tensor, for another place in the graph."""
    alias: Any = object.__new__(type(tensor))
    _slot.__set__(alias, _slot.__get__(tensor))
    alias._edge = alias._view = None
    _set_attributes(alias, {**vars(tensor), **_attributes(tensor)})
    return alias


class _Dispatch(Interpreter):
    """What becomes of tensors where modes and classes see operations."""

    def lift(self, inputs: tuple) -> tuple | None:
        found = [x._storage.backend for x in inputs if x is not None]
        backend = next((backend for backend in found if backend.dispatches), None)
        if backend is None:
            return None
        lifted = []
        for x in inputs:
            if x is not None and x._storage.backend is not backend:
                twin = new_tensor(
                    Storage(backend.handle(x), backend, x._storage.root or x._storage)
                )
                twin._edge = current_edge(x)
                x = twin
            lifted.append(x)
        return tuple(lifted)

    def lower(self, tensor: Any) -> Any:
        return unwrapped(tensor)

    def root_gradient(self, output: Tensor) -> Any:
        return call("ones_like", output, pin_memory=False, memory_format=preserve_format)

    def gradient(self, node: Any, grads: list, needed: Any) -> Any:
        rule = gradients.get(node.op.name)
        return NotImplemented if rule is None else rule(node, grads, needed)

    def update(self, step: Any, lists: tuple, numbers: dict[str, Any]) -> Any:
        in_place = steps.get(step.__name__)
        if in_place is None or numbers.get("found_inf") is not None:
            return NotImplemented
        in_place(*lists, **{name: numbers[name] for name in numbers if name != "found_inf"})
        return None


interpreters.dispatch = _Dispatch()

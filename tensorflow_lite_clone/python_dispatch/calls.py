"""From an op over arrays to calls of `__torch_dispatch__` with PyTorch's operations, and back.

While a mode is active, every op is looked up with `_interposed` around it (see `dispatch.hooks`):
its arrays become Tensors, a form (see `forms`) says which operations of ``torch.ops.aten`` it
stands for, and each of these is handed to the innermost mode, which is off meanwhile. So modes cost
nothing while there are none, and autograd, which is above ops, does not know of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.apply import apply, wrap_freely
from tensorflow_lite_clone.autograd.interpreters import interpreters
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.op import TABLE, is_op
from tensorflow_lite_clone.ops.namespaces import (
    Namespace,
    OpOverload,
    OpOverloadPacket,
    aten,
    register,
)
from tensorflow_lite_clone.python_dispatch import identity
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor, new_tensor
from tensorflow_lite_clone.trace import Observer

#: Op -> what it is in terms of `aten`, ``form(*tensors, **parameters)``; see `forms`.
forms: dict[str, Callable[..., Any]] = {}
#: Ops whose names are those of other functions.
unlike = frozenset(["eig", "prelu", "solve"])
#: The overloads of aten's that are not called "default": beside a tensor, and beside a number.
overloads: dict[str, tuple[str, str]] = {}
#: Op -> ``gradient(node, grads, needed)``, where aten has one operation for the formula; it may
#: decline.
gradients: dict[str, Callable[[Any, list, Any], Any]] = {}
#: Optimizer's step -> the same in place, one parameter after the other.
steps: dict[str, Callable[..., None]] = {}


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """What the operation ``aten.NAME`` gives ("add.Tensor"; without a dot its default overload)."""
    packet, _, overload = name.partition(".")
    return dispatch(getattr(getattr(aten, packet), overload or "default"), args, kwargs)


def dispatch(func: OpOverload, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Hand an operation to the innermost mode, else to the classes of its arguments, else run it.

    TypeError where all of them return NotImplemented.
    """
    if interpreters.dispatch.lowers:
        args = unwrap(args)
        kwargs = {name: unwrap(value) for name, value in kwargs.items()}
    types = _classes((*args, *kwargs.values()))
    if types and _undispatched.depth:
        return disabled(func, types, args, kwargs)
    modes, recording = mode.dispatch_modes, mode.grad
    mode.grad = False
    try:
        if modes:
            innermost = modes.pop()
            try:
                result = innermost.__torch_dispatch__(func, types, args, kwargs)
            finally:
                modes.append(innermost)
            if result is not NotImplemented:
                return result
        elif not types:
            return func(*args, **kwargs)
        cls: Any
        for cls in types:
            result = cls.__torch_dispatch__(func, types, args, kwargs)
            if result is not NotImplemented:
                return result
    finally:
        mode.grad = recording
    raise TypeError(
        f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned "
        f"NotImplemented: {[*modes[-1:], *types]}"
    )


def unwrap(value: Any) -> Any:
    """A value in which tensors of classes with `__torch_dispatch__` replace those over handles."""
    if not interpreters.dispatch.lowers:
        return value
    if not isinstance(value, list | tuple):
        return interpreters.dispatch.lower(value)
    items = [unwrap(item) for item in value]
    if all([new is old for new, old in zip(items, value, strict=True)]):
        return value
    kind: Any = type(value)
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def _classes(values: Any) -> tuple[type, ...]:
    """The classes with `__torch_dispatch__` among values and lists of them, subclasses first."""
    found: list[type] = []
    for value in values:
        nested = _classes(value) if isinstance(value, list | tuple) else (type(value),)
        for kind in nested:
            if dispatches(kind) and kind not in found:
                bases = [place for place, seen in enumerate(found) if issubclass(kind, seen)]
                found.insert(bases[0] if bases else len(found), kind)
    return tuple(found)


class _Disabled:
    """The type of `disabled`: an object, for a function on a class would become a method."""

    def __call__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = {name: with_memory(value) for name, value in (kwargs or {}).items()}
        return func(*with_memory(args), **named)

    def __repr__(self) -> str:
        return "<function _disabled_torch_dispatch_impl>"


#: The ``__torch_dispatch__`` of `Tensor`, which a class may call for instances that have memory.
disabled = _Disabled()
Tensor.__torch_dispatch__ = disabled  # type: ignore[attr-defined]
_slot: Any = vars(Tensor)["_storage"]


def dispatches(kind: type) -> bool:
    """Whether a class says itself what operations on its instances do."""
    return getattr(kind, "__torch_dispatch__", disabled) is not disabled


def with_memory(value: Any) -> Any:
    """A value with plain tensors in place of instances of classes, over the memory of these."""
    if type(value) in (list, tuple):
        return type(value)([with_memory(item) for item in value])
    if not dispatches(type(value)):
        return value
    storage: Storage = _slot.__get__(value)
    if storage.backend.dispatches:
        raise RuntimeError(
            f"a {type(value).__name__} has no memory of its own, as it was made by "
            "_make_wrapper_subclass: its __torch_dispatch__ must unwrap it"
        )
    return new_tensor(storage)


def operation(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter ``aten.NAME``, which has no public function here: the decorated one runs it."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        packet_name, _, overload = name.partition(".")

        def run(*args: Any, **kwargs: Any) -> Any:
            if mode.dispatch_modes or _classes((*args, *kwargs.values())):
                return dispatch(func, args, kwargs)
            return function(*args, **kwargs)

        packet = aten.members.setdefault(packet_name, OpOverloadPacket(f"aten::{packet_name}", run))
        func = packet.overload(overload or "default", run)
        return function

    return register


def perform(op: Any, tensors: list[Any], parameters: dict[str, Any], numbers: list[Any]) -> Any:
    """What an op gives of Tensors, by the operations that it stands for.

    `numbers` are the tensors with Python's numbers in place of constants, for operations that take
    them.
    """
    form = forms.get(op.name)
    if op.name not in overloads:
        numbers = tensors
    if form is not None:
        return form(*numbers, **parameters)
    if parameters or op.name in unlike or not hasattr(aten, op.name):
        return dispatch(_own(op), tuple(tensors), parameters)
    return call(f"{op.name}.{overload_of(op.name, numbers)}", *numbers)


def overload_of(name: str, operands: Sequence[Any]) -> str:
    """Which overload of an operation takes these operands."""
    by_tensor, by_number = overloads.get(name, ("default", "default"))
    return by_tensor if isinstance(operands[-1], Tensor) else by_number


def own(op: Any, *tensors: Any, **parameters: Any) -> Any:
    """What an op gives, which shows as ``tlc.NAME``, with its own parameters."""
    return dispatch(_own(op), tensors, parameters)


@cache
def _own(op: Any) -> OpOverload:
    """The operation ``tlc.NAME`` of an op that has no form, under its own parameters."""
    return OpOverloadPacket(f"tlc::{op.name}", partial(apply, op)).default


@cache
def _own_write(op: Any) -> OpOverload:
    """The operation ``tlc.NAME_``, which writes what an op gives into its first argument."""

    def write(target: Tensor, *others: Any, **parameters: Any) -> Tensor:
        backend = target._storage.backend
        tensors = [
            wrap_freely(backend.asarray(x, target.dtype), backend)
            if isinstance(x, int | float | complex)
            else x
            for x in others
        ]
        target.copy_(apply(op, target, *tensors, **parameters))
        return target

    return OpOverloadPacket(f"tlc::{op.name}_", write).default


class _Own(Namespace):
    """``torch.ops.tlc``: ops that have no form, under their own parameters, and their writes."""

    def __getattr__(self, name: str) -> Any:
        for found, make in ((name, _own), (name.removesuffix("_"), _own_write)):
            op: Any = TABLE[found] if is_op(TABLE.get(found)) else None
            if op is not None:
                return make(op).overloadpacket
        return super().__getattr__(name)


register(_Own("tlc"))


def raised(array: Any, backend: Any) -> Any:
    """The Tensor over an array, the program's own if it has one; what is no array as it is.

    A device may have numbers of NumPy's for constants.
    """
    if not hasattr(array, "dtype"):
        return array
    tensor = identity.tensor_of(array)
    return wrap_freely(array, backend) if tensor is None else tensor


def numbered(tensors: list[Any], arrays: tuple) -> list[Any]:
    """Tensors of two operands, but numbers for those over constants, which are not writeable.

    Whole ones are ints, for ``x + 1`` is more common than ``x + 1.0``.
    """
    if len(arrays) != 2:
        return tensors
    values = list(tensors)
    for place, array in enumerate(arrays):
        if array is not None and not array.ndim and not _is_writeable(array):
            number = array.item()
            if isinstance(number, float):
                whole = number.is_integer()
                number = int(number) if whole else float(str(array))  # as many digits as it has
            values[place] = number
    return tensors if not any([isinstance(value, Tensor) for value in values]) else values


def _is_writeable(array: Any) -> bool:
    return bool(getattr(getattr(array, "flags", None), "writeable", True))


def lowered(value: Any, backend: Any) -> Any:
    """The arrays of what a handler returned; TypeError for anything but Tensors of the device."""
    if isinstance(value, list | tuple):
        return tuple([lowered(item, backend) for item in value])
    if value is None:
        return None
    if not isinstance(value, Tensor):
        raise TypeError(f"__torch_dispatch__ returned {type(value).__name__}, expected a Tensor")
    storage = value._storage
    if storage.backend is not backend:
        raise TypeError(
            "__torch_dispatch__ of a mode returned a tensor of another kind or device "
            f"({type(value).__name__} on {value.device}) for tensors on {backend.device}: "
            "here a mode gives what an operation gives without it"
        )
    array = storage.array
    identity.note_result(array, value)
    return array


def _interposed(op: Any, backend: Any, run: Callable[..., Any]) -> Callable[..., Any]:
    if backend.dispatches:  # it asks modes itself
        return run

    def interposed(*arrays: Any, **parameters: Any) -> Any:
        if not mode.dispatch_modes:
            return run(*arrays, **parameters)
        if backend.batched:
            raise NotImplementedError(
                f"'{op.name}' under torch.func.vmap: a TorchDispatchMode does not see the samples "
                "of mapped functions here; map outside of the mode, or call the function per sample"
            )
        tensors = [raised(array, backend) for array in arrays]
        result = perform(op, tensors, parameters, numbered(tensors, arrays))
        identity.forget_results()
        return lowered(result, backend)

    return interposed


#: Writes whose operations are called otherwise than the op with an underscore.
_WRITES = {"copy_into": "copy_", "fill": "fill_.Scalar", "zero": "zero_"}


def _writing(op: Any, write: Callable[[], Any], arrays: tuple, parameters: dict) -> None:
    if not mode.dispatch_modes:
        write()
        return
    backend = next(b for b in backends.loaded() if arrays[0].__class__ is b.array_type)
    tensors = numbered([raised(array, backend) for array in arrays], arrays)
    if op is None:
        call("copy_" if isinstance(tensors[1], Tensor) else "fill_.Scalar", *tensors)
    elif op.name in _WRITES:
        call(_WRITES[op.name], *tensors, *parameters.values())
    elif not parameters and hasattr(aten, f"{op.name}_"):
        call(f"{op.name}_.{overload_of(op.name, tensors)}", *tensors)
    else:
        dispatch(_own_write(op), tuple(tensors), parameters)


class _Interposer(Observer):
    around_op = staticmethod(_interposed)
    around_write = staticmethod(_writing)


_interposer = _Interposer()
_entered: list[None] = []  # one for each mode of all threads
_reasons: list[None] = []  # why ops are looked up through `_interposed`: these, and classes


def watch() -> None:
    """Look ops up through `_interposed`, until `unwatch` was called as often."""
    aten.load()
    with hooks.changing:
        if not _reasons:
            _interposer.__enter__()
        _reasons.append(None)


def unwatch() -> None:
    """Take one `watch` back."""
    with hooks.changing:
        _reasons.pop()
        if not _reasons:
            _interposer.__exit__()


def enter(entered: Any) -> None:
    """Make a mode the innermost of this thread."""
    with hooks.changing:
        watch()
        if not _entered:
            identity.watch()
        _entered.append(None)
    mode.dispatch_modes.append(entered)
    mode.dispatching = vars(mode).get("dispatching", 0) + 1


def leave() -> None:
    """Take the innermost mode of this thread away."""
    mode.dispatch_modes.pop()
    mode.dispatching -= 1
    if not mode.dispatching:
        del mode.dispatching  # what holds for all threads counts again
    with hooks.changing:
        unwatch()
        _entered.pop()
        if not _entered:
            identity.unwatch()


class _Undispatched(threading.local):
    depth = 0  # blocks of `no_dispatch` that this thread is in


_undispatched = _Undispatched()


@contextmanager
def no_dispatch() -> Iterator[None]:
    """Ask neither this thread's modes nor classes, whose instances must have memory, in a block."""
    _undispatched.depth += 1
    try:
        with without_modes():
            yield
    finally:
        _undispatched.depth -= 1


@contextmanager
def without_modes() -> Iterator[list[Any]]:
    """Switch this thread's modes off for a block, which is given them, the innermost first."""
    modes, mode.dispatch_modes = mode.dispatch_modes, []
    try:
        yield modes[::-1]
    finally:
        mode.dispatch_modes = modes

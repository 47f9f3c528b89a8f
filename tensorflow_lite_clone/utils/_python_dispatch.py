"""Modes that see every operation, as ``torch.utils._python_dispatch``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self

from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.python_dispatch import calls

__all__ = ["TorchDispatchMode"]


class TorchDispatchMode:
    """A mode under which every operation below autograd goes to the mode's `__torch_dispatch__`.

    It is called as ``__torch_dispatch__(func, types, args, kwargs)``, where `func` is an operation
    such as ``torch.ops.aten.mm.default``, and what it returns is the operation's result. The mode
    is off inside, so that ``func(*args, **kwargs)`` goes to the next mode, or runs. Modes nest; one
    may be entered again. What creates tensors from nothing, and optimizers' steps, are not seen::

        class Names(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                print(func)
                return func(*args, **kwargs or {})

        with Names():
            torch.ones(2).exp()  # prints aten.exp.default
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            raise NotImplementedError("modes of a dispatch key of their own are PyTorch's alone")

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Self:
        calls.enter(self)
        return self

    def __exit__(self, *exception: object) -> None:
        calls.leave()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """An older way to write ``cls(...)`` in a with statement."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether it is a part of PyTorch's own tracing: it is not."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that runs every operation as it is."""

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **kwargs or {})


def _get_current_dispatch_mode() -> Any:
    """The innermost mode of this thread, or None."""
    return mode.dispatch_modes[-1] if mode.dispatch_modes else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    """The modes of this thread, the innermost last."""
    return list(mode.dispatch_modes)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether this thread has entered a mode."""
    return bool(mode.dispatch_modes)


def _disable_current_modes() -> AbstractContextManager[list[Any]]:
    """A block without this thread's modes, which it is given."""
    return calls.without_modes()


@contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[TorchDispatchMode]:
    """A block without the innermost mode of this thread, which it is given."""
    innermost = mode.dispatch_modes.pop()
    try:
        yield innermost
    finally:
        mode.dispatch_modes.append(innermost)


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor's class says what it is made of, by the methods of this name in PyTorch."""
    return is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """`is_traceable_wrapper_subclass` of a class."""
    return all([hasattr(t, name) for name in ("__tensor_flatten__", "__tensor_unflatten__")])


def transform_subclass(
    t: Any,
    callback: Callable[[str, Any], Any],
    outer_size: Any = None,
    outer_stride: Any = None,
) -> Any:
    """A tensor like `t`, whose parts are ``callback(name, part)`` of its own."""
    names, context = t.__tensor_flatten__()
    parts = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(parts, context, size, stride)


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """`out`, or, where the operation `func` writes into an argument, that argument.

    What a wrapper class does at the end of its `__torch_dispatch__`.
    """
    if func._schema.is_mutable and args and not func._opname.startswith("_foreach"):
        return args[0]
    return out

"""``__torch_function__``: types and modes that say what functions do, as ``torch.overrides``.

A class that has ``__torch_function__`` is asked whenever one of its instances is an argument of a
public function. Subclasses of `Tensor` inherit one that keeps the subclass:

>>> class Marked(torch.Tensor):
...     pass
>>> type(torch.ones(2).as_subclass(Marked) + 1).__name__
'Marked'

A `TorchFunctionMode` is asked for all calls in its block. How calls get here, and why that costs
nothing before there is such a class or mode, stands in `core.interception`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from importlib import import_module
from types import ModuleType
from typing import Any, Self

from tensorflow_lite_clone._bind.overridable import NEVER, NEVER_METHODS, PLACES
from tensorflow_lite_clone.core import interception
from tensorflow_lite_clone.core.interception import interceptors
from tensorflow_lite_clone.core.torch_function import (
    ALL_DISABLED,
    ENABLED,
    active_modes,
    disabling,
    dispatch,
    overloaded,
    overrides,
    state,
    unconverted,
)
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


# ------------------------------------------------------------------ for functions of a program


def is_tensor_like(inp: Any) -> bool:
    """Whether a value is a Tensor or of a class that has ``__torch_function__``."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a function shall call `handle_torch_function`: for a value, or because of a mode."""
    if state.disabled < ALL_DISABLED and state.modes:
        return True
    return state.disabled == ENABLED and any([overrides(type(value)) for value in relevant_args])


def has_torch_function_unary(relevant_arg: Any) -> bool:
    """`has_torch_function` of one value."""
    return has_torch_function((relevant_arg,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """`has_torch_function` of these values."""
    return has_torch_function(relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the innermost mode makes of ``public_api(*args, **kwargs)``, or one of the values.

    Of `relevant_args` one of each type is asked, subclasses first, until one does not return
    NotImplemented. TypeError when all do.
    """
    values = overloaded(relevant_args) if state.disabled == ENABLED else []
    name = f"{public_api.__module__}.{public_api.__name__}"
    return dispatch(public_api, name, values, args, kwargs, in_python=True)


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: a function that hands over to the overloads of ``dispatcher(*args)``."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


# ------------------------------------------------------------------------------------- modes


class TorchFunctionMode:
    """A block in which each call of a public function, of whatever arguments, comes here first.

    A program derives from it and defines ``__torch_function__(self, func, types, args, kwargs)``;
    while that runs the mode is off, and the one around it on. Modes are of the thread that entered
    them.

    >>> class Names(torch.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(torch.overrides.resolve_name(func))
    ...         return func(*args, **(kwargs or {}))
    >>> with Names():
    ...     x = torch.ones(2) + 1
    torch.ones
    torch.add
    """

    def __init__(self) -> None:
        pass

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define __torch_function__")

    def __enter__(self) -> Self:
        active_modes.append(None)
        interception.intercept()
        state.modes.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        state.modes.pop()
        interception.release()
        active_modes.pop()


class BaseTorchFunctionMode(TorchFunctionMode):
    """The mode that lets functions do what they do."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def enable_reentrant_dispatch() -> AbstractContextManager[None]:
    """A block in which ``__torch_function__`` is asked as outside of all calls."""
    return disabling(ENABLED, anew=True)


# ------------------------------------------------------------------- what can be overridden


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Functions whose results ``Tensor.__torch_function__`` gives as they are."""
    return set(unconverted)


@functools.cache
def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Where functions are -> those there for which modes and types are asked."""
    known = {id(interceptor.function) for interceptor in interceptors()}
    spaces: list[Any] = [*[_module(called) for called in PLACES.values()], Tensor]
    found: dict[Any, list[Callable[..., Any]]] = {}
    for space in spaces:
        for name, value in vars(space).items():
            if name in NEVER_METHODS if space is Tensor else name in NEVER:
                continue
            if isinstance(value, property) and id(value.fget) in known:
                found[value] = [value.__get__]
            elif id(value) in known:
                found.setdefault(space, []).append(value)
    return found


def _module(called: str) -> ModuleType:
    return import_module(called.replace("torch", __package__, 1))


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions and methods that ask nobody."""
    functions = [vars(_module("torch")).get(name) for name in NEVER]
    methods = [getattr(Tensor, name, None) for name in NEVER_METHODS]
    return {function for function in functions + methods if function is not None}


@functools.cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Of each overridable function one with its signature, which returns -1."""
    return {
        function: _dummy(function)
        for functions in get_overridable_functions().values()
        for function in functions
    }


def _dummy(function: Any) -> Callable[..., Any]:
    def dummy(*args: Any, **kwargs: Any) -> int:
        return -1

    if inspect.isfunction(function):
        dummy.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return dummy


@functools.cache
def _names() -> dict[Callable[..., Any], str]:
    names: dict[Callable[..., Any], str] = {}
    for interceptor in interceptors():
        names.setdefault(interceptor.function, interceptor.name)
    for name, member in vars(Tensor).items():
        if isinstance(member, property):
            names[member.__get__] = f"torch.Tensor.{name}.__get__"
    return names


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The name of an overridable function, such as 'torch.add', or None."""
    return _names().get(f)


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is a method of `Tensor`, or the getter of one of its properties."""
    name = getattr(func, "__name__", "")
    return name == "__get__" or vars(Tensor).get(name) is func

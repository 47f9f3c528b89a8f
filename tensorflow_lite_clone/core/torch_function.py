"""Who is asked before a public function runs: modes, and arguments with ``__torch_function__``.

`core.interception` brings calls here; this module says who is asked, in which order.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from tensorflow_lite_clone.core.errors import level_outside

_F = TypeVar("_F", bound=Callable[..., Any])


class _Disabled:
    """The type of `disabled`: an object, for a function on a class would become a method.

    A subclass that overrides functions and calls this as its parent's is not asked again.
    """

    def __call__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        with disabling(SUBCLASSES_DISABLED):
            return func(*args, **(kwargs or {}))

    def __repr__(self) -> str:
        return "<function _disabled_torch_function_impl>"

    def __reduce__(self) -> str:
        return "disabled"


#: The ``__torch_function__`` of classes whose instances are treated as plain tensors.
disabled = _Disabled()

#: Types that override nothing: Python's own, `Tensor` and those that the package makes most of.
plain_types: set[type] = {int, float, bool, complex, str, bytes, type(None), type(...), slice}

#: Functions whose results ``Tensor.__torch_function__`` gives as they are.
unconverted: set[Any] = set()

#: Not empty while a mode is on in some thread: the thread's own modes are looked at only then.
active_modes: list[Any] = []

#: Not empty while public functions look for overrides at all, see `core.interception`.
intercepting: list[None] = []

#: What is disabled: nothing, ``__torch_function__`` of arguments, that of modes too.
ENABLED, SUBCLASSES_DISABLED, ALL_DISABLED = range(3)


class _State(threading.local):
    """The modes of this thread, and what is disabled in it."""

    def __init__(self) -> None:  # called once per thread
        self.modes: list[Any] = []
        self.disabled = ENABLED


state = _State()


class disabling:  # noqa: N801  a block, such as contextlib's
    """A block in which `what` is disabled, and what is outside of it but with `anew`."""

    __slots__ = ("_anew", "_before", "_what")

    def __init__(self, what: int, anew: bool = False) -> None:
        self._what, self._anew = what, anew

    def __enter__(self) -> None:
        self._before = state.disabled
        state.disabled = self._what if self._anew else max(self._before, self._what)

    def __exit__(self, *error: object) -> None:
        state.disabled = self._before


def without_overrides(function: _F) -> _F:
    """Decorator: all overrides are disabled while the function runs."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not intercepting:
            return function(*args, **kwargs)
        with disabling(ALL_DISABLED):
            return function(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


def overrides(kind: type) -> bool:
    """Whether instances of a type are asked."""
    return kind not in plain_types and (
        getattr(kind, "__torch_function__", disabled) is not disabled
    )


def overloaded(values: Iterable[Any]) -> list[Any]:
    """The first value of each type that overrides: subclasses first, then from left to right."""
    found: list[Any] = []
    kinds: list[type] = []
    for value in values:
        kind = type(value)
        if kind in kinds or not overrides(kind):
            continue
        place = next((i for i, other in enumerate(kinds) if issubclass(kind, other)), len(kinds))
        found.insert(place, value)
        kinds.insert(place, kind)
    return found


def overloaded_arguments(args: tuple, kwargs: dict[str, Any]) -> list[Any]:
    """`overloaded`, of the arguments of a call and what lists and tuples among them hold."""
    if plain_types.issuperset([*map(type, args), *map(type, kwargs.values())]):
        return []
    values: list[Any] = []
    for value in (*args, *kwargs.values()):
        if isinstance(value, (list, tuple)) and not overrides(type(value)):
            if not plain_types.issuperset(map(type, value)):
                values += value
        else:
            values.append(value)
    return overloaded(values)


def dispatch(
    function: Any,
    name: str,
    values: list[Any],
    args: tuple,
    kwargs: dict[str, Any],
    in_python: bool = False,
) -> Any:
    """What the innermost mode, or else the first of the overloaded `values`, makes of a call.

    TypeError if all of them return NotImplemented; PyTorch has another text for functions that it
    has written `in_python`.
    """
    types = tuple([type(value) for value in values])
    modes = state.modes if state.disabled < ALL_DISABLED else []
    if modes:
        mode = modes.pop()
        try:
            result = mode.__torch_function__(function, types, args, kwargs)
        finally:
            modes.append(mode)
        if result is not NotImplemented:
            return result
    for value in values:
        method = value.__torch_function__
        if getattr(method, "__self__", None) is value:
            warnings.warn(
                "Defining your `__torch_function__` as a plain method is deprecated and will be "
                "an error in future, please define it as a classmethod.",
                DeprecationWarning,
                stacklevel=level_outside(),
            )
        result = method(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    _refuse(name, types, modes, in_python)


def asked_first(
    function: Any, name: str, run: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
) -> Any:
    """What modes and arguments make of a call of `function`, or else what `run` does."""
    values = overloaded_arguments(args, kwargs) if state.disabled == ENABLED else []
    if values or (state.modes and state.disabled < ALL_DISABLED):
        return dispatch(function, name, values, args, kwargs)
    return run(*args, **kwargs)


def _refuse(name: str, types: tuple, modes: list[Any], in_python: bool) -> NoReturn:
    if in_python:
        message = (
            f"no implementation found for '{name}' on types that implement "
            f"__torch_function__: {list(types)}"
        )
        if modes:
            message += f" nor in mode {modes[-1]}"
        raise TypeError(message)
    asked = [f"mode object {modes[-1]!r}"] if modes else []
    asked += [f"tensor subclass {kind!r}" for kind in types]
    raise TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned "
        "NotImplemented:\n\n" + "\n".join([f"  - {each}" for each in asked])
    )


def converted(result: Any, cls: type, tensor: type) -> Any:
    """A function's result, tensors among which are of a subclass `cls` of the class `tensor`."""
    if isinstance(result, tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)  # type: ignore
    if isinstance(result, (tuple, list)):
        convert: Callable[[Any], Any] = type(result)
        return convert([converted(each, cls, tensor) for each in result])
    return result

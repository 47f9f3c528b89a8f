"""Public functions that first ask modes and arguments of other types what a call shall do.

Nothing of that is in the functions themselves. While a program has neither a mode nor a value
whose type has ``__torch_function__``, they run as they are written, at no cost. Once there is one,
`intercept` gives each public function other code, in place: the function remains the object that
``from torch import add`` or a program's own dictionary holds already, and calls of it come here.
What a function calls inside comes here too, but then nobody is left to ask.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from tensorflow_lite_clone.core import forwarding, templates
from tensorflow_lite_clone.core.torch_function import (
    ALL_DISABLED,
    ENABLED,
    active_modes,
    disabling,
    dispatch,
    intercepting,
    overloaded_arguments,
    overrides,
    plain_types,
    state,
)

_INTERCEPTOR = "<interceptor>"
#: Gives the arguments of a call that are asked, of those by position and by keyword.
Asked = Callable[[tuple, dict[str, Any]], list[Any]]
#: Gives the arguments that modes and types see, of a function and those of a call.
Passed = Callable[[Any, tuple, dict[str, Any]], tuple[tuple, dict[str, Any]]]
#: An intercepted function's code. It has the free variables of the function's own, which are part
#: of a function and cannot be exchanged; its `Interceptor` is a constant of it, filled in later.
_CODE = """
def close({free}):
    def intercepted(*args, **kwargs):
        if 0:
            ({free})
        interceptor = "<interceptor>"
        if not interceptor.modes:
            plain = interceptor.plain
            for value in args:
                if value.__class__ not in plain:
                    break
            else:
                if not kwargs:
                    return interceptor.own(*args)
                for value in kwargs.values():
                    if value.__class__ not in plain:
                        break
                else:
                    return interceptor.own(*args, **kwargs)
        return interceptor.call(args, kwargs)
    return intercepted
"""


class Interceptor:
    """What is known of a public function: what it is called, and its own code while that is away.

    `reported` is what modes and types get to see as the function: itself, ``Tensor.shape.__get__``
    for the getter of a property, ``Tensor.add`` for ``Tensor.__add__``. `asked` are the arguments
    of a call that are asked. `passed` makes what they get of the function and the arguments.
    """

    __slots__ = ("asked", "function", "name", "operator", "own", "passed", "reported")

    modes = active_modes
    plain = plain_types

    def __init__(
        self,
        function: FunctionType,
        name: str,
        reported: Any,
        asked: Asked | None,
        operator: bool,
        passed: Passed | None,
    ) -> None:
        self.function = function
        self.name = name
        self.reported = reported
        self.asked = asked
        self.operator = operator
        self.passed = passed
        self.own: Any = None

    def call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What modes and types make of a call, or what the function itself gives."""
        disabled, values = state.disabled, []
        if self.asked and disabled == ENABLED:
            values = self.asked(args, kwargs)
        if not values and (disabled == ALL_DISABLED or not state.modes):
            if self.asked:
                return self._run(args, kwargs)
            with disabling(ALL_DISABLED):
                return self._run(args, kwargs)
        if not self.operator:
            in_python = self.name.startswith("torch.nn.")
            if self.passed is not None:
                args, kwargs = self.passed(self.own, args, kwargs)
            return dispatch(self.reported, self.name, values, args, kwargs, in_python)
        try:
            return dispatch(self.reported, self.name, values, args, kwargs)
        except TypeError:  # another operand may know what to do
            return NotImplemented

    def _run(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if around_intercepted:
            return around_intercepted[0](self.own, self.name, args, kwargs)
        return self.own(*args, **kwargs)

    def begin(self) -> None:
        """Give the function the code of an intercepted one."""
        function = self.function
        self.own = own = FunctionType(
            function.__code__,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        own.__kwdefaults__ = function.__kwdefaults__
        functools.update_wrapper(own, function)
        own.__dict__ = dict(function.__dict__)
        templates.originals[function] = own
        function.__dict__.setdefault("__wrapped__", own)  # for `inspect`
        code = _code(function.__code__.co_freevars)
        constants = [self if value == _INTERCEPTOR else value for value in code.co_consts]
        function.__code__ = code.replace(
            co_consts=tuple(constants), co_name=own.__name__, co_qualname=function.__qualname__
        )

    def end(self) -> None:
        """Give the function its own code back."""
        function, own = self.function, templates.originals.pop(self.function)
        if function.__dict__.get("__wrapped__") is own:
            del function.__dict__["__wrapped__"]
        function.__defaults__, function.__kwdefaults__ = own.__defaults__, own.__kwdefaults__
        function.__code__ = own.__code__


@functools.cache
def _code(free: tuple[str, ...]) -> CodeType:
    scope: dict[str, Any] = {}
    exec(compile(_CODE.format(free=", ".join(free)), "<interception>", "exec"), scope)
    code: CodeType = scope["close"](*free).__code__
    return code


#: Runs a function of which nobody is asked (any more), as ``run(function, name, args, kwargs)``;
#: entered by `python_dispatch` once there are classes with ``__torch_dispatch__``.
around_intercepted: list[Callable[..., Any]] = []
#: Each is called with the class of a new tensor, where that is not `Tensor` itself.
on_new_class: list[Callable[[type], None]] = []

_interceptors: dict[FunctionType, Interceptor] = {}
#: Each enters functions when they are first asked for: a thousand of them would slow the import.
on_first_use: list[Callable[[], None]] = []
_lock = threading.RLock()


def add(
    function: Any,
    name: str,
    reported: Any = None,
    *,
    asked: Asked | None = overloaded_arguments,
    operator: bool = False,
    passed: Passed | None = None,
) -> None:
    """Let a public function be intercepted; of one that was added already the first name counts.

    It is what modes and types see, or else `reported` is. Without `asked` only modes are asked; a
    TypeError of an `operator` lets the other operand try. See `Interceptor`.
    """
    if not isinstance(function, FunctionType) or function in _interceptors:
        return
    interceptor = Interceptor(function, name, reported or function, asked, operator, passed)
    with _lock:
        _interceptors[function] = interceptor
        if intercepting:
            interceptor.begin()


def overridable(name: str) -> Callable[[Any], Any]:
    """Decorator of a function that can be overridden, and that `public` does not export."""

    def decorate(function: Any) -> Any:
        add(function, name)
        return function

    return decorate


def interceptors() -> list[Interceptor]:
    """Of every function that can be overridden."""
    with _lock:
        while on_first_use:
            on_first_use.pop()()
        return list(_interceptors.values())


def intercept() -> None:
    """Let public functions ask, until `release` was called as often."""
    with _lock:
        every = interceptors()  # before: those that are entered later begin at once
        intercepting.append(None)
        if len(intercepting) == 1:
            for interceptor in every:
                interceptor.begin()


def release() -> None:
    """Take one `intercept` back."""
    with _lock:
        intercepting.pop()
        if not intercepting:
            for interceptor in _interceptors.values():
                interceptor.end()


def enable_for(kind: type) -> None:
    """Let public functions ask from now on if instances of a type override them."""
    for observe in on_new_class:
        observe(kind)
    if overrides(kind) and not _enabled_for_values:
        _enabled_for_values.append(None)
        intercept()


_enabled_for_values: list[None] = []  # not empty once a value that overrides was seen


def try_overrides(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What a call gives that no tensor is for, by an argument that overrides the function.

    NotImplemented without one. A class that is none of tensors is noticed here, when a function
    does not know what to do with its first instance.
    """
    values = [] if intercepting else overloaded_arguments(args, kwargs)
    public = _public_function(function) if values else None
    if public is None:
        return NotImplemented
    enable_for(type(values[0]))
    return public(*args, **kwargs)


def _public_function(function: Any) -> Any:
    """The function that can be overridden whose wrappers, if any, lead to one; see `_called`."""
    interceptors()
    if function in _interceptors:
        return _called(function)
    for outer in _interceptors:
        inner: Any = outer
        while inner is not None:
            if inner is function:
                return _called(outer)
            inner = inner.__dict__.get("__wrapped__")
    return None


def _called(function: Any) -> Any:
    """That of a function's twins in whose call this is, or itself."""
    codes = {id(twin.__code__): twin for twin in forwarding.twins.get(function, ())}
    frame: Any = sys._getframe(3) if codes else None
    while frame is not None:
        if id(frame.f_code) in codes:
            return codes[id(frame.f_code)]
        frame = frame.f_back
    return function

"""The switches of this thread: whether graphs are recorded, inference and anomaly modes."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside

_new = object.__new__
_GENERATOR = 0x20  # of a code object's flags; `inspect` is slow to import


class _Mode(threading.local):
    grad = True
    inference = False
    pushing = False  # whether a backward pass is one of forward mode: see `levels`
    #: Whether backward passes run over Tensors, for somebody sees their every operation: how many
    #: modes this thread has entered; 1, set on the class, where a class has `__torch_dispatch__`.
    dispatching = 0

    def __init__(self) -> None:  # called once per thread
        self.mappings: list[Any] = []  # levels of `func.vmap` under way, innermost last
        self.transforms: list[Any] = []  # these, and the levels of `func`'s derivatives
        self.dispatch_modes: list[Any] = []  # of `python_dispatch`, innermost last


mode = _Mode()


def followed() -> bool:
    """Whether a mode of this thread must know where every value comes from, as tracing does."""
    return any([getattr(each, "follows_values", False) for each in mode.dispatch_modes])


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread."""
    return mode.grad


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on in this thread."""
    return mode.inference


def _set_grad_enabled(enabled: bool) -> None:
    """Record operations in this thread from here on, or not: how a graph says it."""
    mode.grad = enabled


_set_grad_enabled.__module__ = f"{__name__.partition('.')[0]}._C"  # whence graphs call it


class _Switch:
    """Base of context managers that also decorate functions (and generators)."""

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(function, type):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You "
                "should only decorate functions or methods. To preserve the current behavior of "
                "class decoration, you can directly decorate the `__init__` method and nothing "
                "else.",
                FutureWarning,
                stacklevel=level_outside(),
            )
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & _GENERATOR:
            return self._around_generator(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return call

    def _around_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function` switched between its yields, not in the call that makes the generator."""

        @functools.wraps(function)
        def generate(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            resume, value = generator.send, None
            while True:
                try:
                    with self.clone():
                        item = resume(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    value = yield item
                    resume = generator.send
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:
                    resume, value = generator.throw, error

        return generate

    def clone(self) -> Any:
        """A fresh context manager with the same arguments."""
        return type(self)()


class _GradSwitch(_Switch):
    _enabled: bool

    def __enter__(self) -> None:
        self._previous = mode.grad
        mode.grad = self._enabled and not mode.inference

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        mode.grad = self._previous


class no_grad(_GradSwitch):
    """Context manager and decorator: record no graph inside."""

    _enabled = False

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        return _new(cls) if function is None else _new(cls)(function)

    def __enter__(self) -> None:
        self._previous = mode.grad
        mode.grad = False


class enable_grad(_GradSwitch):
    """Context manager and decorator: record the graph inside, also within `no_grad`."""

    _enabled = True

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        switch = super().__new__(cls)
        return switch if function is None else switch(function)


class set_grad_enabled(_GradSwitch):
    """Switch recording on or off; as a context manager, restore it at the end."""

    def __init__(self, mode: bool) -> None:
        self._enabled, self._previous = bool(mode), is_grad_enabled()
        _set_grad_enabled(self._enabled)

    def __enter__(self) -> None:
        mode.grad = self._enabled

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        mode.grad = self._previous  # as a decorator it does nothing until the call
        return super().__call__(function)

    def clone(self) -> set_grad_enabled:
        return set_grad_enabled(self._enabled)


class inference_mode(_Switch):
    """Context manager and decorator: no graph inside, not even with `enable_grad`.

    ``inference_mode(False)`` leaves inference mode and records. Tensors made inside are ordinary
    tensors here: they may be used in graphs later.
    """

    _enabled: bool

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        switch = super().__new__(cls)
        switch._enabled = mode if isinstance(mode, bool) else True
        return switch if isinstance(mode, bool) else switch(mode)

    def clone(self) -> inference_mode:
        switch: inference_mode = inference_mode(self._enabled)
        return switch

    def __enter__(self) -> None:
        self._previous = mode.grad, mode.inference
        mode.grad, mode.inference = not self._enabled, self._enabled

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        mode.grad, mode.inference = self._previous

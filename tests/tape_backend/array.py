"""Arrays whose operations go on the tape, and the tape."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.strict_backend.array import StrictArray, unwrap


class Tape:
    """Calls in order; `undo` takes back what they wrote into memory."""

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[..., Any], tuple, dict, Any]] = []
        self._undo: list[tuple[np.ndarray, np.ndarray]] = []

    def remember(self, target: np.ndarray) -> None:
        self._undo.append((target, target.copy()))

    def undo(self) -> None:
        for target, before in reversed(self._undo):
            target[...] = before
        self._undo.clear()

    def play(self) -> None:
        for function, args, kwargs, result in self.calls:
            _refill(result, function(*unwrap(args), **_unwrapped(kwargs)))


class _Active:
    tape: Tape | None = None


active = _Active()


class TapeArray(StrictArray):
    """A strict array that is on the tape's device."""

    __slots__ = ()


def _refill(old: Any, new: Any) -> None:
    if isinstance(old, TapeArray):
        if not np.shares_memory(old._hidden, np.asarray(new)):
            old._hidden[...] = new
    elif isinstance(old, (tuple, list)):
        for o, n in zip(old, new):
            _refill(o, n)


def rewrap(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return TapeArray(value)
    if isinstance(value, (tuple, list)):
        entries = [rewrap(entry) for entry in value]
        return entries if isinstance(value, list) else tuple(entries)
    return value


def _unwrapped(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: unwrap(value) for name, value in kwargs.items()}


def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function over NumPy arrays on tape arrays; it makes new ones or views."""
    result = rewrap(function(*unwrap(args), **_unwrapped(kwargs)))
    if active.tape is not None:
        active.tape.calls.append((function, args, kwargs, result))
    return result


def change(function: Callable[..., Any], target: TapeArray, *args: Any, **kwargs: Any) -> None:
    """Call a function that writes into its first argument."""
    if active.tape is not None:
        active.tape.remember(target._hidden)
        active.tape.calls.append((function, (target, *args), kwargs, None))
    function(target._hidden, *unwrap(args), **_unwrapped(kwargs))


def _operator(function: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    def apply(self: TapeArray, other: Any) -> Any:
        if not isinstance(other, (TapeArray, bool, int, float, complex)):
            return NotImplemented
        return run(function, other, self) if reflected else run(function, self, other)

    return apply


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def write(target: np.ndarray, other: Any) -> None:
        target[...] = function(target, other)

    def apply(self: TapeArray, other: Any) -> TapeArray:
        change(write, self, other)
        return self

    return apply


for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
    _word = {"and": "and_", "or": "or_"}.get(_name, _name)
    setattr(TapeArray, f"__{_name}__", _operator(getattr(operator, _word), False))
    setattr(TapeArray, f"__r{_name}__", _operator(getattr(operator, _word), True))
    setattr(TapeArray, f"__i{_name}__", _in_place(getattr(operator, _word)))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(TapeArray, f"__{_name}__", _operator(getattr(operator, _name), False))
for _name in ("neg", "pos", "abs", "invert"):
    _function = getattr(operator, _name)
    setattr(TapeArray, f"__{_name}__", lambda self, function=_function: run(function, self))
TapeArray.__getitem__ = lambda self, index: run(operator.getitem, self, index)  # type: ignore
TapeArray.__setitem__ = lambda self, index, value: change(  # type: ignore
    operator.setitem, self, index, value
)
TapeArray.T = property(lambda self: run(np.transpose, self))  # type: ignore
TapeArray.mT = property(lambda self: run(lambda x: x.mT, self))  # type: ignore
TapeArray.__hash__ = object.__hash__  # type: ignore

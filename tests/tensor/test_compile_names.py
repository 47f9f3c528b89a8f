"""Which names of its code a compiled function is said to read, and which only look like it."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.compiler.reads import attributes_in, globals_in

# Read by nobody, and changed at every call: each is a name of another kind in a function below.
weight = alpha = pi = quarter = step = exp = 0


class Holder:
    """Holds a number, and gives it in several ways."""

    def __init__(self) -> None:
        self.weight = tlc.ones(3)
        self.kept = 1.0

    def __call__(self, x: Any) -> Any:
        return x * self.kept

    def __getitem__(self, index: int) -> float:
        return self.kept

    def __rmul__(self, x: Any) -> Any:
        return x * self.kept

    @property
    def shown(self) -> float:
        """What is kept."""
        return self.kept

    @staticmethod
    def of_nothing(x: Any) -> Any:
        """What a global says."""
        return x * factor

    @classmethod
    def of_class(cls, x: Any) -> Any:
        """What the class says."""
        return x * cls.scale

    scale = 1.0


holder = Holder()
factor = 1.0


def imports(x: Any) -> Any:
    """Names of what is imported."""
    import math
    from math import pi

    return x * math.pi * pi


def defines_a_class(x: Any) -> Any:
    """Names of a class's own."""

    class Numbers:
        quarter = 0.25
        half = 2 * quarter

    return x * Numbers.half


UNREAD: dict[str, Callable] = {
    "weight": lambda x: x * holder.weight,
    "alpha": lambda x: tlc.add(x, x, alpha=2),
    "pi": imports,
    "quarter": defines_a_class,
    "step": lambda x: sum([x * step for step in (1.0, 2.0)]),
    "exp": lambda x: x.exp(),
}
READ: dict[str, tuple[Callable, Callable]] = {
    "a global in a comprehension": (
        lambda x: sum([x * each * factor for each in (1.0, 2.0)]),
        lambda value: globals().update(factor=value),
    ),
    "a global in a class": (
        lambda x: x * type("Numbers", (), {"a": factor}).a,
        lambda value: globals().update(factor=value),
    ),
    "a global in a static method": (
        lambda x: holder.of_nothing(x),
        lambda value: globals().update(factor=value),
    ),
    "a property": (lambda x: x * holder.shown, lambda value: setattr(holder, "kept", value)),
    "a call": (lambda x: holder(x), lambda value: setattr(holder, "kept", value)),
    "an index": (lambda x: x * holder[0], lambda value: setattr(holder, "kept", value)),
    "an operator": (lambda x: 2 * x * holder, lambda value: setattr(holder, "kept", value)),
    "a class method": (lambda x: holder.of_class(x), lambda value: setattr(Holder, "scale", value)),
    "a partial": (
        functools.partial(lambda box, x: x * box.value, types.SimpleNamespace(value=1.0)),
        lambda value: setattr(READ["a partial"][0].args[0], "value", value),  # type: ignore[attr-defined]
    ),
}


@pytest.mark.parametrize("name", UNREAD)
def test_compile_does_not_guard_shadowed_globals(name: str) -> None:
    compiled = tlc.compile(UNREAD[name], fullgraph=True)  # raises where it captures nothing
    for number in range(12):
        globals()[name] = number
        x = tlc.arange(3.0) + number
        assert tlc.equal(compiled(x), UNREAD[name](x))


@pytest.mark.parametrize("name", READ)
def test_compile_guards_indirect_reads(name: str) -> None:
    function, change = READ[name]
    compiled = tlc.compile(function)
    for value in (1.0, 1.0, 1.0, 2.0, 2.0, 3.0):
        change(value)
        x = tlc.arange(3.0)
        assert tlc.equal(compiled(x), function(x))


def test_names_of_code() -> None:
    def function(x: Any, *, keyword: int = 0) -> Any:
        class Inner:
            own = 1
            copy = own
            factor = factor  # noqa: F821  read from outside, then its own

        def inner() -> Any:
            global alpha
            alpha = [holder.weight for _ in x]

        return inner, Inner, x.method(keyword=keyword)

    assert globals_in(function.__code__) == {"__name__", "factor", "alpha", "holder"}
    assert {"weight", "method"} <= attributes_in(function.__code__)
    assert not attributes_in(function.__code__) & {"factor", "alpha", "holder", "keyword", "own"}

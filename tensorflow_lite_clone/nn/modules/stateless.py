"""The base of modules without parameters: they store arguments and call a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tensorflow_lite_clone.nn.modules.module import Module


class Required:
    """Marks an argument without a default."""

    def __repr__(self) -> str:
        return "required"


required = Required()


class Stateless(Module):
    """A module that keeps its constructor's arguments as attributes and passes them on.

    A subclass names its `function` and its `arguments` with their defaults; the attributes are
    read at every call, so that changing one changes what the module does.
    """

    function: ClassVar[Callable[..., Any]]
    arguments: ClassVar[dict[str, Any]] = {}
    shown: ClassVar[tuple[str, ...] | None] = None  # in the representation; None: all arguments

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        names = list(self.arguments)
        if len(args) > len(names):
            raise TypeError(
                f"{type(self).__name__}.__init__() takes at most {len(names)} arguments but "
                f"{len(args)} were given"
            )
        values = dict(zip(names, args))
        for name, value in kwargs.items():
            if name not in self.arguments:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'"
                )
            if name in values:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got multiple values for argument '{name}'"
                )
            values[name] = value
        for name, default in self.arguments.items():
            value = values.get(name, default)
            if value is required:
                raise TypeError(
                    f"{type(self).__name__}.__init__() missing a required argument: '{name}'"
                )
            setattr(self, name, value)
        self.check()

    def check(self) -> None:
        """Complete or refuse the arguments; called at the end of construction."""

    def forward(self, *inputs: Any) -> Any:
        values = {name: getattr(self, name) for name in self.arguments}
        return type(self).function(*inputs, **values)

    def extra_repr(self) -> str:
        parts = []
        for name in self.arguments if self.shown is None else self.shown:
            value = getattr(self, name)
            if name == "inplace" and not value:
                continue
            parts.append(f"{name}={value!r}")
        return ", ".join(parts)


def stateless(
    name: str,
    function: Callable[..., Any],
    arguments: dict[str, Any],
    shown: tuple[str, ...] | None = None,
    base: type[Stateless] = Stateless,
) -> Any:
    """A row of a table of parameter-free modules, as a class."""
    body = {
        "function": staticmethod(function),
        "arguments": arguments,
        "shown": shown,
        "__doc__": f"`functional.{function.__name__}` as a module.",
        "__module__": "tensorflow_lite_clone.nn.modules",
    }
    return type(name, (base,), body)

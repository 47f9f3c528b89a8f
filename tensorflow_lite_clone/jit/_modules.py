"""What `script` and `trace` give: modules and functions that run the Python code they are made of.

A `RecursiveScriptModule` is of a class that is derived from the module's own at that moment, so
that its methods, properties and ``super()`` calls work as before.
"""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable
from typing import Any, Self

from tensorflow_lite_clone.jit._archives import refuse_to_save
from tensorflow_lite_clone.nn.modules.module import Module


class ScriptFunction:
    """A function that says of itself that it is scripted; calling it calls the function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __reduce__(self) -> str:
        return self._function.__qualname__  # by name, as functions are pickled and copied

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else self._function.__get__(instance, owner)

    @property
    def name(self) -> str:
        """The function's name."""
        return self._function.__name__

    def save(self, filename: Any, **kwargs: Any) -> None:
        """Always NotImplementedError."""
        refuse_to_save("ScriptFunction.save()")


class ScriptModule(Module):
    """The base of scripted modules, also for classes that mark their methods `script_method`."""

    def save(self, f: Any, **kwargs: Any) -> None:
        """Always NotImplementedError."""
        refuse_to_save(f"{type(self).__name__}.save()")

    def save_to_buffer(self, *args: Any, **kwargs: Any) -> bytes:
        """Always NotImplementedError."""
        refuse_to_save(f"{type(self).__name__}.save_to_buffer()")


class _Copied(ScriptModule):
    """A module that shares parameters, buffers and other values with the one it was made from."""

    _original_class: type[Module]
    __repr__ = Module.__repr__  # a container's own would leave out the original name

    @property
    def original_name(self) -> str:
        """The name of the module's class."""
        return self._original_class.__name__

    def extra_repr(self) -> str:
        """The class it was made from."""
        return f"original_name={self.original_name}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = object.__new__(type(self))
        memo[id(self)] = copied
        copied.__setstate__(copy.deepcopy(self.__dict__, memo))
        return copied

    def __reduce__(self) -> Any:
        raise pickle.PickleError(
            "a scripted or traced module cannot be pickled: its class was made for it alone; "
            "pickle the module it was made from, or its state_dict"
        )


class RecursiveScriptModule(_Copied):
    """What `script` makes of a module."""


class TracedModule(_Copied):
    """What `trace` makes of a module's children."""

    def _get_name(self) -> str:
        return self.original_name


class TopLevelTracedModule(TracedModule):
    """What `trace` makes of a module."""


def _derived(kind: type[_Copied], original: type[Module]) -> type[_Copied]:
    body = {"__module__": __name__, "_original_class": original}
    return type(kind.__name__, (kind, original), body)


def copied(
    module: Module,
    kind: type[_Copied],
    below: type[_Copied],
    memo: dict[int, Module] | None = None,
) -> Module:
    """A module of class `kind` over the values of `module`, its children of class `below`.

    The training flags and the tables of hooks are the copy's own; parameters and buffers are
    shared.
    """
    memo = {} if memo is None else memo
    if isinstance(module, ScriptModule):
        return module
    if id(module) not in memo:
        result = memo[id(module)] = object.__new__(_derived(kind, type(module)))
        values = result.__dict__
        for name, value in module.__dict__.items():
            if name.startswith("_") and isinstance(value, dict):
                value = value.copy()  # members, hooks
            values[name] = value
        for name, child in module._modules.items():
            if child is not None:
                values["_modules"][name] = copied(child, below, below, memo)
    return memo[id(module)]

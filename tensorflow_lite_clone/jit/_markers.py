"""What code says to the TorchScript compiler: marks and types, which mean nothing to Python."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, Union, get_args, get_origin

_C = TypeVar("_C", bound=Callable[..., Any])

__all__ = ["Final"]


class Attribute(NamedTuple):
    """A value and its type, given to a module in place of the value."""

    value: Any
    type: Any


def annotate(the_type: Any, the_value: Any) -> Any:
    """`the_value`."""
    return the_value


def is_scripting() -> bool:
    """Always False: Python runs."""
    return False


def is_tracing() -> bool:
    """Always False: no call is recorded, in `trace` neither."""
    return False


def _same(function: _C) -> _C:
    """The function itself: the mark is for the compiler."""
    return function


export = unused = interface = _drop = _overload = _overload_method = script_if_tracing = _same


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself; also ``@ignore()`` and ``@ignore(drop=True)``."""
    if callable(drop):
        return drop
    if not builtins.isinstance(drop, bool):
        raise RuntimeError(
            f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}"
        )
    return _same


def _unwrap_optional(x: Any) -> Any:
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether `obj` is of a type, the elements of containers included: ``List[int]``, a Union, ...

    Raises RuntimeError for ``list``, ``dict`` and their like without types of elements.
    """
    if builtins.isinstance(target_type, (tuple, list)):
        return any([isinstance(obj, kind) for kind in target_type])
    origin, arguments = get_origin(target_type), get_args(target_type)
    if target_type is None:
        return obj is None
    if origin is Union or origin is types.UnionType:
        return any([isinstance(obj, kind) for kind in arguments])
    if not arguments and (origin or target_type) in (list, dict, tuple):
        name = (origin or target_type).__name__
        raise RuntimeError(
            f"Attempted to use {name} without a contained type. Please add a contained type, e.g. "
            f"{name}[int]"
        )
    if origin is None:
        return builtins.isinstance(obj, target_type)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is list:
        return all([isinstance(value, arguments[0]) for value in obj])
    if origin is dict:
        key, value = arguments
        return all([isinstance(k, key) and isinstance(v, value) for k, v in obj.items()])
    if origin is tuple and len(arguments) == len(obj):
        return all(map(isinstance, obj, arguments))
    return origin is not tuple

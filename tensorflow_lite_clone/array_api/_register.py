"""Where the standard's words over Tensors are entered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

#: The standard's functions over Tensors, and creation functions, which take a device.
standard_functions: dict[str, Any] = {}
creation_functions: dict[str, Any] = {}

_F = TypeVar("_F", bound=Callable[..., Any])


def word(function: _F) -> _F:
    """Enter a function of the standard under its own name."""
    standard_functions[function.__name__] = function
    return function


def creation_word(function: _F) -> _F:
    """Enter a function that makes a tensor from nothing; the recorded F fixes its ``device=``."""
    creation_functions[function.__name__] = function
    return function

"""A program that is run with either library, and what comes of it, to be compared."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch

import tensorflow_lite_clone as tlc


def module(lib: Any, name: str) -> Any:
    """A module of the library."""
    return importlib.import_module(f"{lib.__name__}.{name}")


def outcome(program: Callable[[Any], Any], lib: Any) -> Any:
    """What a program returns, or the type of what it raises."""
    lib.manual_seed(0)
    try:
        return program(lib)
    except Exception as error:
        return type(error).__name__


def expect_same(program: Callable[[Any], Any]) -> None:
    """Check that a program comes to the same with both libraries."""
    ours, theirs = outcome(program, tlc), outcome(program, torch)
    assert ours == theirs, f"{ours}\n!=\n{theirs}"


def values(x: Any) -> Any:
    """Nested lists of the numbers in tensors, and in containers of them, rounded."""
    if hasattr(x, "tolist"):
        return values(x.tolist())
    if isinstance(x, dict):
        return {key: values(each) for key, each in x.items()}
    if isinstance(x, list | tuple):
        return [values(each) for each in x]
    return round(x, 4) + 0.0 if isinstance(x, float) else x

"""The marks and types of symbolic tracing, as ``torch.fx``; functions are not traced here.

Packages mark functions with `wrap` and ask whether a value is a `Proxy`. Both work: no value is.
What would trace, or rebuild a program from its graph, raises NotImplementedError.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.nn.modules.module import Module

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "symbolic_trace",
    "wrap",
]


def wrap(fn_or_name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """Mark a function, or its name, as one that tracing does not enter; gives it back as it is.

    Called at the top level of a module: NotImplementedError elsewhere. RuntimeError for what is
    neither a function nor a name.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    if sys._getframe(1).f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    return fn_or_name


def _refuse(name: str) -> NotImplementedError:
    return NotImplementedError(f"torch.fx.{name}: programs are not traced into graphs here")


class _Untraced:
    """A part of a traced program, of which there are none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise _refuse(type(self).__name__)


class Proxy(_Untraced):
    """What stands for a value while a function is traced."""


class Node(_Untraced):
    """One call in a graph."""


class Graph(_Untraced):
    """The calls of a traced function."""


class Tracer(_Untraced):
    """What follows a module's calls."""


class Interpreter(_Untraced):
    """What runs a graph call by call."""


class Transformer(Interpreter):
    """What makes a graph from another."""


class GraphModule(Module):
    """A module that was made from a graph."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise _refuse(type(self).__name__)


def symbolic_trace(root: Any, concrete_args: Any = None) -> GraphModule:
    """The graph of a module's calls: NotImplementedError."""
    raise _refuse("symbolic_trace")

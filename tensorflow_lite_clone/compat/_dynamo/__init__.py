"""``torch._dynamo``: how functions become graphs, in terms of ``torch.compiler``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.compiler import (
    OptimizedModule,
    allow_in_graph,
    assume_constant_result,
    compile,
    disable,
    is_compiling,
    list_backends,
    reset,
)
from tensorflow_lite_clone.compiler.dynamo.calls import disallow_in_graph
from tensorflow_lite_clone.compiler.dynamo.explain import explain
from tensorflow_lite_clone.compiler.dynamo.function import graph_break
from tensorflow_lite_clone.compiler.dynamo.registry import lookup_backend, register_backend
from tensorflow_lite_clone.compiler.dynamo.stance import set_stance

from . import backends, config, eval_frame, exc, testing, utils  # in the place where it is mounted
from .eval_frame import is_dynamo_supported


def optimize(
    backend: Any = "inductor", *, nopython: bool = False, disable: bool = False, **options: Any
) -> Callable[[Any], Any]:
    """A decorator that compiles with a backend, as ``torch.compile``; `nopython` is `fullgraph`."""

    def decorate(function: Any) -> Any:
        return compile(function, backend=backend, fullgraph=nopython, disable=disable)

    return decorate


def optimize_assert(backend: Any = "inductor", **options: Any) -> Callable[[Any], Any]:
    """`optimize` of functions that are one graph."""
    return optimize(backend, nopython=True)


def mark_dynamic(t: Any, index: Any, **bounds: Any) -> None:
    """Nothing: every shape has graphs of its own."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Nothing: every shape has graphs of its own."""


def mark_static(t: Any, index: Any = None) -> None:
    """Nothing: every shape has graphs of its own."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Nothing: captured tensors stay where they are."""


__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "backends",
    "config",
    "disable",
    "disallow_in_graph",
    "eval_frame",
    "exc",
    "explain",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "optimize_assert",
    "register_backend",
    "reset",
    "set_stance",
    "testing",
    "utils",
]

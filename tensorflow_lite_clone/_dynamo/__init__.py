"""What programs use of PyTorch's tracing compiler's own module, in terms of ``torch.compiler``."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone._dynamo import eval_frame
from tensorflow_lite_clone.compiler import (
    OptimizedModule,
    allow_in_graph,
    disable,
    is_compiling,
    list_backends,
    reset,
)
from tensorflow_lite_clone.core.options import Options

#: Set by programs, read by nothing.
config = Options("torch._dynamo.config")


def assume_constant_result(fn: Any) -> Any:
    """The function: what is captured runs it each time."""
    return fn


def mark_dynamic(t: Any, index: Any, **bounds: Any) -> None:
    """Nothing: every shape is captured by itself."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Nothing: captured tensors stay where they are."""


def graph_break(msg: str = "") -> None:
    """Nothing: what is captured is the whole function."""


__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "eval_frame",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static_address",
    "reset",
]

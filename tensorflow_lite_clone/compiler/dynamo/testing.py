"""Backends for tests, which run graphs as they are and count them: ``torch._dynamo.testing``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.compiler.dynamo.registry import lookup_backend

__all__ = ["CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs"]


class CompileCounter:
    """Counts graphs, as `frame_count`, and calls in them, as `op_count`."""

    def __init__(self) -> None:
        self.clear()

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        self.graphs.append(gm)
        self.frame_count += 1
        self.op_count += sum(["call" in node.op for node in gm.graph.nodes])
        return self._compile(gm, example_inputs)

    def _compile(self, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        forward: Callable[..., Any] = gm.forward
        return forward

    def clear(self) -> None:
        """Begin to count anew."""
        self.frame_count = self.op_count = 0
        self.graphs: list[Any] = []


class CompileCounterWithBackend(CompileCounter):
    """Counts like `CompileCounter`, and compiles with a backend or the one of a name."""

    def __init__(self, backend: Any) -> None:
        super().__init__()
        self.backend = backend

    def _compile(self, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        compiled: Callable[..., Any] = lookup_backend(self.backend)(gm, example_inputs)
        return compiled


class EagerAndRecordGraphs:
    """Keeps the graphs in a list, `graphs`."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.example_inputs: list[list[Any]] = []

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        self.graphs.append(gm)
        self.example_inputs.append(example_inputs)
        forward: Callable[..., Any] = gm.forward
        return forward

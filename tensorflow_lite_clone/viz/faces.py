"""The two functions that were there first."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.viz.backward import backward
from tensorflow_lite_clone.viz.graph import Graph


def make_dot(
    outputs: Tensor | Iterable[Tensor], params: Any = None, *, show_shapes: bool = True
) -> str:
    """The autograd graph of `outputs` in Graphviz's language DOT; the arguments of `backward`.

    Raises RuntimeError when an output has no graph.
    """
    return _graph(outputs, params, show_shapes).to_dot()


def render(
    outputs: Tensor | Iterable[Tensor],
    filename: str | Path,
    params: Any = None,
    *,
    show_shapes: bool = True,
) -> Path:
    """Draw the autograd graph of `outputs` into a file: `backward`, then `Graph.save`."""
    return _graph(outputs, params, show_shapes).save(filename)


def _graph(outputs: Tensor | Iterable[Tensor], params: Any, show_shapes: bool) -> Graph:
    graph = backward(outputs, params)
    if not show_shapes:
        for node in graph.nodes.values():
            node.shape, node.dtype, node.device = None, "", ""
    return graph

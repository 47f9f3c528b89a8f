"""The autograd graph as a picture: operations, shapes, dtypes and parameter names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tensorflow_lite_clone.autograd.apply import current_edge
from tensorflow_lite_clone.autograd.node import GraphNode, Leaf
from tensorflow_lite_clone.tensor import Parameter, Tensor

_STYLES = {
    "operation": 'shape=box style="rounded,filled" fillcolor="#eef2f7"',
    "parameter": 'shape=box style=filled fillcolor="#cfe3ff"',
    "leaf": 'shape=box style=filled fillcolor="#e4f3dc"',
    "output": 'shape=box style="filled,bold" fillcolor="#ffe3c2"',
}


def make_dot(
    outputs: Tensor | Iterable[Tensor],
    params: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None = None,
    *,
    show_shapes: bool = True,
) -> str:
    """The graph above `outputs` in Graphviz's DOT language.

    `params` gives names to leaves, as ``model.named_parameters()`` does; other leaves show their
    `name` attribute if they have one. Raises RuntimeError when an output has no graph.
    """
    tensors = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    pairs = params.items() if isinstance(params, Mapping) else params or ()
    names = {id(tensor): name for name, tensor in pairs}
    lines = [
        "digraph autograd {",
        "  rankdir=TB; ranksep=0.3; nodesep=0.25;",
        '  node [fontname="Helvetica" fontsize=10 height=0.2]; edge [arrowsize=0.6];',
    ]
    numbers: dict[GraphNode, str] = {}
    stack: list[GraphNode] = []
    for index, tensor in enumerate(tensors):
        edge = current_edge(tensor)
        if edge is None:
            raise RuntimeError(
                "there is no graph to draw: the tensor does not require grad and has no grad_fn"
            )
        label = _label(tensor.name or "output", tensor.shape, tensor.dtype, show_shapes)
        lines.append(f'  out{index} [label="{label}" {_STYLES["output"]}];')
        lines.append(f"  {_number(edge[0], numbers, stack)} -> out{index};")
    while stack:
        node = stack.pop()
        lines.append(f"  {numbers[node]} {_describe(node, names, show_shapes)};")
        for child, _ in node.next_functions:
            if child is not None:
                lines.append(f"  {_number(child, numbers, stack)} -> {numbers[node]};")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _number(node: GraphNode, numbers: dict[GraphNode, str], stack: list[GraphNode]) -> str:
    """The node's name in the picture; one seen for the first time is put on the stack."""
    if node not in numbers:
        numbers[node] = f"n{len(numbers)}"
        stack.append(node)
    return numbers[node]


def _describe(node: GraphNode, names: dict[int, str], show_shapes: bool) -> str:
    if isinstance(node, Leaf):
        tensor = node.variable
        dtype = node.backend.dtypes[node.dtypes]
        kind = "parameter" if isinstance(tensor, Parameter) else "leaf"
        name = names.get(id(tensor)) or getattr(tensor, "name", None) or kind
        return f'[label="{_label(name, node.shapes, dtype, show_shapes)}" {_STYLES[kind]}]'
    title = node.name().rpartition(":")[2].partition("Backward")[0]
    shape, native = node.shapes, node.dtypes
    if node.several:
        shape, native = shape[0], native[0]
    dtype = node.backend.dtypes[native]
    return f'[label="{_label(title, shape, dtype, show_shapes)}" {_STYLES["operation"]}]'


def _label(title: str, shape: Any, dtype: Any, show_shapes: bool) -> str:
    title = title.replace("\\", "\\\\").replace('"', '\\"')
    if not show_shapes:
        return title
    return f"{title}\\n{' x '.join(map(str, shape)) or 'scalar'}  {dtype.name}"


def render(
    outputs: Tensor | Iterable[Tensor],
    filename: str | Path,
    params: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None = None,
    *,
    show_shapes: bool = True,
) -> Path:
    """Draw the graph above `outputs` into `filename`, whose suffix (.svg, .png, .pdf, .dot) says
    how; returns the path written.

    Needs the Python package ``graphviz`` and Graphviz's program ``dot``. When one of them is
    missing the DOT text is saved beside, and a RuntimeError says where and what to install.
    """
    target = Path(filename)
    source = make_dot(outputs, params, show_shapes=show_shapes)
    if target.suffix == ".dot":
        target.write_text(source)
        return target
    try:
        import graphviz  # an optional extra
    except ImportError as error:
        raise _missing(target, source, "pip install graphviz") from error
    try:
        picture = graphviz.Source(source).pipe(format=target.suffix.lstrip(".") or "svg")
    except graphviz.ExecutableNotFound as error:
        raise _missing(target, source, "Graphviz (apt-get install graphviz)") from error
    except ValueError as error:
        raise ValueError(
            f"cannot draw a graph as '{target.suffix}': expected .svg, .png, .pdf or .dot"
        ) from error
    target.write_bytes(picture)
    return target


def _missing(target: Path, source: str, what: str) -> RuntimeError:
    saved = target.with_suffix(".dot")
    saved.write_text(source)
    return RuntimeError(
        f"drawing {target.name} needs {what}; the graph is saved as DOT text in {saved}"
    )

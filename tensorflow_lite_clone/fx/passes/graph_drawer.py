"""Pictures of graphs in Graphviz's language, as ``torch.fx.passes.graph_drawer``.

PyTorch's needs the package pydot. Here the text is written as it is; to make pictures of it needs
Graphviz's program ``dot``.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

from tensorflow_lite_clone.fx._names import qualified_name
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.node import Node, _format_arg
from tensorflow_lite_clone.fx.operator_schemas import normalize_function
from tensorflow_lite_clone.fx.passes.shape_prop import TensorMetadata
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["FxGraphDrawer"]

#: Graphviz's names of colors, by what nodes are.
_COLORS = {
    "placeholder": "AliceBlue",
    "call_module": "LemonChiffon1",
    "get_param": "Yellow2",
    "get_attr": "LightGrey",
    "output": "PowderBlue",
}
#: Others, by what is called.
_OF_TARGETS = (
    "CadetBlue1 Coral DarkOliveGreen1 DarkSeaGreen1 GhostWhite Khaki1 LavenderBlush1 LightSkyBlue "
    "MistyRose1 MistyRose2 PaleTurquoise2 PeachPuff1 Salmon Thistle1 Thistle3 Wheat1"
).split()
_OF_WEIGHTS = "Salmon"


class Dot:
    """A picture in Graphviz's language, with the methods of pydot's class of this name.

    ``write_svg(path)``, ``write_png(path)``, ... and ``create_svg()``, ... run Graphviz's program
    ``dot``; RuntimeError where there is none.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._lines: list[str] = []

    def add_node(self, name: str, **attributes: str) -> None:
        """A box."""
        text = ", ".join([f"{key}={_quoted(value)}" for key, value in attributes.items()])
        self._lines.append(f"{_quoted(name)} [{text}];")

    def add_edge(self, source: str, target: str) -> None:
        """An arrow."""
        self._lines.append(f"{_quoted(source)} -> {_quoted(target)};")

    def to_string(self) -> str:
        """The picture as text."""
        return "\n".join([f"digraph {_quoted(self.name)} {{", "rankdir=TB;", *self._lines, "}\n"])

    __str__ = to_string

    def write_raw(self, path: str | Path) -> bool:
        """Write the text to a file."""
        Path(path).write_text(self.to_string(), encoding="utf-8")
        return True

    write = write_dot = write_raw

    def create(self, format: str) -> bytes:
        """The picture as a file of a format, such as "svg"."""
        program = shutil.which("dot")
        if program is None:
            raise RuntimeError(
                f"Graphviz's program 'dot' was not found: it makes {format} of the text that "
                "to_string() and write_dot() give"
            )
        text = self.to_string().encode()
        completed = subprocess.run(
            [program, f"-T{format}"], input=text, capture_output=True, check=True
        )
        return completed.stdout

    def __getattr__(self, name: str) -> Any:
        action, _, format = name.partition("_")
        if action == "create" and format:
            return lambda: self.create(format)
        if action == "write" and format:
            return lambda path: bool(Path(path).write_bytes(self.create(format)))
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"').replace("\n", "\\n") + '"'


class FxGraphDrawer:
    """Draws a module's graph, and those of graph modules that it calls.

    Boxes show a node's name, kind, target, arguments and what `ShapeProp` noted; with
    `parse_stack_trace` also where it came from, with `normalize_args` arguments by name. Boxes of
    `get_attr` nodes are left out with `ignore_getattr`, those of called modules' parameters and
    buffers with `ignore_parameters_and_buffers`; nodes among arguments are not named again unless
    `skip_node_names_in_args` is False. For example::

        FxGraphDrawer(traced, "net").get_dot_graph().write_svg("net.svg")
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        self._name = name
        self._shape = dot_graph_shape or "record"
        self._ignores_attributes = ignore_getattr
        self._ignores_parameters = ignore_parameters_and_buffers
        self._skips_nodes = skip_node_names_in_args
        self._shows_lines = parse_stack_trace
        self._normalizes = normalize_args
        self._dot_graphs = {name: self._draw(graph_module, name)}
        for node in graph_module.graph.nodes:
            if node.op == "call_module":
                called = attrgetter(node.target)(graph_module)
                if isinstance(called, GraphModule):
                    inner = f"{name}_{node.target}"
                    self._dot_graphs[inner] = self._draw(called, inner)

    def get_dot_graph(self, submod_name: str | None = None) -> Dot:
        """The picture of the module, or of a graph module that it calls."""
        if submod_name is None:
            return self.get_main_dot_graph()
        return self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> Dot:
        """The picture of the module."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Dot:
        """The picture of a graph module that it calls."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Dot]:
        """All pictures, by name."""
        return self._dot_graphs

    def _draw(self, module: GraphModule, name: str) -> Dot:
        dot = Dot(name)
        nodes = [
            node
            for node in module.graph.nodes
            if not (self._ignores_attributes and node.op == "get_attr")
        ]
        for node in nodes:
            color = _COLORS.get(node.op) or _color_of(node._pretty_print_target(node.target))
            self._add_box(dot, node.name, self._label(module, node), color)
            if node.op == "call_module" and not self._ignores_parameters:
                called = attrgetter(node.target)(module)
                if not isinstance(called, GraphModule):
                    self._add_weights(dot, node.name, called)
        for node in nodes:
            for user in node.users:
                dot.add_edge(node.name, user.name)
        return dot

    def _add_box(self, dot: Dot, name: str, label: str, color: str) -> None:
        style = {"shape": self._shape, "fillcolor": color, "style": "filled,rounded"}
        dot.add_node(name, label=label, **style, fontcolor="#000000")

    def _add_weights(self, dot: Dot, called: str, module: Module) -> None:
        kinds = [("parameter", module.named_parameters()), ("buffer", module.named_buffers())]
        for kind, members in kinds:
            for name, tensor in members:
                name = f"{called}.{name}"
                label = f"{{{name}|op_code=get_{kind}\\l{_tensor_label(tensor)}}}"
                self._add_box(dot, name, label, _OF_WEIGHTS)
                dot.add_edge(name, called)

    def _label(self, module: GraphModule, node: Node) -> str:
        parts = [f"name=%{node.name}", f"op_code={node.op}"]
        if node.op == "call_module":
            called = attrgetter(str(node.target))(module)
            parts[-1] += f"\\n{_escaped(qualified_name(type(called)))}\\n"
            constants = getattr(called, "__constants__", ())
            parts.append("\\n".join([_escaped(f"{c}: {getattr(called, c)}") for c in constants]))
        else:
            target = node.target
            name = target if isinstance(target, str) else qualified_name(target)
            parts.append(f"target={_escaped(name)}\\n")
            args, kwargs = self._arguments(node)
            parts += self._argument_labels("args=(", [_text(arg) for arg in args], ")")
            named = [f"{key}: {_text(arg)}" for key, arg in kwargs.items()]
            parts += self._argument_labels("kwargs={", named, "}")
            parts.append(f"num_users={len(node.users)}\\n")
        _add_metadata(parts, node.meta.get("tensor_meta"))
        trace = node.stack_trace if self._shows_lines else None
        if trace:
            parts.append(_escaped(trace.strip().splitlines()[-1].strip()) + "\\n")
        return "{" + "|".join(parts) + "}"

    def _arguments(self, node: Node) -> tuple[Any, Any]:
        if self._normalizes and node.op == "call_function":
            target: Callable[..., Any] = node.target  # type: ignore[assignment]
            normalized = normalize_function(
                target, node.args, node.kwargs, normalize_to_only_use_kwargs=True
            )
            if normalized is not None:
                return normalized
        return node.args, node.kwargs

    def _argument_labels(self, opening: str, texts: list[str], closing: str) -> list[str]:
        texts = [text for text in texts if not (self._skips_nodes and "%" in text)]
        if not texts:
            return []
        if len(texts) == 1:
            return [_escaped(f"{opening}{texts[0]},{closing}")]
        opening, closing = _escaped(opening), _escaped(closing)
        return [opening + "\\l" + ",\\n".join(map(_escaped, texts)) + ",\\n" + closing + "\\l"]


def _color_of(target: str) -> str:
    digest = hashlib.md5(target.encode(), usedforsecurity=False).hexdigest()
    return _OF_TARGETS[int(digest[:8], 16) % len(_OF_TARGETS)]


def _escaped(text: str) -> str:
    for character in "{}<>|":
        text = text.replace(character, "\\" + character)
    return text


def _text(arg: Any) -> str:
    """An argument, of which at most eight items of a list are shown."""
    return _format_arg(arg, 8)


def _add_metadata(parts: list[str], meta: Any) -> None:
    if isinstance(meta, TensorMetadata):
        parts += [
            f"dtype={meta.dtype}\\n",
            f"shape={tuple(meta.shape)}\\n",
            f"requires_grad={meta.requires_grad}\\n",
            f"stride={meta.stride}\\n",
        ]
    elif isinstance(meta, list | tuple | dict):
        for value in meta.values() if isinstance(meta, dict) else meta:
            _add_metadata(parts, value)


def _tensor_label(tensor: Tensor) -> str:
    return f"{tensor.dtype}{list(tensor.shape)}\\n"

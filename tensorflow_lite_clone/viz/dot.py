"""Graphviz: a graph as text in the language DOT, and the program that draws it."""

from __future__ import annotations

import math
import shutil
import subprocess
from typing import TYPE_CHECKING

from tensorflow_lite_clone.viz import wording
from tensorflow_lite_clone.viz.contract import depths
from tensorflow_lite_clone.viz.model import Group, Node

if TYPE_CHECKING:
    from tensorflow_lite_clone.viz.graph import Graph

#: Per kind of node its colour and shape.
STYLES = {
    "op": 'fillcolor="#eef2f7" style="rounded,filled"',
    "module": 'fillcolor="#fdf3d0" style=filled',
    "parameter": 'fillcolor="#cfe3ff" style=filled',
    "buffer": 'fillcolor="#e5dcfa" style=filled',
    "input": 'fillcolor="#d8f0c8" style=filled',
    "leaf": 'fillcolor="#e4f3dc" style=filled',
    "constant": 'fillcolor="#f3f3f3" style=filled',
    "output": 'fillcolor="#ffe3c2" style="filled,bold"',
}
EDGES = {
    "data": "",
    "view": " [style=dashed]",
    "inplace": ' [color="#c0392b" penwidth=1.6]',
    "next": ' [style=dotted constraint=false tooltip="in the next one"]',
    "order": " [style=invis]",
}
#: From nothing to the most, as red, green, blue.
COLD, HOT = (255, 250, 240), (226, 88, 61)
#: Seconds after which the program is stopped: it can take hours over thousands of tangled edges.
PATIENCE = 120


def text(graph: Graph) -> str:
    """The graph in DOT, all groups open."""
    lines = [
        "digraph graph_picture {",
        '  rankdir=TB; ranksep=0.3; nodesep=0.25; bgcolor="white"; compound=true;',
        '  fontname="Helvetica"; fontsize=10; labeljust=l; tooltip=" ";',
        '  node [fontname="Helvetica" fontsize=10 height=0.2 shape=box color="#8494a7"];',
        '  edge [arrowsize=0.6 color="#5d6b7a"];',
    ]
    if len(graph.nodes) > 1000:
        lines.append("  splines=line; nslimit=2; nslimit1=2; mclimit=0.5;")
    numbers = {key: f"n{number}" for number, key in enumerate(graph.nodes)}
    members: dict[str, list[str]] = {"": [], **{key: [] for key in graph.groups}}
    most = _most(graph)
    for key, node in graph.nodes.items():
        members[node.group].append(f"{numbers[key]} {_box(node, graph.colors, most)};")
    children: dict[str, list[str]] = {key: [] for key in members}
    for key, group in graph.groups.items():
        children[group.parent].append(key)
    stack = [("", False)]
    level = depths(graph.groups)
    clusters = {key: f"cluster{number}" for number, key in enumerate(graph.groups)}
    while stack:
        key, done = stack.pop()
        indent = "  " * (level[key] + (not done and 1))
        if done:
            lines.append(f"{indent}}}")
            continue
        if key:
            lines.append(f"{indent[2:]}subgraph {clusters[key]} {{")
            lines.append(f"{indent}{_frame(graph.groups[key], level[key])}")
            stack.append((key, True))
        lines += [indent + line for line in members[key]]
        stack += [(child, False) for child in reversed(children[key])]
    for edge in graph.edges:
        lines.append(f"  {numbers[edge.source]} -> {numbers[edge.target]}{EDGES[edge.kind]};")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _box(node: Node, colors: str, most: float) -> str:
    lines = [node.label + ("  (in place)" if node.inplace else "")]
    if node.kind == "module" and node.parameters:
        lines.append(f"{node.parameters:,} parameters")
    lines += [wording.tensor(node), wording.measured(node, colors)]
    if colors != "gradient":
        lines.append(wording.measured(node, "gradient"))
    label = quoted("\n".join([line for line in lines if line]))
    style = STYLES[node.kind]
    if node.view:
        style = style.replace("rounded,filled", "rounded,filled,dashed")
    fill = _heat(node, colors, most)
    if fill:
        style += f' fillcolor="{fill}"'
    if broken(node):
        style += ' fillcolor="#ff9d94" color="#b00020" penwidth=2'
    tooltip = quoted("\n".join([node.label, *wording.details(node)]))
    return f"[label={label} tooltip={tooltip} {style}]"


def _frame(group: Group, level: int) -> str:
    fill = ("#fbfcfd", "#f4f7fa")[level % 2]
    style = "dashed" if group.repeats > 1 else "rounded"
    notes = [f"{name}: {line}" for name, line in group.notes.items()]
    tooltip = quoted("\n".join([group.title, *notes]))
    return (
        f'label={quoted(group.title)}; tooltip={tooltip}; bgcolor="{fill}"; color="#b6c2cf"; '
        f"style={style};"
    )


def _most(graph: Graph) -> float:
    values = [node.measure(graph.colors) for node in graph.nodes.values()]
    return max([value for value in values if value is not None and math.isfinite(value)], default=0)


def _heat(node: Node, colors: str, most: float) -> str:
    """The colour for a node's share of the most that a node has; nothing without a measure."""
    value = node.measure(colors)
    if value is None or not math.isfinite(value):
        return ""
    share = max(value / most, 0.0) if most > 0 else 0.0
    return "#" + "".join(
        [f"{round(a + (b - a) * share):02x}" for a, b in zip(COLD, HOT, strict=True)]
    )


def broken(node: Node) -> bool:
    """Whether its gradient is infinite or not a number, or backward could not compute it."""
    bad = node.gradient is not None and not math.isfinite(node.gradient)
    return bad or "overwritten" in node.notes


def quoted(words: str) -> str:
    """A string of DOT that shows these words as they are."""
    shown = "".join([c if c.isprintable() or c == "\n" else " " for c in words])
    shown = shown.encode("utf-8", "replace").decode()
    for mark, instead in (("\\", "\\\\"), ('"', '\\"'), ("&", "&amp;"), ("\n", "\\n")):
        shown = shown.replace(mark, instead)
    return f'"{shown}"'


def available() -> bool:
    """Whether the program is there."""
    return shutil.which("dot") is not None


def run(source: str, format: str) -> bytes:
    """The picture of DOT text as "svg", "png" or "pdf".

    Raises RuntimeError where the program is missing (and says what to install), fails, or needs
    more than `PATIENCE` seconds.
    """
    if not available():
        raise RuntimeError(
            "Graphviz's program dot is not installed (apt-get install graphviz, brew install "
            "graphviz)"
        )
    try:
        done = subprocess.run(
            ["dot", f"-T{format}"], input=source.encode(), capture_output=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(
            f"Graphviz's program dot was not done after {PATIENCE} seconds: fold() or collapse() "
            "the graph, or save it as .html"
        ) from error
    if done.returncode:
        problem = done.stderr.decode(errors="replace").strip()
        raise RuntimeError(f"Graphviz's program dot failed: {problem}")
    return done.stdout

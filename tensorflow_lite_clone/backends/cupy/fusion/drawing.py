"""A trace as a picture: its expressions as a graph in the DOT language."""

from __future__ import annotations

from collections.abc import Sequence

from tensorflow_lite_clone.fuse.formula import Trace
from tensorflow_lite_clone.fuse.symbol import Symbol, in_order


def dot(title: str, trace: Trace, operands: Sequence[str], results: Sequence[str]) -> str:
    """The graph from operands down to results; `operands` and `results` say what these are.

    What the trace gives beyond the results is not written.
    """
    lines = [
        "digraph {",
        f"  label={_quoted(title)}",
        "  labelloc=t",
        '  node [fontname="Helvetica", fontsize=11]',
    ]
    names: dict[int, str] = {}
    for symbol in in_order(trace.results):
        name = names[id(symbol)] = f"n{len(names)}"
        lines.append(f"  {name} [{_look(symbol, trace, operands)}]")
        lines += [f"  {names[id(operand)]} -> {name}" for operand in symbol.operands]
    for place, (symbol, said) in enumerate(zip(trace.results, results)):
        label = _quoted(f"result {place}\n{said}" if len(results) > 1 else f"result\n{said}")
        lines.append(f"  r{place} [label={label}, shape=box, style=filled, fillcolor=gray85]")
        lines.append(f"  {names[id(symbol)]} -> r{place}")
    return "\n".join([*lines, "}", ""])


def _look(symbol: Symbol, trace: Trace, operands: Sequence[str]) -> str:
    if symbol.name == "operand":
        label = f"{trace.names[symbol.value]}\n{operands[symbol.value]}"
        return f"label={_quoted(label)}, shape=box"
    if symbol.name == "number":
        return f"label={_quoted(repr(symbol.value))}, shape=plaintext"
    name = f"to {symbol.dtype.name}" if symbol.name == "astype" else symbol.name
    return f"label={_quoted(name)}, shape=ellipse"


def _quoted(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'

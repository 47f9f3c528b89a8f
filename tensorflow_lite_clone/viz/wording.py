"""How sizes, times and shapes are written in pictures."""

from __future__ import annotations

from tensorflow_lite_clone.viz.model import Node


def shape(sizes: tuple[int, ...] | None) -> str:
    """``2 x 3``; "scalar" without dimensions, nothing where it is not known."""
    return "" if sizes is None else " x ".join(map(str, sizes)) or "scalar"


def tensor(node: Node) -> str:
    """Shape and dtype, and the device if it is not the CPU."""
    device = "" if node.device == "cpu" else node.device
    return "  ".join([word for word in (shape(node.shape), node.dtype, device) if word])


def time(microseconds: float) -> str:
    """With the unit that leaves one to three digits before the point."""
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= factor:
            return f"{microseconds / factor:.3g} {unit}"
    return f"{microseconds:.3g} µs"


def memory(size: float) -> str:
    """Bytes in the largest unit of which there is one at least."""
    for factor, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(size) >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} B"


def measured(node: Node, what: str) -> str:
    """What a graph is coloured by, in words; nothing where it is not known."""
    value = node.measure(what)
    if value is None:
        return ""
    return {"time": time, "memory": memory}.get(what, lambda norm: f"|grad| {norm:.3g}")(value)


def details(node: Node) -> list[str]:
    """A line for each thing that is known of a node beside its label."""
    lines = [tensor(node)] if tensor(node) else []
    lines += [f"{name}: {text}" for name, text in node.notes.items()]
    if node.parameters:
        lines.append(f"{node.parameters:,} parameters")
    for what in ("time", "memory", "gradient"):
        if words := measured(node, what):
            lines.append(f"{what}: {words}")
    return lines

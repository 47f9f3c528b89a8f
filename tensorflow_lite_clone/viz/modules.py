"""The tree of a model's modules, as boxes in boxes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.tensor.uninitialized import is_lazy
from tensorflow_lite_clone.viz import wording
from tensorflow_lite_clone.viz.graph import Graph
from tensorflow_lite_clone.viz.model import Edge, Group, Node


def modules(model: Module, *, depth: int | None = None) -> Graph:
    """The modules of a model with their settings, parameters and buffers; nothing is run.

    A module with children is a box around them and around the parameters that are its own, the
    others are nodes. One that stands in several
    places is drawn in the first; the others point to it. `depth`: so many levels are open at first
    (None: as many as stay readable). Raises TypeError if `model` is no module.
    """
    if not isinstance(model, Module):
        raise TypeError(f"expected a module, got {type(model).__name__}")
    graph = Graph(f"modules of {type(model).__name__}", depth=depth)
    _Builder(graph).add(model, "", "", type(model).__name__)
    return graph


class _Builder:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.places: dict[int, str] = {}  # of modules, the path at which they came first
        self.last = ""  # the node that was added last

    def add(self, module: Any, path: str, parent: str, name: str) -> None:
        """Add a module and what lies below it."""
        kind = type(module).__name__
        key = path or "model"
        first = self.places.setdefault(id(module), key)
        children = [(n, child) for n, child in module._modules.items() if child is not None]
        if first == key and children:
            group = Group(key, path and name, kind, parent, notes=_described(module)[0])
            self.graph.groups[key] = group
            group.notes["parameters"] = f"{_count(module.parameters()):,}"
            for n, parameter in module.named_parameters(recurse=False):
                self._add_parameter(parameter, f"{path}.{n}" if path else n, key, n)
            for n, child in children:
                self.add(child, f"{path}.{n}" if path else n, key, n)
            return
        made = Node(key, f"{name}: {kind}" if path else kind, "module", parent, op=kind)
        if first == key:
            made.notes, made.device = _described(module)
            made.parameters = _count(module.parameters(recurse=False))
        else:
            made.label += f"  (again {first})"
        self._append(made)

    def _add_parameter(self, parameter: Tensor, key: str, parent: str, name: str) -> None:
        made = Node(key, name, "parameter", parent, dtype=parameter.dtype.name)
        made.device, made.parameters = str(parameter.device), _count([parameter])
        if not is_lazy(parameter):
            made.shape, made.size = tuple(parameter.shape), parameter.nbytes
        self._append(made)

    def _append(self, made: Node) -> None:
        self.graph.nodes[made.key] = made
        if self.last:
            self.graph.edges.append(Edge(self.last, made.key, "order"))
        self.last = made.key


def _described(module: Any) -> tuple[dict[str, str], str]:
    """Settings, parameters and buffers of the module itself, and the device of the first."""
    notes, device = {}, ""
    if extra := module.extra_repr():
        notes["settings"] = extra
    for members in (module.named_parameters, module.named_buffers):
        for name, tensor in members(recurse=False):
            device = device or str(tensor.device)
            shape = "not known yet" if is_lazy(tensor) else wording.shape(tensor.shape)
            notes[name] = f"{shape}  {tensor.dtype.name}"
    return notes, device


def _count(parameters: Iterable[Tensor]) -> int:
    return sum([p.numel() for p in parameters if not is_lazy(p)])

"""The graph that autograd built, from a tensor's ``grad_fn`` down to the leaves."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tensorflow_lite_clone.autograd.apply import current_edge
from tensorflow_lite_clone.autograd.gradients import GradientEdge, grad
from tensorflow_lite_clone.autograd.node import GraphNode, Leaf
from tensorflow_lite_clone.autograd.node import Node as Operation
from tensorflow_lite_clone.ops.create.constructors import ones_like
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Parameter, Tensor
from tensorflow_lite_clone.viz import wording
from tensorflow_lite_clone.viz.graph import Graph
from tensorflow_lite_clone.viz.model import Edge, Node

_WRITES_INTO_VIEW = "CopySlices"


def backward(
    outputs: Tensor | Iterable[Tensor], params: Any = None, *, gradients: bool = False
) -> Graph:
    """The autograd graph above `outputs`: what ``backward()`` walks, arrows as in the forward.

    `params` gives names to leaves: a module, or (name, tensor) pairs or a dict of them, as
    ``model.named_parameters()``; other leaves show their attribute `name` if they have one. A graph
    that a backward pass has freed is drawn as well.

    `gradients`: nodes get the norms of the gradients that arrive at them. A backward pass of its
    own computes them (from ones, if an output is no scalar), which keeps the graph and leaves all
    ``.grad`` alone, but runs the hooks on the way. Where the graph is freed, the norms are those in
    ``.grad``, of leaves and of tensors that retain it.

    Raises RuntimeError when an output has no graph.
    """
    tensors = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    roots = [_edge_of(tensor) for tensor in tensors]
    names = {id(tensor): name for name, tensor in _named(params)}
    order = _walk([node for node, _ in roots])
    keys = {node: f"n{number}" for number, node in enumerate(order)}
    norms = _norms(order, tensors) if gradients else {}
    graph = Graph("backward graph")
    for node, key in keys.items():
        made = _leaf(node, key, names) if isinstance(node, Leaf) else _operation(node, key)
        made.gradient = norms.get(node)
        graph.nodes[key] = made
        for place, (child, _) in enumerate(node.next_functions):
            if child is not None:
                kind = "data" if place else "inplace" * made.inplace or "view" * made.view or "data"
                graph.edges.append(Edge(keys[child], key, kind))
    for number, (tensor, (node, _)) in enumerate(zip(tensors, roots)):
        made = _box(f"out{number}", tensor.name or "output", "output", node, tensor.shape)
        made.sequence = -1  # it is the node's result, not the node
        graph.nodes[made.key] = made
        graph.edges.append(Edge(keys[node], made.key))
    return graph


def _edge_of(tensor: Tensor) -> tuple[Any, int]:
    edge = current_edge(tensor)
    if edge is None:
        raise RuntimeError(
            "there is no graph to draw: the tensor does not require grad and has no grad_fn"
        )
    return edge


def _named(params: Any) -> Iterable[tuple[str, Tensor]]:
    if hasattr(params, "named_parameters"):
        return params.named_parameters()
    return params.items() if isinstance(params, Mapping) else params or ()


def _walk(roots: list[Any]) -> list[Any]:
    """All nodes in the order in which they were made, leaves before the one that reads them; those
    that several read come first of all."""
    seen = set(roots)
    stack = list(roots)
    while stack:
        for child, _ in stack.pop().next_functions:
            if child is not None and child not in seen:
                seen.add(child)
                stack.append(child)
    nodes = sorted([node for node in seen if not isinstance(node, Leaf)], key=_age)
    readers = Counter([child for node in nodes for child in {x for x, _ in node.next_functions}])
    order = {x: None for node in nodes for x in _leaves(node) if readers[x] > 1}
    for node in nodes:
        order.update({x: None for x in _leaves(node)})
        order[node] = None
    order.update(dict.fromkeys(roots))  # outputs that are leaves
    return list(order)


def _leaves(node: Any) -> list[Leaf]:
    return [x for x, _ in node.next_functions if isinstance(x, Leaf)]


def _age(node: GraphNode) -> int:
    return node.sequence


def _box(key: str, label: str, kind: str, node: Any, shape: Any = None) -> Node:
    """A box with the shape, dtype and device of the node's (first) output."""
    native = node.dtypes
    shapes = [(shape, native)]
    if node.multi_output:
        shapes = [pair for pair in zip(node.shapes, native) if pair[0] is not None]
    elif shape is None:
        shapes = [(node.shapes, native)]
    made = Node(key, label, kind, device=str(node.backend.device), sequence=node.sequence)
    if shapes:
        sizes, native = shapes[0]
        dtype = node.backend.dtypes[native]
        made.shape, made.dtype = tuple(sizes if shape is None else shape), dtype.name
        made.size = math.prod(made.shape) * dtype.itemsize
    if len(shapes) > 1:
        made.notes["outputs"] = ", ".join([wording.shape(sizes) for sizes, _ in shapes])
    return made


def _leaf(node: Leaf, key: str, names: Mapping[int, str]) -> Node:
    tensor = node.variable
    kind = "parameter" if isinstance(tensor, Parameter) else "leaf"
    name = names.get(id(tensor)) or getattr(tensor, "name", None) or kind
    made = _box(key, str(name), kind, node)
    if tensor is None:
        made.notes["tensor"] = "does not exist any more"
    elif kind == "parameter":
        made.parameters = math.prod(node.shapes)
    return made


def _operation(node: Any, key: str) -> Node:
    full = node.name()
    made = _box(key, full.rpartition(":")[2].partition("Backward")[0], "op", node)
    made.notes["grad_fn"] = full
    made.inplace = made.label == _WRITES_INTO_VIEW
    if isinstance(node, Operation) and hasattr(node, "op"):
        made.op, made.view = node.op.name, node.op.view
        _describe_saved(node, made)
    return made


def _describe_saved(node: Operation, made: Node) -> None:
    """What the node keeps for backward, and whether that was written to since."""
    if node.saved is None:
        made.notes["saved"] = "freed by a backward pass"
        return
    total, lines = 0, []
    for place, storage, version in zip(node.op.plans[node.mask].saves, node.saved, node.versions):
        if not isinstance(storage, Storage):  # nothing, or what a saved-tensor hook made of it
            continue
        inputs = node.op.inputs
        name = "result" if place < 0 else inputs[place] if place < len(inputs) else str(place)
        size = storage.physical.size * storage.backend.dtypes[storage.physical.dtype].itemsize
        total += size
        lines.append(f"{name} ({wording.shape(storage.physical.shape)}, {wording.memory(size)})")
        now = storage.current_version()
        if now != version and not (node.op.recomputable and place < 0):
            made.notes["overwritten"] = (
                f"{name} is at version {now}, but was saved at {version}: backward fails here"
            )
    if lines:
        made.notes["saved"] = ", ".join(lines)
        made.memory = total


# -- gradients ------------------------------------------------------------------------------------


def _norms(nodes: list[Any], outputs: list[Tensor]) -> dict[Any, float]:
    """Per node the norm of the gradient that arrives at it."""
    retained = [
        (node, tensor)
        for node in nodes
        if node.arrival_hooks is not None
        for tensor in [reference() for reference in node.arrival_hooks.retained.values()]
        if tensor is not None
    ]
    leaves = [node for node in nodes if isinstance(node, Leaf)]
    if any([getattr(node, "saved", ()) is None for node in nodes]):
        alive = [(node, node.variable) for node in leaves if node.variable is not None]
        known = [(node, tensor._grad) for node, tensor in alive + retained]
        return {node: _norm(g) for node, g in known if g is not None}
    norms: dict[Any, float] = {}

    def note(node: Any, grads: tuple) -> None:
        arrived = [_norm(g) for g in grads if g is not None]
        if arrived:
            norms[node] = math.hypot(*arrived) if len(arrived) > 1 else arrived[0]

    before = [(tensor, tensor._grad) for _, tensor in retained]
    hooks = [
        node.register_prehook(lambda grads, node=node: note(node, grads))
        for node in nodes
        if not isinstance(node, Leaf)
    ]
    ends: Any = [GradientEdge(node, 0) for node in leaves]
    try:
        found = grad(
            outputs,
            ends,
            [ones_like(tensor) for tensor in outputs],
            retain_graph=True,
            allow_unused=True,
        )
    finally:
        for hook in hooks:
            hook.remove()
        for tensor, kept in before:
            tensor._grad = kept
    norms.update({node: _norm(g) for node, g in zip(leaves, found) if g is not None})
    return norms


def _norm(g: Tensor) -> float:
    """The 2-norm, in float64: squares of half-precision numbers overflow."""
    return float(g.detach().abs().double().norm().item())

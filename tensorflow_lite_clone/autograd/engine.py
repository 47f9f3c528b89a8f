"""Backward: walk the graph from its outputs to its leaves, newest node first.

A node's sequence number is higher than those of its inputs, so descending order is topological.
The walk is iterative; gradients are reduced to their input's shape and dtype here and nowhere
else; a gradient is accumulated in place only when the engine owns its memory.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from tensorflow_lite_clone.autograd.apply import recording, wrap
from tensorflow_lite_clone.autograd.namespaces import recorded
from tensorflow_lite_clone.autograd.node import GraphNode, Leaf
from tensorflow_lite_clone.core.shape import reduced_axes
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor

Edge = tuple[GraphNode, int]
#: Run after the backward pass that is under way, then forgotten.
final_callbacks: list[Any] = []

#: Anomaly detection: called as (node, gradients or None, error or None) after each node.
inspector: Any = None

_by_age = attrgetter("sequence")


def run_backward(
    roots: list[tuple[Edge, Any]],
    *,
    retain_graph: bool,
    create_graph: bool,
    wanted: set[Edge] | None = None,
    accumulate: bool = True,
) -> dict[Edge, Any]:
    """Send gradients from `roots`, pairs of an edge and its gradient, down the graph.

    Gradients are arrays, or Tensors with `create_graph`. Leaves accumulate into ``.grad`` if
    `accumulate`. With `wanted`, only what leads to these edges is computed, and the gradients
    that arrived there are returned (edges that none reached are absent).
    """
    with recording(create_graph):
        captured = _Walk(retain_graph, create_graph, wanted, accumulate).run(roots)
    while final_callbacks:
        final_callbacks.pop(0)()
    return captured


class _Walk:
    """The state of one backward pass.

    ``pending[node]`` holds, for each of the node's outputs, the gradient that arrived so far and
    whether its memory is the engine's: ``[g0, owned0, g1, owned1, ...]``.
    """

    __slots__ = (
        "accumulate", "captured", "create_graph", "missing", "pending", "retain_graph", "useful",
        "wanted",
    )  # fmt: skip

    def __init__(
        self, retain_graph: bool, create_graph: bool, wanted: set[Edge] | None, accumulate: bool
    ) -> None:
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.wanted = wanted
        self.accumulate = accumulate
        self.pending: dict[Any, list] = {}
        self.captured: dict[Edge, Any] = {}
        self.useful: set[Any] = set()  # the nodes and leaves that gradients are for
        self.missing: dict[Any, int] = {}  # per leaf, the gradients yet to arrive

    def run(self, roots: list[tuple[Edge, Any]]) -> dict[Edge, Any]:
        nodes = self._plan([edge[0] for edge, _ in roots])
        pending, missing = self.pending, self.missing
        for edge, g in roots:
            if edge[0] in self.useful:
                self._arrive(edge[0], edge[1], g, False)
        for edge, _ in roots:
            if edge[0] in missing:
                self._settle(edge[0])
        while nodes:
            node = nodes.pop()
            slot = pending.pop(node, None)
            if slot is not None:
                self._visit(node, slot)
            for edge in node.edges:
                if edge is not None and edge[0] in missing:
                    self._settle(edge[0])
        return self.captured

    def _plan(self, starts: list) -> list:
        """The nodes to visit, the first one last; counts how many gradients each leaf awaits."""
        useful = self.useful
        nodes: list[Any] = []
        leaves: list[Any] = []
        stack = starts.copy()
        while stack:
            node = stack.pop()
            if type(node) is Leaf:
                leaves.append(node)
            elif node not in useful:
                useful.add(node)
                nodes.append(node)
                for edge in node.edges:
                    if edge is not None:
                        stack.append(edge[0])
        nodes.sort(key=_by_age)
        if self.wanted is not None:
            nodes = self._restrict(nodes)
            edges = [edge[0] for node in nodes for edge in node.edges if edge is not None]
            leaves = [leaf for leaf in starts + edges if type(leaf) is Leaf and leaf in useful]
        missing = self.missing
        for leaf in leaves:
            missing[leaf] = missing.get(leaf, 0) + 1
        useful.update(missing)
        return nodes

    def _restrict(self, nodes: list) -> list:
        """Keep the nodes from which a wanted edge can be reached."""
        assert self.wanted is not None
        useful = self.useful
        useful.clear()
        useful.update([node for node, _ in self.wanted])
        for node in nodes:
            if any([edge is not None and edge[0] in useful for edge in node.edges]):
                useful.add(node)
        return [node for node in nodes if node in useful]

    def _arrive(self, node: Any, index: int, g: Any, owned: bool) -> None:
        slot = self.pending.get(node)
        if slot is None:
            if not node.several:
                self.pending[node] = [g, owned]
                return
            slot = self.pending[node] = [None, False] * len(node.shapes)
        index += index
        present = slot[index]
        if present is None:
            slot[index] = g
            slot[index + 1] = owned
        elif slot[index + 1] and present.shape:
            present += g
        else:
            slot[index] = present + g
            slot[index + 1] = not self.create_graph

    def _settle(self, leaf: Any) -> None:
        """Count one arrival (or its absence) at a leaf, and finish the leaf after the last."""
        missing = self.missing
        missing[leaf] -= 1
        if missing[leaf]:
            return
        slot = self.pending.pop(leaf, None)
        if slot is None:
            return
        g, owned = slot
        if leaf.pre_hooks:
            (g,), owned = self._run_pre_hooks(leaf, [g]), False
        if self.wanted is not None:
            self._capture(leaf, [g])
        if self.accumulate and g is not None:
            self._accumulate(leaf, g, owned)

    def _visit(self, node: Any, slot: list) -> None:
        """Compute a node's input gradients and hand them on."""
        grads = slot[::2]
        if node.pre_hooks:
            grads = self._run_pre_hooks(node, grads)
        useful = self.useful
        if self.wanted is not None:
            self._capture(node, grads)
            if not any([edge is not None and edge[0] in useful for edge in node.edges]):
                return
        create_graph = self.create_graph
        saved = node.saved
        if inspector is None:
            results = node.gradients(grads, create_graph)
        else:
            results = _inspected(node, grads, create_graph)
        if node.hooks:
            results = self._run_hooks(node, results, grads)
        position = -1
        for edge in node.edges:
            position += 1
            if edge is None:
                continue
            gx = results[position]
            child, index = edge
            if gx is None or child not in useful:
                continue
            given = gx
            shape, dtype = child.shapes, child.dtypes
            if child.several:
                shape, dtype = shape[index], dtype[index]
            if gx.shape != shape:
                gx = self._reduce(gx, child, shape)
            have = (gx._storage.array if create_graph else gx).dtype
            if have is not dtype and have != dtype:
                gx = self._cast(gx, child, dtype)
            owned = not create_graph and (
                gx is not given or _is_fresh(node, gx, position, results, grads, saved)
            )
            self._arrive(child, index, gx, owned)
        if not self.retain_graph:
            node.release()

    def _reduce(self, gx: Any, child: GraphNode, shape: tuple) -> Any:
        """Sum out the axes along which the input was broadcast."""
        F = self._namespace(child)
        axes = reduced_axes(gx.shape, shape)
        if axes:
            gx = F.sum(gx, axis=axes, keepdims=True)
        return F.reshape(gx, shape) if gx.shape != shape else gx

    def _cast(self, gx: Any, child: GraphNode, native: Any) -> Any:
        """Give the gradient its input's dtype; real inputs take the real part."""
        F = self._namespace(child)
        dtype = child.backend.dtypes[native]
        if gx.dtype.kind == "c" and dtype.kind != "c":
            gx = F.real(gx)
        return F.astype(gx, dtype)

    def _namespace(self, node: GraphNode) -> Any:
        return recorded(node.backend) if self.create_graph else node.backend.F

    def _capture(self, node: GraphNode, grads: list) -> None:
        assert self.wanted is not None
        for index, g in enumerate(grads):
            if g is not None and (node, index) in self.wanted:
                self.captured[node, index] = g

    def _accumulate(self, leaf: Leaf, g: Any, owned: bool) -> None:
        tensor = leaf.reference()
        if tensor is None:
            return
        present = tensor._grad
        backend = leaf.backend
        if self.create_graph:
            tensor._grad = g if present is None else present + g
        elif present is None:
            if not owned or type(g) is not backend.array_type:
                g = backend.F.copy(g)
            tensor._grad = wrap(g, backend)
        elif present._edge is not None:
            tensor._grad = present + wrap(g, backend)
        else:
            storage = present._storage
            storage.array += g
            storage.bump()
        if tensor._post_accumulate_hooks:
            for hook in list(tensor._post_accumulate_hooks.values()):
                hook(tensor)

    def _run_pre_hooks(self, node: GraphNode, grads: list) -> list:
        tensors = self._as_tensors(grads, node)
        for hook in list(node.pre_hooks or ()):
            hook(tensors)
        return self._as_values(tensors)

    def _run_hooks(self, node: Any, results: Any, grads: list) -> Any:
        inputs = tuple(self._as_tensors(results, node))
        outputs = tuple(self._as_tensors(grads, node))
        for hook in list(node.hooks.values()):
            replaced = hook(inputs, outputs)
            if replaced is not None:
                inputs = replaced if isinstance(replaced, tuple) else (replaced,)
        return self._as_values(inputs)

    def _as_tensors(self, values: Any, node: GraphNode) -> list:
        if self.create_graph:
            return list(values)
        return [None if v is None else wrap(v, node.backend) for v in values]

    def _as_values(self, tensors: Any) -> list:
        if self.create_graph:
            return list(tensors)
        return [t._storage.array if isinstance(t, Tensor) else t for t in tensors]


def _inspected(node: Any, grads: list, create_graph: bool) -> Any:
    try:
        results = node.gradients(grads, create_graph)
    except Exception as error:
        inspector(node, None, error)
        raise
    inspector(node, results, None)
    return results


def _is_fresh(
    node: Any, gx: Any, position: int, results: Any, grads: list, saved: Any
) -> bool:
    """Whether nobody else holds this gradient's memory: no view, no input, not given twice."""
    if not node.makes_new_gradients or not node.backend.owns_memory(gx):
        return False
    for g in grads:
        if gx is g:
            return False
    if len(results) > 1:
        for other, value in enumerate(results):
            if gx is value and other != position:
                return False
    for storage in saved or ():
        if type(storage) is Storage and gx is storage.array:
            return False
    return True

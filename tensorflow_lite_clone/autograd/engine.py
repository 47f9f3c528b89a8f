"""Backward: walk the graph from its outputs to its leaves, newest node first.

A node's sequence number is higher than those of its inputs, so descending order is topological.
The walk is iterative; gradients are reduced to their input's shape and dtype here and nowhere else;
one is accumulated in place only when the engine owns its memory. A sparse gradient is a sparse
tensor from the formula that made it on, in passes over arrays too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from tensorflow_lite_clone.autograd.apply import wrap_freely
from tensorflow_lite_clone.autograd.hooks import check_replacements
from tensorflow_lite_clone.autograd.interpreters import interpreters
from tensorflow_lite_clone.autograd.mode import followed, mode
from tensorflow_lite_clone.autograd.namespaces import recorded
from tensorflow_lite_clone.autograd.node import GraphNode, Leaf
from tensorflow_lite_clone.autograd.sparse import value_of
from tensorflow_lite_clone.core import locks
from tensorflow_lite_clone.core.shape import reduced_axes
from tensorflow_lite_clone.core.strides import gradient_strides
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.result_layout import laid_out
from tensorflow_lite_clone.storage import Storage, in_logical_layout, strides_of
from tensorflow_lite_clone.tensor import Tensor

_new = object.__new__
Edge = tuple[GraphNode, int]
_accumulating = locks.lock()


class _Current(threading.local):
    walk: _BackwardPass | None = None
    passes = 0  # backward passes begun so far


#: This thread's backward pass that is under way.
current = _Current()

_by_age = attrgetter("sequence")


def run_backward(
    roots: list[tuple[Edge, Any]],
    *,
    retain_graph: bool,
    create_graph: bool,
    wanted: set[Edge] | None = None,
    accumulate: bool = True,
    recording: bool | None = None,
) -> dict[Edge, Any]:
    """Send gradients from `roots`, pairs of an edge and its gradient, down the graph.

    Gradients are arrays, or Tensors with `create_graph`, whose graph is recorded unless
    `recording` is off. Leaves accumulate into ``.grad`` if
    `accumulate`. With `wanted`, only what leads to these edges is computed, and the gradients
    that arrived there are returned (edges that none reached are absent). As in PyTorch they may
    be views of one another, of the roots' gradients and of what a `Function` returned.
    """
    outer, recorded_outside = current.walk, mode.grad
    current.passes += 1
    current.walk = walk = _BackwardPass(retain_graph, create_graph, wanted, accumulate)
    mode.grad = create_graph if recording is None else recording
    try:
        captured = walk.run(roots)
        mode.grad = recorded_outside
        for callback in walk.callbacks:  # they may queue more
            callback()
    finally:
        mode.grad = recorded_outside
        current.walk = outer
    return captured


def queue_callback(callback: Callable[[], Any]) -> None:
    """Call `callback` at the end of this thread's backward pass; RuntimeError outside of one."""
    if current.walk is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    current.walk.callbacks.append(callback)


class _BackwardPass:
    """The state of one backward pass.

    ``pending[node]`` holds, for each of the node's outputs, the gradient that arrived so far and
    whether its memory is the engine's: ``[g0, owned0, g1, owned1, ...]``.
    """

    __slots__ = (
        "accumulate", "callbacks", "captured", "create_graph", "missing", "notes", "pending",
        "plain", "retain_graph", "shared", "sparse", "useful", "wanted",
    )  # fmt: skip

    def __init__(
        self, retain_graph: bool, create_graph: bool, wanted: set[Edge] | None, accumulate: bool
    ) -> None:
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.wanted = wanted
        self.accumulate = accumulate
        self.plain = wanted is None and not create_graph
        self.sparse = False  # whether sparse gradients were met; then nodes are visited with care
        self.callbacks: list[Callable[[], Any]] = []
        self.notes: dict[Any, Any] = {}  # of hooks, for the time of this pass
        self.pending: dict[Any, list] = {}
        self.captured: dict[Edge, Any] = {}
        self.useful: set[Any] = set()  # the nodes and leaves that gradients are for
        self.shared: set[Any] = set()  # the nodes at which several gradients may come together
        self.missing: dict[Any, int] = {}  # per leaf, the gradients yet to arrive

    def run(self, roots: list[tuple[Edge, Any]]) -> dict[Edge, Any]:
        nodes = self._plan([edge[0] for edge, _ in roots])
        pending, missing = self.pending, self.missing
        for edge, g in roots:
            if edge[0] in self.useful:
                if isinstance(g, Tensor) and g.is_sparse:
                    self._meet_sparse()
                self._accumulate_input_grad(edge[0], edge[1], g, False)
        for edge, _ in roots:
            if edge[0] in missing:
                self._finish_leaf(edge[0])
        while nodes:
            node = nodes.pop()
            slot = pending.pop(node, None)
            if slot is not None:
                self._run_node(node, slot)
            for edge in node.edges:
                if edge is not None and edge[0] in missing:
                    self._finish_leaf(edge[0])
        return self.captured

    def _plan(self, starts: list) -> list:
        """The nodes to visit, the first one last; counts how many gradients each leaf awaits."""
        useful, shared, missing = self.useful, self.shared, self.missing
        nodes: list[Any] = []
        stack = starts.copy()
        while stack:
            node = stack.pop()
            if node in useful:
                shared.add(node)
                if node in missing:
                    missing[node] += 1
                continue
            useful.add(node)
            if type(node) is Leaf:
                missing[node] = 1
                continue
            nodes.append(node)
            for edge in node.edges:
                if edge is not None:
                    stack.append(edge[0])
        nodes.sort(key=_by_age)
        if self.wanted is not None:
            nodes = self._restrict(nodes)
            edges = [edge[0] for node in nodes for edge in node.edges if edge is not None]
            missing.clear()
            for leaf in starts + edges:
                if type(leaf) is Leaf and leaf in useful:
                    missing[leaf] = missing.get(leaf, 0) + 1
        shared.update(missing)
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

    def _accumulate_input_grad(self, node: Any, index: int, g: Any, owned: bool) -> None:
        slot = self.pending.get(node)
        if slot is None:
            if not node.multi_output:
                self.pending[node] = [g, owned]
                return
            slot = self.pending[node] = [None, False] * len(node.shapes)
        backend = node.backend_of(index)
        index += index
        present = slot[index]
        if present is None:
            slot[index] = g
            slot[index + 1] = owned
        elif self.sparse:
            slot[index] = self._sum(present, g, backend)
            slot[index + 1] = False
        elif slot[index + 1] and present.shape:
            slot[index] = backend.add_to(present, g)
        else:
            slot[index] = backend.add(present, g)
            slot[index + 1] = not self.create_graph

    def _finish_leaf(self, leaf: Any) -> None:
        """Count one arrival (or its absence) at a leaf, and finish the leaf after the last."""
        missing = self.missing
        left = missing[leaf] = missing[leaf] - 1
        if left:
            return
        slot = self.pending.pop(leaf, None)
        if slot is None:
            return
        g, owned = slot
        if leaf.arrival_hooks:
            (g,), owned = self._run_arrival_hooks(leaf, [g], self.accumulate), False
        if not self.accumulate:
            self._capture(leaf, [g])
        elif g is not None:
            self._accumulate(leaf, g, owned)

    def _run_node(self, node: Any, slot: list) -> None:
        """Compute a node's input gradients and hand them on."""
        create_graph = self.create_graph
        saved = node.saved
        if (
            self.plain
            and not node.arrival_hooks
            and not node.hooks
            and not hooks.around_gradient
            and node.backend.alone
        ):
            grads = slot[:1] if len(slot) == 2 else slot[::2]
            results = node.gradients(grads, False)
        else:
            found = self._visit_with_hooks(node, slot)
            if found is None:
                return
            grads, results = found
        pending, shared, useful = self.pending, self.shared, self.useful
        position = -1
        for edge in node.edges:
            position += 1
            if edge is None:
                continue
            given = gx = results[position]
            child, index = edge
            if gx is None or child not in useful:
                continue
            shape, dtype = child.shapes, child.dtypes
            if child.multi_output:
                shape, dtype = shape[index], dtype[index]
            if gx.shape != shape:
                gx = self._reduce(gx, child.backend_of(index), shape)
            have = gx.dtype  # of a sparse gradient never a native one
            if have is not dtype and (create_graph or have != dtype):
                gx = self._cast(gx, child.backend_of(index), dtype)
            if create_graph and interpreters.dispatch.lowers:
                gx = interpreters.dispatch.lower(gx)
            owned = not create_graph and (
                gx is not given
                # Nobody asks of a gradient that stays alone.
                or (child in shared and _is_fresh(node, gx, position, results, grads, saved))
            )
            if child in pending or child.multi_output:
                self._accumulate_input_grad(child, index, gx, owned)
            else:
                pending[child] = [gx, owned]
        if not self.retain_graph and node.saved:
            node.saved = None

    def _visit_with_hooks(self, node: Any, slot: list) -> tuple[list, Any] | None:
        """The gradients that arrived and those of the inputs; None where the walk ends."""
        grads = slot[::2]
        useful = self.useful
        needed = None
        if self.wanted is not None:
            # As in PyTorch, hooks change what is captured only where the walk ends.
            needed = tuple([edge is not None and edge[0] in useful for edge in node.edges])
            ends = not any(needed)
            if ends and node.arrival_hooks:
                grads = self._run_arrival_hooks(node, grads, False)
            self._capture(node, grads)
            if ends:
                return None
        if node.arrival_hooks:
            grads = self._run_arrival_hooks(node, grads, True)
        if self.sparse and not self.create_graph and any([isinstance(g, Tensor) for g in grads]):
            return self._visit_sparse(node, grads, needed)
        return self._visit_values(node, grads, needed)

    def _visit_values(self, node: Any, grads: list, needed: Any) -> tuple[list, Any]:
        create_graph = self.create_graph
        backend = node.backend
        gradients = node.gradients if backend.alone else backend.guarded(node.gradients)
        if hooks.around_gradient:
            call = lambda grads: gradients(grads, create_graph, needed)
            results = hooks.run_backward(node, call, grads)
        else:
            results = gradients(grads, create_graph, needed)
        if node.hooks:
            results = self._run_hooks(node, results, grads)
        return grads, results

    def _visit_sparse(self, node: Any, grads: list, needed: Any) -> tuple[list, Any]:
        """`_visit_values` over Tensors, of which some are sparse, or over dense arrays where the
        gradient's formula has no sparse form."""
        tensors = self._as_tensors(grads, _backends_of_outputs(node, grads))
        try:
            results = node.gradients(tensors, True, needed)
        except RuntimeError:
            dense = [None if g is None else g.to_dense() for g in tensors]
            return self._visit_values(node, self._as_values(dense), needed)
        if node.hooks:
            results = self._run_hooks(node, results, grads)
        return grads, self._as_values(results)

    def _reduce(self, gx: Any, backend: Any, shape: tuple) -> Any:
        """Sum out the axes along which the input was broadcast."""
        if self.sparse:
            (gx,) = self._as_tensors([gx], [backend])
            (gx,) = self._as_values([gx.to_dense()])
        F = self._namespace(backend)
        axes = reduced_axes(gx.shape, shape)
        if axes:
            gx = F.sum(gx, axis=axes, keepdims=True)
        return F.reshape(gx, shape) if gx.shape != shape else gx

    def _cast(self, gx: Any, backend: Any, native: Any) -> Any:
        """Give the gradient its input's dtype; real inputs take the real part."""
        F = self._namespace(backend)
        dtype = backend.dtypes[native]
        if isinstance(gx, Tensor) and gx.is_sparse:
            self._meet_sparse()
            return gx.to(dtype)
        if self.create_graph and gx.dtype is dtype:
            return gx
        if gx.dtype.kind == "c" and dtype.kind != "c":
            gx = F.real(gx)  # a view of what others may hold
            if not self.create_graph and gx.dtype == native:
                return F.copy(gx)
        return F.cast(gx, dtype=dtype)

    def _namespace(self, backend: Any) -> Any:
        return recorded(backend) if self.create_graph else backend.F

    def _capture(self, node: GraphNode, grads: list) -> None:
        assert self.wanted is not None
        for index, g in enumerate(grads):
            if g is not None and (node, index) in self.wanted:
                self.captured[node, index] = g

    def _accumulate(self, leaf: Leaf, g: Any, owned: bool) -> None:
        tensor = leaf.reference()
        if tensor is None or tensor._edge is None:  # it died, or wants no gradient any more
            return
        backend = leaf.backend
        with _accumulating:  # threads may share leaves
            present = tensor._grad
            if self.create_graph and not mode.grad:  # modes and classes see it: `python_dispatch`
                if present is not None:
                    present.add_(g)
                else:
                    tensor._grad = _unseen_copy(g, tensor)
            elif self.create_graph:
                if present is not None:
                    tensor._grad = _total(present, g)
                else:
                    tensor._grad = g.clone() if g.is_sparse else _copied(g, tensor)
            elif self.sparse or (present is not None and present.is_sparse):
                given: Any = self._as_tensors([g], [backend])[0]
                if present is None:
                    tensor._grad = kept = given.clone()
                    if given.is_sparse:  # as in PyTorch, it is not known to be coalesced
                        kept._coalesced_(given._nnz() < 2)
                elif present.is_sparse and not given.is_sparse:
                    tensor._grad = _total(present, given)
                else:
                    present.add_(given)
            elif present is None:
                if not owned or type(g) is not backend.array_type:
                    g = backend.F.copy(g)
                if backend.lays and len(g.shape) == 4:
                    g = in_logical_layout(g, tensor._storage)
                owner = tensor._storage.physical  # given up, it is row-major
                if not (
                    backend.is_contiguous(g)
                    and (type(owner) is not backend.array_type or backend.is_contiguous(owner))
                ):
                    g = laid_out(backend, g, gradient_strides(g.shape, strides_of(tensor._storage)))
                made = _new(Storage)
                made.array = g
                made.backend = backend
                made.version = 0
                made.root = None
                tensor._grad = grad = _new(Tensor)
                grad._storage = made
                grad._edge = None
                grad._view = None
                if hooks.on_storage:
                    for created in hooks.on_storage:
                        created(made)
            else:
                storage = present._storage
                storage.physical = backend.add_to(storage.physical, g)
                storage.bump()
        if tensor._post_accumulate_hooks:
            for hook in list(tensor._post_accumulate_hooks.values()):
                result = hook(tensor)
                if result is not None and result is not tensor:
                    raise RuntimeError("Tensor post accumulate grad hooks should return None.")
        if leaf.hooks:
            self._run_hooks(leaf, (), [g])

    def _run_arrival_hooks(self, node: GraphNode, grads: list, visited: bool) -> list:
        hooks = node.arrival_hooks
        assert hooks is not None
        tensors = self._as_tensors(grads, _backends_of_outputs(node, grads))
        hooks.of_tensors(tensors)
        if visited and hooks.before:
            hooks.of_node(tensors)
        return self._as_values(tensors)

    def _run_hooks(self, node: Any, results: Any, grads: list) -> Any:
        edges = node.edges if results else ()  # a leaf has none
        homes = [node.backend if e is None else e[0].backend_of(e[1]) for e in edges]
        inputs = tuple(self._as_tensors(results, homes))
        outputs = tuple(self._as_tensors(grads, _backends_of_outputs(node, grads)))
        for hook in list(node.hooks.values()):
            replaced = hook(inputs, outputs)
            if replaced is not None:
                check_replacements(inputs, replaced, hook)
                inputs = replaced
        return self._as_values(inputs)

    def _as_tensors(self, values: Any, backends: Any) -> list:
        if self.create_graph:
            return list(values)
        return [
            v if v is None or isinstance(v, Tensor) else wrap_freely(v, backend)
            for v, backend in zip(values, backends, strict=True)
        ]

    def _as_values(self, tensors: Any) -> list:
        if self.create_graph:
            return list(tensors)
        return [value_of(t) if isinstance(t, Tensor) else t for t in tensors]

    def _meet_sparse(self) -> None:
        """From here on look out for sparse gradients."""
        self.sparse, self.plain = True, False

    def _sum(self, x: Any, y: Any, backend: Any) -> Any:
        """The sum of two gradients of which some may be sparse."""
        if not self.create_graph:
            x, y = [g if isinstance(g, Tensor) else wrap_freely(g, backend) for g in (x, y)]
        total = y + x if x.is_sparse else x + y  # the order of places is PyTorch's
        return total if self.create_graph else value_of(total)


def _total(present: Tensor, g: Tensor) -> Tensor:
    """``present + g``, of which either may be sparse."""
    return g + present if present.is_sparse and not g.is_sparse else present + g


def _copied(g: Tensor, leaf: Tensor) -> Tensor:
    """A recorded copy of a gradient, which lies in memory as the leaf's do."""
    storage = leaf._storage
    strides = gradient_strides(storage.physical.shape, strides_of(storage))
    copy: Tensor = recorded(storage.backend).restride(g, strides=strides)
    return copy


def _unseen_copy(g: Tensor, leaf: Tensor) -> Tensor:
    """`_copied` of a gradient that others may hold; of modes those see it that follow values."""
    if not g.is_sparse and g._storage.backend.dispatches:
        return g
    modes, mode.dispatch_modes = mode.dispatch_modes, mode.dispatch_modes if followed() else []
    try:
        return g.clone() if g.is_sparse else _copied(g, leaf)
    finally:
        mode.dispatch_modes = modes


def _backends_of_outputs(node: Any, grads: list) -> list:
    return [node.backend_of(index) for index in range(len(grads))]


def _is_fresh(node: Any, gx: Any, position: int, results: Any, grads: list, saved: Any) -> bool:
    """Whether nobody else holds this gradient's memory: no view, no input, not given twice."""
    if not node.makes_new_gradients or not node.backend.owns_memory(gx) or gx is grads[0]:
        return False
    if len(grads) > 1 and any([gx is g for g in grads]):
        return False
    if len(results) > 1:
        for other, value in enumerate(results):
            if gx is value and other != position:
                return False
    if saved:
        for storage in saved:
            if isinstance(storage, Storage) and gx is storage.physical:
                return False
    return True

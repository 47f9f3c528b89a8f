"""The graph: nodes that know how to compute gradients, and leaves that collect them."""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.autograd.hooks import GradientHooks, Handle, hooks_at
from tensorflow_lite_clone.autograd.interpreters import interpreters
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.autograd.namespaces import recorded
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.table import run
from tensorflow_lite_clone.storage import Storage, lazily_contiguous
from tensorflow_lite_clone.tensor import Tensor, new_tensor

if TYPE_CHECKING:
    from tensorflow_lite_clone.core.protocols import Namespace

next_sequence_number = itertools.count().__next__


def was_modified(storage: Storage, owner: str, version: int) -> RuntimeError:
    """The error for a saved value that was written to since; `owner` says whose it is."""
    dtype: DType = storage.backend.dtypes[storage.physical.dtype]
    device = storage.backend.device.type
    kind = "" if device == "cpu" else f"{device}."
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [torch.{kind}{dtype.short_name}Tensor {list(storage.physical.shape)}]{owner} "
        f"is at version {storage.current_version()}; expected version {version} instead. Hint: "
        "enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


class GraphNode:
    """What nodes and leaves share: output shapes and dtypes, hooks, and torch's face."""

    __slots__ = ("__dict__", "__weakref__", "backend", "dtypes", "sequence", "shapes")

    backend: Any
    multi_output = False  # outputs
    shapes: tuple  # the output's shape, or with several outputs a tuple of them
    dtypes: Any  # likewise, native
    sequence: int  # increases along the graph: a node's is higher than those of its inputs
    edges: Any = ()  # per input: (node, output number) or None
    saved: Any = ()
    # Rarely set, so class-level defaults instead of slots filled in every construction.
    arrival_hooks: GradientHooks | None = None
    hooks: dict | None = None  # (grad_inputs, grad_outputs) -> grad_inputs or None

    def shape_of(self, index: int) -> tuple:
        """The shape of output number `index`."""
        return self.shapes[index] if self.multi_output else self.shapes

    def dtype_of(self, index: int) -> Any:
        """The native dtype of output number `index`."""
        return self.dtypes[index] if self.multi_output else self.dtypes

    def backend_of(self, index: int) -> Any:
        """The backend of output number `index`; those of an op all have one."""
        return self.backend

    def name(self) -> str:
        """The class name torch would show, such as ``MulBackward0``."""
        raise NotImplementedError

    @property
    def next_functions(self) -> tuple:
        """The nodes this one hands gradients to, as (node or None, output number)."""
        return tuple([(None, 0) if edge is None else edge for edge in self.edges])

    @property
    def metadata(self) -> dict:
        """A dictionary for notes."""
        notes: dict = vars(self).setdefault("metadata", {})
        return notes

    def register_hook(self, fn: Any) -> Handle:
        """Call ``fn(grad_inputs, grad_outputs)`` after this node; it may replace grad_inputs."""
        if self.hooks is None:
            self.hooks = {}
        return Handle(self.hooks, fn)

    def register_prehook(self, fn: Any) -> Handle:
        """Call ``fn(grad_outputs)`` before this node; it may replace them."""
        return Handle(hooks_at(self).before, fn)

    def _sequence_nr(self) -> int:
        return self.sequence

    def __repr__(self) -> str:
        return f"<{self.name().rpartition(':')[2]} object at {id(self):#x}>"


class Leaf(GraphNode):
    """The end of the graph at a tensor that requires a gradient (torch's AccumulateGrad)."""

    __slots__ = ("reference",)

    def __init__(self, tensor: Tensor) -> None:
        self.reference = weakref.ref(tensor)  # a strong one would be a cycle
        self.sequence = -1
        self.adopt(tensor)

    def adopt(self, tensor: Tensor) -> None:
        """Take over shape, dtype and device of the tensor's present storage."""
        storage = tensor._storage
        self.backend = storage.backend
        self.shapes = storage.physical.shape
        self.dtypes = storage.physical.dtype

    @property
    def variable(self) -> Tensor | None:
        """The tensor, while it is alive."""
        return self.reference()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"


class Node(GraphNode):
    """One recorded operation."""

    __slots__ = ("edges", "mask", "op", "parameters", "saved", "versions")

    makes_new_gradients = True  # unless they are views, inputs or saved arrays; user code may not

    op: type[Op]
    mask: int  # bit i: input i wants a gradient
    parameters: dict
    saved: list[Storage | None] | None  # None once freed
    versions: list[int]

    def name(self) -> str:
        label = self.op.label
        if type(label) is not str:
            label = label(self)
        return label if "Backward" in label or ":" in label else f"{label}Backward0"

    def __call__(self, *grads: Tensor | None) -> Any:
        """The gradients of the inputs for given ones of the outputs, as Tensors."""
        if mode.grad:
            results = self.gradients(list(grads), True)
        else:
            arrays = [None if g is None else g.to_dense()._storage.physical for g in grads]
            results = [
                g
                if g is None or isinstance(g, Tensor)
                else new_tensor(lazily_contiguous(g, self.backend))
                for g in self.backend.guarded(self.gradients)(arrays, False)
            ]
        return results[0] if len(results) == 1 else tuple(results)

    def _saved_value(self, place: int) -> Any:
        """A value kept for backward: an input by position, an output by ``~number``."""
        saves = self.op.plans[self.mask].saves
        if place not in saves:
            raise AttributeError(f"'{self.name()}' object has not saved this")
        return self._unpack(saves, True)[saves.index(place)]

    # PyTorch's names for what most operations keep (no `__getattr__`: it slows every access)
    _saved_result = property(lambda self: self._saved_value(~0))
    _saved_self = property(lambda self: self._saved_value(0))
    _saved_other = property(lambda self: self._saved_value(1))

    def gradients(
        self, grads: list, create_graph: bool, needed: tuple[bool, ...] | None = None
    ) -> Any:
        """One gradient per input (None where none is wanted), from those of the outputs.

        `needed` says which inputs' gradients lead anywhere; None: all that were wanted.
        """
        op = self.op
        plan = op.plans[self.mask]
        backend = self.backend
        single = plan.single
        if single is not None and needed is None and not create_graph and not self.multi_output:
            positions, function, _, names = single
            saved = self._unpack(plan.saves, False) if plan.saves else ()
            parameters = self.parameters
            if len(names) != len(parameters):
                parameters = {name: parameters[name] for name in names}
            results: list[Any] = [None] * len(self.edges)
            if len(positions) == 1:
                function = backend.gradients[function]
                results[positions[0]] = function(backend.F, grads[0], *saved, **parameters)
                return results
            function = backend.joint_gradients[function]
            found = function(backend.F, grads[0], *saved, **parameters)
            for position, result in zip(positions, found):
                results[position] = result
            return results
        F = backend.F
        if create_graph:
            F = recorded(backend)
            if not mode.grad and mode.dispatching:
                seen = interpreters.dispatch.gradient(self, grads, needed)
                if seen is not NotImplemented:
                    return seen
        saved = self._unpack(plan.saves, create_graph) if plan.saves else ()
        g = self._differentiable(grads, F) if self.multi_output else grads[0]
        parameters = self.parameters
        if op.joint is not None:
            _, names, wants_needs = op.joint
            chosen = {name: parameters[name] for name in names}
            if wants_needs:
                chosen["needs"] = plan.needs
                if needed is not None:
                    chosen["needs"] = tuple([a and b for a, b in zip(plan.needs, needed)])
            backward = op.backward if create_graph else backend.joint_gradients[op.backward]
            result = backward(F, g, *saved, **chosen)
            result = result if type(result) is tuple else (result,)
            return self._anchored(result) if create_graph and op.anchors else result
        results = [None] * len(self.edges)
        steps, whole = plan.steps, plan.whole
        if whole is not None and (needed is None or all([needed[i] for i in whole.inputs])):
            steps = (whole,)
        for positions, function, places, names in steps:
            if needed is not None and not any([needed[position] for position in positions]):
                continue
            values = saved if places is None else [saved[place] for place in places]
            chosen = parameters
            if len(names) != len(parameters):
                chosen = {name: parameters[name] for name in names}
            if len(positions) == 1:
                if not create_graph:
                    function = backend.gradients[function]
                results[positions[0]] = function(F, g, *values, **chosen)
                continue
            if not create_graph:
                function = backend.joint_gradients[function]
            for position, result in zip(positions, function(F, g, *values, **chosen), strict=True):
                results[position] = result
        return self._anchored(results) if create_graph and op.anchors else results

    def _anchored(self, results: Any) -> list:
        """Recorded gradients that depend on what the op says PyTorch's depend on."""
        edges, zeros = [], []
        for place, constant in self.op.anchors:
            edge = (self, ~place) if place < 0 else self.edges[place]
            if edge is not None:
                edges.append(edge)
                zeros.append(constant)
        if not edges:
            return list(results)
        return [g if g is None or g.is_sparse else Anchor.of(g, edges, zeros) for g in results]

    def _differentiable(self, grads: list, F: Namespace) -> Any:
        """The gradients of the outputs that have one, zeros where none arrived."""
        kept = []
        for index, g in enumerate(grads):
            if index in self.op.nondifferentiable:
                continue
            if g is None:
                g = self.backend.F.zeros(self.shapes[index], dtype=self.dtypes[index])
                if F is not self.backend.F:
                    g = new_tensor(Storage(g, self.backend))
            kept.append(g)
        return kept[0] if len(kept) == 1 else tuple(kept)

    def _unpack(self, saves: tuple[int, ...], create_graph: bool) -> list:
        if self.saved is None:
            raise RuntimeError(
                "Trying to backward through the graph a second time (or directly access saved "
                "tensors after they have already been freed). Saved intermediate values of the "
                "graph are freed when you call .backward() or autograd.grad(). Specify "
                "retain_graph=True if you need to backward through the graph a second time or if "
                "you need to access saved tensors after calling backward."
            )
        if not create_graph:
            values: list[Any] = []
            for storage, version in zip(self.saved, self.versions):
                if storage is None:
                    values.append(None)
                elif (storage.root or storage).version == version:
                    values.append(storage.physical)
                elif self.op.recomputable and saves[len(values)] < 0:
                    values.append(self._recomputed(saves, ~saves[len(values)]))
                else:
                    self._raise_modified(saves[len(values)], storage, version)
            return values
        values = []
        for place, storage, version in zip(saves, self.saved, self.versions, strict=True):
            if storage is None:
                values.append(None)
                continue
            if (storage.root or storage).version != version:
                if not self.op.recomputable or place >= 0:
                    self._raise_modified(place, storage, version)
                storage = Storage(self._recomputed(saves, ~place), self.backend)
            values.append(self._rewrap(place, storage))
        return values

    def _recomputed(self, saves: tuple[int, ...], number: int) -> Any:
        """An output that was written to since it was saved, calculated again from the inputs."""
        arrays = []
        for place in range(len(self.op.inputs)):
            index = saves.index(place)
            storage: Any = self.saved[index]  # type: ignore[index]
            if (storage.root or storage).version != self.versions[index]:
                self._raise_modified(place, storage, self.versions[index])
            arrays.append(storage.physical)
        return run(self.op, self.backend, tuple(arrays), self.parameters)[number]

    def _rewrap(self, place: int, storage: Any) -> Tensor | None:
        """The saved value as a Tensor at its place in the graph."""
        if ~place in self.op.auxiliary_outputs and mode.grad:
            return None
        tensor = new_tensor(storage if isinstance(storage, Storage) else storage.storage())
        if place < 0:
            if ~place not in self.op.nondifferentiable:
                tensor._edge = (self, ~place)
        else:
            tensor._edge = self.edges[place]
        return tensor

    def _raise_modified(self, place: int, storage: Storage, version: int) -> None:
        owner = ""
        edge = (self, ~place) if place < 0 else self.edges[place]
        if edge is not None and type(edge[0]) is not Leaf:
            owner = f", which is output {edge[1]} of {edge[0].name().partition('Backward')[0]},"
        raise was_modified(storage, owner, version)


class MultiOutputNode(Node):
    """A node with several outputs, or one that keeps its output in a tuple."""

    __slots__ = ()

    multi_output = True


class SyntheticNode(GraphNode):
    """A node that no op has made, of one output: it hands what arrives on, unless it says how."""

    __slots__ = ("edges",)

    makes_new_gradients = False

    def __init__(self, storage: Storage, edges: tuple) -> None:
        self.backend, self.edges = storage.backend, edges
        self.shapes, self.dtypes = storage.physical.shape, storage.physical.dtype
        self.sequence = next_sequence_number()

    def gradients(self, grads: list, create_graph: bool, needed: Any = None) -> list:
        """One gradient per input, from that of the output."""
        return grads


class Anchor(SyntheticNode):
    """The node of a gradient g that depends on more than its formula reads; see `Op.anchors`.

    `edges` are that of g, if it has one, or None; then those that it is anchored to.
    """

    __slots__ = ("zeros",)

    zeros: list[bool]  # for each of the latter: whether its gradient is zeros, or none at all

    @classmethod
    def of(cls, g: Tensor, edges: list, zeros: list[bool]) -> Tensor:
        """The same gradient, in the same memory, with `edges` besides its own."""
        node = cls(g._storage, (g._edge, *edges))
        node.zeros = zeros
        anchored = new_tensor(g._storage)
        anchored._edge = (node, 0)
        return anchored

    def name(self) -> str:
        return "AnchorBackward0"

    def gradients(self, grads: list, create_graph: bool, needed: Any = None) -> list:
        results = list(grads)
        for edge, zeros in zip(self.edges[1:], self.zeros, strict=True):
            if not zeros:
                results.append(None)
                continue
            child, index = edge
            g = child.backend.F.zeros(child.shape_of(index), dtype=child.dtype_of(index))
            results.append(new_tensor(Storage(g, child.backend)) if create_graph else g)
        return results

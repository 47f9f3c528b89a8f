"""What a call of an `autograd.Function` leaves behind: context, saved tensors, a node."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.apply import current_edge, wrap, wrap_freely
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.autograd.node import (
    MultiOutputNode,
    SyntheticNode,
    next_sequence_number,
    was_modified,
)
from tensorflow_lite_clone.autograd.saved import active as saved_hooks
from tensorflow_lite_clone.autograd.saved import pack_all
from tensorflow_lite_clone.autograd.sparse import value_of
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor, new_tensor


class FunctionCtx:
    """What ``forward`` and ``backward`` of a `Function` share; also any attribute set on it."""

    needs_input_grad: tuple[bool, ...] = ()

    def __init__(self) -> None:
        self._saved: tuple[Tensor | None, ...] = ()
        self._saved_forward: tuple[Tensor | None, ...] | None = None
        self._node: Callable[[], FunctionNode | None] | None = None
        self._nondifferentiable: set[int] = set()
        self._dirty: set[int] = set()
        self._materialize = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs, outputs or other tensors for ``backward``."""
        _expect_tensors("save_for_backward can only save variables, but got", tensors)
        self._saved = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep inputs, outputs or other tensors for ``jvp``."""
        _expect_tensors("save_for_forward can only save variables, but got", tensors)
        self._saved_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors given to `save_for_backward`; RuntimeError once the graph was freed.

        In ``jvp`` those given to `save_for_forward`.
        """
        if self._node is None:
            return self._saved
        node = self._node()
        return () if node is None else node.unpack()

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """The older name of `saved_tensors`: a DeprecationWarning says so."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'",
            DeprecationWarning,
            stacklevel=level_outside(),
        )
        return self.saved_tensors

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Declare outputs that have no gradient, such as indices."""
        self._nondifferentiable.update(map(id, outputs))

    def mark_dirty(self, *inputs: Tensor) -> None:
        """Declare inputs that ``forward`` wrote to and returns."""
        self._dirty.update(map(id, inputs))

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` gets zeros (the default) or None for outputs nobody used."""
        self._materialize = value


def _expect_tensors(message: str, tensors: tuple) -> None:
    for tensor in tensors:
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"{message} {type(tensor).__name__}")


class SavedTensor:
    """A saved tensor as storage + place in the graph, so that outputs make no cycle.

    `output` is its number if it is an output of the function.
    """

    __slots__ = ("edge", "output", "storage", "version")

    def __init__(self, tensor: Tensor, output: int | None) -> None:
        self.edge = current_edge(tensor)
        self.output = output
        self.version = tensor._storage.current_version()
        held = [tensor._storage]
        if saved_hooks:
            pack_all(held)
        self.storage: Any = held[0]

    def restored(self, node: FunctionNode) -> Tensor:
        """The tensor at its place in the graph; RuntimeError if it was written to since."""
        storage = self.storage
        if not isinstance(storage, Storage):
            storage = storage.storage()  # unpack
        elif storage.current_version() != self.version:
            raise was_modified(storage, f", saved by {node.name()},", self.version)
        tensor = new_tensor(storage)
        tensor._edge = self.edge if self.output is None else (node, self.output)
        return tensor


class FunctionNode(MultiOutputNode):
    """The node of a `Function` call."""

    __slots__ = ("backends", "context", "function", "saved_forward", "slots")

    backends: tuple  # per output, which may be on several devices
    context: Any
    saved_forward: list[Any] | None  # None: as saved for backward
    slots: list[Any]  # per argument shape, native dtype and backend, None for what is no tensor
    function: Any

    makes_new_gradients = False

    def name(self) -> str:
        return f"{self.function.__name__}Backward"

    def backend_of(self, index: int) -> Any:
        return self.backends[index]

    def unpack(self) -> tuple[Tensor | None, ...]:
        """The saved tensors at their places in the graph."""
        if self.saved is None:
            self._unpack((0,), False)  # raises
        entries: list[Any] = self.saved or []
        if mode.pushing and self.saved_forward is not None:
            entries = self.saved_forward
        return tuple([None if entry is None else entry.restored(self) for entry in entries])

    def __getattr__(self, name: str) -> Any:
        if name == "context":
            raise AttributeError(name)
        return getattr(self.context, name)  # in PyTorch the context is the node

    def gradients(self, grads: list, create_graph: bool, needed: Any = None) -> Any:
        given: list[Tensor | None] = []
        for index, g in enumerate(grads):
            if g is None:
                if self.context._materialize and self.shapes[index] is not None:
                    home = self.backends[index]
                    g = wrap(home.F.zeros(self.shapes[index], dtype=self.dtypes[index]), home)
            elif not create_graph:
                g = wrap_freely(g, self.backends[index])
            given.append(g)
        if mode.pushing and self.function._pushes():
            return _Transposed.of(self, given)
        results = self.function._gradient()(self.context, *given)
        if not isinstance(results, tuple):
            results = (results,)
        count = len(self.slots)
        if len(results) > count and all(extra is None for extra in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{count}, got {len(results)})"
            )
        values: list[Any] = []
        for slot, result in zip(self.slots, results, strict=True):
            if slot is None:
                if result is not None:
                    raise RuntimeError(
                        f"function {self.name()} returned a gradient different than None at "
                        f"position {len(values) + 1}, but the corresponding forward input was not "
                        "a Variable"
                    )
                continue
            if result is not None and not isinstance(result, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(result).__name__})")
            values.append(result)
        self._check(values)
        if create_graph:
            return values
        return [None if value is None else value_of(value) for value in values]

    def _check(self, values: list) -> None:
        """Raise RuntimeError for gradients that cannot be reduced to their input's shape."""
        for position, (edge, value) in enumerate(zip(self.edges, values, strict=True)):
            if edge is None or value is None:
                continue
            shape = edge[0].shape_of(edge[1])
            dtype = edge[0].backend_of(edge[1]).dtypes[edge[0].dtype_of(edge[1])]
            given = value.shape
            problem = f"Function {self.name()} returned an invalid gradient at index {position} - "
            if given != shape and not _reducible(given, shape):
                raise RuntimeError(
                    f"{problem}got {list(given)} but expected shape compatible with {list(shape)}"
                )
            if value.dtype.kind == "c" and dtype.kind != "c":
                raise RuntimeError(f"{problem}got {value.dtype} but expected {dtype}")


class _Transposed(SyntheticNode):
    """The gradient u -> u^T J of a function that says what J t is: its own gradient.

    What u^T J is does not matter, as `levels.forward_products` asks for its gradient by u alone.
    """

    __slots__ = ("backends", "owner")

    multi_output = True
    backends: tuple
    owner: FunctionNode

    @classmethod
    def of(cls, owner: FunctionNode, duals: list) -> list[Tensor | None]:
        """Zeros in place of the gradients of `owner`'s inputs, at a node with `duals` as inputs."""
        node = object.__new__(cls)
        node.owner, node.backend = owner, owner.backend
        node.edges = tuple([None if u is None else current_edge(u) for u in duals])
        node.sequence = next_sequence_number()
        places = [edge for edge in owner.edges if edge is not None]
        node.shapes = tuple([place[0].shape_of(place[1]) for place in places])
        node.dtypes = tuple([place[0].dtype_of(place[1]) for place in places])
        node.backends = tuple([place[0].backend_of(place[1]) for place in places])
        results: list[Tensor | None] = []
        for edge in owner.edges:
            if edge is None:
                results.append(None)
                continue
            number = sum([result is not None for result in results])
            home = node.backends[number]
            zeros = home.F.zeros(node.shapes[number], dtype=node.dtypes[number])
            results.append(wrap(zeros, home))
            results[-1]._edge = (node, number)  # type: ignore[union-attr]
        return results

    def name(self) -> str:
        return self.owner.name()

    def backend_of(self, index: int) -> Any:
        return self.backends[index]

    def gradients(self, grads: list, create_graph: bool, needed: Any = None) -> list:
        """J t for tangents of the inputs."""
        owner = self.owner
        arrived, edges = iter(grads), iter(owner.edges)
        tangents: list[Tensor | None] = []
        for slot in owner.slots:
            t = None
            if slot is not None:
                t = None if next(edges) is None else next(arrived)
                if t is None and owner.context._materialize:
                    t = wrap(slot[2].F.zeros(slot[0], dtype=slot[1]), slot[2])
                elif t is not None and not create_graph:
                    t = wrap_freely(t, slot[2])
            tangents.append(t)
        outside, mode.pushing = mode.pushing, True
        try:
            results = owner.function.jvp(owner.context, *tangents)
        finally:
            mode.pushing = outside
        values = results if isinstance(results, tuple) else (results,)
        if create_graph:
            return list(values)
        return [None if value is None else value_of(value) for value in values]


def _reducible(given: tuple, shape: tuple) -> bool:
    """Whether `given` is a shape to which `shape` could have been broadcast."""
    offset = len(given) - len(shape)
    return offset >= 0 and all(
        [have == want or want == 1 for have, want in zip(given[offset:], shape)]
    )

"""Levels of differentiation: tensors that are variables inside a block and constants outside.

A transform such as ``func.grad`` gives its function aliases of the inputs, each at a `Source` of
its own. Derivatives are taken with respect to sources. What a nested level or the caller's own
graph holds stays reachable through them, so that levels nest; after its level has ended, a source
counts for nothing, and results that depend on no other are detached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tensorflow_lite_clone.autograd.apply import current_edge
from tensorflow_lite_clone.autograd.gradients import products
from tensorflow_lite_clone.autograd.interpreters import interpreters
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.autograd.namespaces import recorded
from tensorflow_lite_clone.autograd.node import Leaf, SyntheticNode, next_sequence_number
from tensorflow_lite_clone.autograd.sparse import value_of
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.tensor import Tensor, new_tensor


class Source(Leaf):
    """Where a level's input begins; hands gradients on to what the input was computed from."""

    __slots__ = ("alive", "edges")

    makes_new_gradients = False
    next_functions = ()  # as of any leaf

    def __init__(self, tensor: Tensor, edge: Any) -> None:
        super().__init__(tensor)
        self.sequence = next_sequence_number()
        self.edges = (edge,)
        self.alive = True

    def gradients(self, grads: list, create_graph: bool, needed: Any = None) -> list:
        """What arrives goes on."""
        return grads


def zeros_of(tensor: Tensor) -> Tensor:
    """Zeros in the tensor's shape, outside of any graph."""
    zeros: Tensor = recorded(tensor._storage.backend).zeros_like(tensor.detach())
    return zeros


def _ancestors(tensors: Iterable[Tensor]) -> Iterator[Any]:
    """The nodes and leaves that tensors were computed by, each once."""
    stack = [tensor._edge[0] for tensor in tensors if tensor._edge is not None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        yield node
        for edge in node.edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                stack.append(edge[0])


def reaches_variables(tensors: Iterable[Tensor]) -> bool:
    """Whether a tensor depends on a leaf, or on a source of a level that has not ended."""
    return any(
        type(node) is Leaf or (type(node) is Source and node.alive) for node in _ancestors(tensors)
    )


def depends_on(output: Tensor, inputs: list[Tensor]) -> bool:
    """Whether an output was computed from one of the inputs."""
    wanted = {x._edge[0] for x in inputs if x._edge is not None}
    return any(node in wanted for node in _ancestors((output,)))


class LevelBoundary(SyntheticNode):
    """What comes after a source, where a variable may be written to."""

    __slots__ = ()

    def name(self) -> str:
        return "ViewBackward0"


class Level:
    """A block inside of which some tensors are variables; recording is on."""

    def __enter__(self) -> Level:
        self.outer = mode.grad
        self.sources: list[Source] = []
        mode.grad = True
        return self

    def __exit__(self, *exception: object) -> None:
        mode.grad = self.outer
        self.end()

    def end(self) -> None:
        """Let the level's variables be constants."""
        for source in self.sources:
            source.alive = False

    def enter(self, tensor: Tensor) -> Tensor:
        """An alias of `tensor` that is a variable of this level.

        Raises RuntimeError for dtypes that have no gradients.
        """
        dtype: DType = tensor.dtype
        if dtype.kind not in "fc":
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        tensor = interpreters.vmap.lift_variable(tensor)
        alias = new_tensor(tensor._storage)
        source = Source(alias, current_edge(tensor) if self.outer else None)
        alias._edge = (source, 0)
        self.sources.append(source)
        return alias

    def leave(self, tensor: Tensor) -> Tensor:
        """A result as the caller gets it: detached unless it depends on the caller's variables."""
        edge = current_edge(tensor)
        if edge is None:
            return tensor
        self.end()
        if self.outer and reaches_variables((tensor,)):
            return tensor
        return tensor.detach()


def vector_products(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    vectors: Sequence[Tensor],
    *,
    record: bool,
) -> list[Tensor | None]:
    """v^T J with respect to level inputs (or their intermediate results); None where unused.

    With `record` the products are in the graph.
    """
    edges = [current_edge(x) for x in inputs]
    roots = []
    batched = False
    for output, vector in zip(outputs, vectors, strict=True):
        edge = current_edge(output)
        if edge is not None:
            batched = batched or vector._storage.backend is not output._storage.backend
            roots.append((edge, vector))
    if not roots:
        return [None] * len(inputs)
    over_tensors = record or batched or bool(mode.dispatching)
    if not over_tensors:
        roots = [(edge, value_of(vector)) for edge, vector in roots]
    return products(roots, edges, inputs, vectors, record, over_tensors)


def forward_products(
    outputs: list[Tensor], inputs: list[Tensor], tangents: list[Tensor], record: bool
) -> list[Tensor | None]:
    """J t per output, None where it depends on no input: the derivative of u -> u^T J at t.

    The double-backward trick (J. Townsend, "A new trick for calculating Jacobian vector
    products", 2017). The first of the two passes is marked by ``mode.pushing``.
    """
    with Level() as level:
        duals = [level.enter(zeros_of(y)) if y._edge is not None else None for y in outputs]
        pairs = [(y, u) for y, u in zip(outputs, duals) if u is not None]
        outside, mode.pushing = mode.pushing, True
        try:
            found = vector_products(
                [y for y, _ in pairs], inputs, [u for _, u in pairs], record=True
            )
        finally:
            mode.pushing = outside
        level.end()
        used = [(g, t) for g, t in zip(found, tangents, strict=True) if g is not None]
        if not used:
            return [None] * len(outputs)
        grown = [u for _, u in pairs]
        products = vector_products([g for g, _ in used], grown, [t for _, t in used], record=record)
    results: list[Tensor | None] = []
    rest = iter(products)
    for y, u in zip(outputs, duals):
        product = None if u is None else next(rest)
        if product is None and u is not None and depends_on(y, inputs):
            product = zeros_of(y)
        results.append(product)
    return results


def check_tangent(primal: Tensor, tangent: Tensor) -> None:
    """Raise RuntimeError when a tangent has another shape than its primal."""
    if primal.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(primal.shape)} while the "
            f"given forward gradient is of size {list(tangent.shape)}."
        )

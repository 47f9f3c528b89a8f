"""`backward` and `grad`: checks around the engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tensorflow_lite_clone.autograd.apply import current_edge, wrap, wrap_gradients
from tensorflow_lite_clone.autograd.engine import Edge, run_backward
from tensorflow_lite_clone.autograd.interpreters import interpreters
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.autograd.namespaces import recorded
from tensorflow_lite_clone.autograd.sparse import value_of
from tensorflow_lite_clone.core.device import strided
from tensorflow_lite_clone.core.interception import overridable
from tensorflow_lite_clone.core.late_bound import vmap
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.tensor import Tensor


class GradientEdge(NamedTuple):
    """A place in the graph where a gradient arrives: a node's output, by number."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def _roots(
    outputs: Sequence[Any], grads: Sequence[Tensor | None], create_graph: bool
) -> list[tuple[Edge, Any]]:
    """Per output its edge and the gradient that starts there."""
    if len(outputs) != len(grads):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    roots = []
    for index, (output, g) in enumerate(zip(outputs, grads)):
        if isinstance(output, GradientEdge):
            edge: Any = (output.node, output.output_nr)
        else:
            edge = output._edge if output._view is None else current_edge(output)
        if edge is None:
            raise RuntimeError(
                f"element {index} of tensors does not require grad and does not have a grad_fn"
            )
        node = edge[0]
        shape, native = node.shapes, node.dtypes
        if node.multi_output:
            shape, native = shape[edge[1]], native[edge[1]]
        if g is None:
            if (shape and math.prod(shape) != 1) or not isinstance(output, Tensor):
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if native.kind != "f" and node.backend.dtypes[native].kind != "f":
                raise RuntimeError(
                    "grad can be implicitly created only for real scalar outputs but got "
                    f"{node.backend.dtypes[native]!r}"
                )
            if mode.dispatching:
                roots.append((edge, interpreters.dispatch.root_gradient(output)))
                continue
            ones = node.backend.F.ones(shape, dtype=native)
            roots.append((edge, wrap(ones, node.backend) if create_graph else ones))
            continue
        dtype = node.backend.dtypes[native]
        if not isinstance(g, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        elif g.shape != shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{index}] has a shape of {g.shape} and "
                f"output[{index}] has a shape of {Size(shape)}."
            )
        if g.device != node.backend.device:
            if shape:
                raise RuntimeError(
                    f"invalid gradient at index {index} - expected device {node.backend.device} "
                    f"but got {g.device}"
                )
            g = g.to(node.backend.device)
        if (g.dtype.kind == "c") != (dtype.kind == "c"):
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same "
                f"dtype. Mismatch in dtype: grad_output[{index}] has a dtype of {g.dtype} and "
                f"output[{index}] has a dtype of {dtype}."
            )
        elif g.dtype is not dtype:
            g = g.to(dtype) if g.is_sparse else recorded(node.backend).astype(g, dtype)
        roots.append((edge, g if create_graph else value_of(g)))
    return roots


def _as_sequence(value: Any) -> tuple:
    if value is None:
        return ()
    if type(value) is tuple:
        return value
    return (value,) if isinstance(value, (Tensor, GradientEdge)) else tuple(value)


def _edge_of(value: Any) -> Edge:
    """The edge of a tensor or gradient edge to differentiate by."""
    if isinstance(value, GradientEdge):
        return value.node, value.output_nr
    if not isinstance(value, Tensor):
        raise RuntimeError(
            f"all inputs have to be Tensors or GradientEdges, but got {type(value).__name__}"
        )
    holder: Any = value  # the graph of a sparse tensor is that of its values
    edge: Edge | None = current_edge(value if value.layout is strided else holder._elements)
    if edge is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return edge


@overridable("torch.autograd.backward")
def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Accumulate the gradients of `tensors` into the leaves' ``.grad``.

    `grad_tensors` are the vectors of the vector-Jacobian product, shaped as the tensors; they may
    be left out for tensors of one element. With `inputs` only these tensors' ``.grad`` changes.
    Raises RuntimeError when no tensor requires a gradient or the graph was freed.
    """
    outputs = _as_sequence(tensors)
    grads = _as_sequence(grad_tensors) or (None,) * len(outputs)
    over_tensors = create_graph or bool(mode.dispatching)
    roots = _roots(outputs, grads, over_tensors)
    options: dict[str, Any] = {
        "retain_graph": create_graph if retain_graph is None else retain_graph,
        "create_graph": over_tensors,
        "recording": create_graph,
    }
    if inputs is None:
        run_backward(roots, **options)
        return
    chosen = _as_sequence(inputs)
    if not chosen:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    for value in chosen:
        if isinstance(value, Tensor) and not (value.requires_grad and value.is_leaf):
            value.retain_grad()
    run_backward(roots, wanted={_edge_of(value) for value in chosen}, accumulate=True, **options)


@overridable("torch.autograd.grad")
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` with respect to `inputs`, without touching any ``.grad``.

    Returns one tensor per input; an input that the outputs do not depend on is an error, None
    with `allow_unused`, or zeros with `materialize_grads`. With `is_grads_batched` the
    `grad_outputs` have a dimension more in front, and so have the results: all products are
    computed at once by `func.vmap`, with its errors.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    retain = create_graph if retain_graph is None else retain_graph
    outs, ins = _as_sequence(outputs), _as_sequence(inputs)
    grads = _as_sequence(grad_outputs) or (None,) * len(outs)
    if not ins:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    unused = bool(allow_unused or materialize_grads)
    if is_grads_batched:
        found = _batched(outs, ins, grads, retain, create_graph, unused)
    else:
        found = _vector_products(outs, ins, grads, retain, create_graph, unused)
    found = [_in_layout_of(x, g) for x, g in zip(ins, found)]
    if materialize_grads:
        found = [_zeros(x) if g is None else g for x, g in zip(ins, found)]
    return tuple(found)


def _in_layout_of(x: Any, g: Tensor | None) -> Tensor | None:
    """The gradient of `x`; of a sparse tensor `g` is that of its values."""
    if g is None or not isinstance(x, Tensor) or x.layout is strided:
        return g
    sparse: Any = x
    gradient: Tensor = sparse._gradient(g)
    return gradient


def _vector_products(
    outs: tuple, ins: tuple, grads: tuple, retain: bool, create_graph: bool, allow_unused: bool
) -> list[Tensor | None]:
    # Under `func.vmap` arrays of a node may meet gradients of samples: Tensors bring them together.
    over_tensors = create_graph or bool(mode.mappings) or bool(mode.dispatching)
    roots = _roots(outs, grads, over_tensors)
    edges = [_edge_of(value) for value in ins]
    found = products(roots, edges, ins, grads, create_graph, over_tensors, retain)
    for index, g in enumerate(found):
        if g is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {index} appears to not have been used in the "
                "graph. Set allow_unused=True if this is the desired behavior."
            )
    return found


def products(
    roots: list,
    edges: Sequence[Edge | None],
    inputs: Sequence[Any],
    vectors: Sequence[Tensor | None],
    record: bool,
    over_tensors: bool,
    retain: bool = True,
) -> list[Tensor | None]:
    """The gradients that arrive at `edges`, those of `inputs`, from roots made of `vectors`.

    None where none does. They are in the graph with `record`, which is only `over_tensors`.
    """
    captured = run_backward(
        roots,
        retain_graph=retain,
        create_graph=over_tensors,
        recording=record,
        wanted={edge for edge in edges if edge is not None},
        accumulate=False,
    )
    found = [None if edge is None else captured.get(edge) for edge in edges]
    if over_tensors:
        return found
    return wrap_gradients(
        found,
        [None if edge is None else edge[0].backend for edge in edges],
        [(x._storage,) if isinstance(x, Tensor) and x.layout is strided else () for x in inputs],
        [vector._storage for vector in vectors if vector is not None and vector.layout is strided],
    )


def _batched(
    outs: tuple, ins: tuple, grads: tuple, retain: bool, create_graph: bool, allow_unused: bool
) -> list[Tensor | None]:
    """`_vector_products` for every entry along the first dimension of `grads`, by `func.vmap`."""
    for index, (out, g) in enumerate(zip(outs, grads)):
        if g is None:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if isinstance(out, Tensor) and g.ndim and g.shape[1:] != out.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output "
                "as the batch dimension. The sizes of the remaining dimensions are expected to "
                f"match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{index}] has a shape of {g.shape[1:]} and output[{index}] has a "
                f"shape of {out.shape}. If you only want some tensors in `grad_output` to be "
                "considered batched, consider using vmap."
            )
    used: list[bool] = []

    def vjp(*vectors: Tensor) -> tuple[Tensor, ...]:
        found = _vector_products(outs, ins, vectors, retain, create_graph, allow_unused)
        used[:] = [g is not None for g in found]
        return tuple([g for g in found if g is not None])

    products = iter(vmap(vjp)(*grads))
    return [next(products) if one else None for one in used]


def _zeros(like: Any) -> Tensor:
    """Zeros for a tensor or gradient edge that was not used."""
    node, index = _edge_of(like)
    zeros = node.backend.F.zeros(node.shape_of(index), dtype=node.dtype_of(index))
    return wrap(zeros, node.backend)


@public("method", names=("backward",))
def tensor_backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Accumulate the gradients of this tensor into the leaves' ``.grad``; see `backward`."""
    if inputs is None and not mode.dispatching:
        roots = _roots((self,), (gradient,), create_graph)
        retain = create_graph if retain_graph is None else retain_graph
        run_backward(roots, retain_graph=retain, create_graph=create_graph)
        return
    backward((self,), (gradient,), retain_graph, create_graph, inputs=inputs)


tensor_backward.__name__ = tensor_backward.__qualname__ = "backward"  # as those who override see it

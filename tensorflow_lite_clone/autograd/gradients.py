"""`backward` and `grad`: checks around the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.autograd.apply import current_edge, wrap
from tensorflow_lite_clone.autograd.engine import Edge, run_backward
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.tensor import Tensor


def _roots(
    outputs: Sequence[Tensor], grads: Sequence[Tensor | None], create_graph: bool
) -> list[tuple[Edge, Any]]:
    if len(outputs) != len(grads):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    roots = []
    for output, g in zip(outputs, grads, strict=True):
        edge = current_edge(output)
        if edge is None:
            raise RuntimeError(
                "element 0 of tensors does not require grad and does not have a grad_fn"
            )
        storage = output._storage
        array = storage.array
        if g is None:
            if array.size != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if storage.backend.dtypes[array.dtype].kind != "f":
                raise RuntimeError(
                    "grad can be implicitly created only for real scalar outputs but got "
                    f"{output.dtype}"
                )
            g = wrap(storage.backend.xp.ones(array.shape, array.dtype), storage.backend)
        elif not isinstance(g, Tensor):
            raise TypeError(
                f"gradients can be either Tensors or None, but got {type(g).__name__}"
            )
        elif g._storage.array.shape != array.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[0] has a shape of {g.shape} and output[0] has a "
                f"shape of {output.shape}."
            )
        roots.append((edge, g if create_graph else g._storage.array))
    return roots


def _as_sequence(value: Any) -> tuple:
    if value is None:
        return ()
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _edges(inputs: tuple, caller: str) -> list[Edge]:
    edges = []
    for tensor in inputs:
        edge = current_edge(tensor)
        if edge is None:
            raise RuntimeError(
                f"One of the differentiated Tensors does not require grad (input of {caller})"
            )
        edges.append(edge)
    return edges


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
    roots = _roots(outputs, grads, create_graph)
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        run_backward(roots, retain_graph=retain, create_graph=create_graph)
        return
    chosen = _as_sequence(inputs)
    if not chosen:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    edges = _edges(chosen, "backward")
    captured = run_backward(
        roots,
        retain_graph=retain,
        create_graph=create_graph,
        wanted=set(edges),
        accumulate=True,
    )
    for tensor, edge in zip(chosen, edges, strict=True):
        if not tensor.is_leaf and edge in captured:
            g = captured[edge]
            g = g if create_graph else wrap(g, tensor._storage.backend)
            tensor._grad = g if tensor._grad is None else tensor._grad + g


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
    with `allow_unused`, or zeros with `materialize_grads`.
    """
    if is_grads_batched:
        raise NotImplementedError("grad(): is_grads_batched=True is not supported")
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    outs, ins = _as_sequence(outputs), _as_sequence(inputs)
    grads = _as_sequence(grad_outputs) or (None,) * len(outs)
    roots = _roots(outs, grads, create_graph)
    edges = _edges(ins, "grad")
    captured = run_backward(
        roots,
        retain_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        wanted=set(edges),
        accumulate=False,
    )
    results: list[Tensor | None] = []
    for tensor, edge in zip(ins, edges, strict=True):
        backend = tensor._storage.backend
        g = captured.get(edge)
        if g is None:
            if materialize_grads:
                g = wrap(backend.F.zeros_like(tensor._storage.array), backend)
            elif not allow_unused:
                raise RuntimeError(
                    "One of the differentiated Tensors appears to not have been used in the "
                    "graph. Set allow_unused=True if this is the desired behavior."
                )
            results.append(g)
        else:
            results.append(g if create_graph else _own(g, backend))
    return tuple(results)


def _own(g: Any, backend: Any) -> Tensor:
    if type(g) is not backend.array_type or not backend.owns_memory(g):
        g = backend.F.copy(g)
    return wrap(g, backend)


@public("method", names=("backward",))
def tensor_backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Accumulate the gradients of this tensor into the leaves' ``.grad``; see `backward`."""
    backward((self,), (gradient,), retain_graph, create_graph, inputs=inputs)

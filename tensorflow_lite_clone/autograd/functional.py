"""Jacobians, Hessians and their products, as ``torch.autograd.functional``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from tensorflow_lite_clone.autograd.gradients import grad
from tensorflow_lite_clone.autograd.levels import Level, forward_products, zeros_of
from tensorflow_lite_clone.autograd.mode import enable_grad
from tensorflow_lite_clone.autograd.namespaces import recorded
from tensorflow_lite_clone.core.late_bound import vmap
from tensorflow_lite_clone.tensor import Tensor

Tensors = Tensor | tuple[Tensor, ...]


def _as_tuple(values: Any, what: str, caller: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Whether `values` is a tuple, and it as one; TypeError when it holds no tensors."""
    several = isinstance(values, tuple)
    entries = values if several else (values,)
    for index, entry in enumerate(entries):
        if not isinstance(entry, Tensor):
            raise TypeError(
                f"The {what} given to {caller} must be either a Tensor or a tuple of Tensors but "
                f"the value at index {index} has type {type(entry)}."
            )
    return several, entries


def _prepared(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Inputs to differentiate by: with `create_graph` still part of the caller's graph."""
    if create_graph:
        return tuple([x.view_as(x) if x.requires_grad else _leaf(x) for x in inputs])
    return tuple([_leaf(x) for x in inputs])


def _leaf(x: Tensor) -> Tensor:
    return x.detach().requires_grad_()


def _finished(values: Any, several: bool, create_graph: bool) -> Any:
    values = tuple([value if create_graph else value.detach() for value in values])
    return values if several else values[0]


def _vectors(v: Any, like: tuple[Tensor, ...], caller: str, what: str) -> tuple[Tensor, ...]:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if {what} contains a single Tensor with a single "
                "element."
            )
        return (like[0].detach() * 0 + 1,)
    _, vectors = _as_tuple(v, "v", caller)
    if len(vectors) != len(like):
        if len(like) == 1:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}."
        )
    for index, (vector, model) in enumerate(zip(vectors, like, strict=True)):
        if vector.shape != model.shape:
            raise RuntimeError(
                f"v at index {index} has invalid size: should be {model.shape} but got "
                f"{vector.shape}."
            )
    return vectors


def _grads(
    outputs: tuple,
    inputs: tuple,
    vectors: tuple,
    create_graph: bool,
    strict: str | None,
) -> tuple[Tensor, ...]:
    """Vector-Jacobian products with zeros for independent pairs, an error when `strict`."""
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad]
    if strict is not None and len(pairs) < len(outputs):
        raise RuntimeError(
            f"The output of {strict} does not require gradients. The outputs must be computed in a "
            "differentiable manner from the input when running in strict mode."
        )
    found: Any = (None,) * len(inputs)
    if pairs:
        found = grad(
            [output for output, _ in pairs],
            inputs,
            [vector for _, vector in pairs],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
    results = []
    for index, (g, x) in enumerate(zip(found, inputs, strict=True)):
        if g is None:
            if strict is not None:
                raise RuntimeError(
                    f"The output of {strict} is independent of input {index}. This is not allowed "
                    "in strict mode."
                )
            g = x.detach() * 0
        results.append(g)
    return tuple(results)


def vjp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """``func(*inputs)`` and v^T J, one tensor per input."""
    with enable_grad():
        several, given = _as_tuple(inputs, "inputs", "vjp")
        xs = _prepared(given, create_graph)
        many, outputs = _as_tuple(func(*xs), "outputs", "vjp")
        vectors = _vectors(v, outputs, "vjp", "the output of func")
        products = _grads(
            outputs, xs, vectors, create_graph, "the user-provided function" if strict else None
        )
    return (
        _finished(outputs, many, create_graph),
        _finished(products, several, create_graph),
    )


def jvp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """``func(*inputs)`` and J v, one tensor per output, by differentiating u -> u^T J at v."""
    with enable_grad():
        _, given = _as_tuple(inputs, "inputs", "jvp")
        xs = _prepared(given, create_graph)
        vectors = _vectors(v, given, "jvp", "the input to func")
        many, outputs = _as_tuple(func(*xs), "outputs", "jvp")
        dummies = tuple([(o.detach() * 0).requires_grad_() for o in outputs])
        name = "the user-provided function" if strict else None
        products = _grads(outputs, xs, dummies, True, name)
        results = _grads(products, dummies, vectors, create_graph, None)
    return _finished(outputs, many, create_graph), _finished(results, many, create_graph)


def jacobian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """dy/dx of shape ``y.shape + x.shape``, nested in tuples over outputs and inputs.

    With `vectorize` all rows are computed at once by `func.vmap`, or, with the `strategy`
    "forward-mode", all columns; else row by row. Raises RuntimeError for `vectorize` or forward
    mode together with `strict`, NotImplementedError for forward mode with `create_graph` or
    without `vectorize`, AssertionError for another strategy.
    """
    _check_strategy(strategy, "reverse-mode")
    several, given = _as_tuple(inputs, "inputs", "jacobian")
    if strategy == "forward-mode":
        _check_forward(create_graph, strict, vectorize)
        many, blocks = _columns(func, given)
    else:
        if strict and vectorize:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
                "supported together. Please either set `strict=False` or `vectorize=False`."
            )
        with enable_grad():
            xs = _prepared(given, create_graph)
            many, outputs = _as_tuple(func(*xs), "outputs", "jacobian")
            if vectorize:
                blocks = _all_rows(outputs, xs, create_graph)
            else:
                blocks = [_rows(output, xs, create_graph, strict) for output in outputs]
    finished = tuple([_finished(row, several, create_graph) for row in blocks])
    return finished if many else finished[0]


def _check_strategy(strategy: str, hinted: str | None = None) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        hint = (
            ' Hint: If your function has more outputs than inputs, "forward-mode" tends to be '
            f'more performant. Otherwise, prefer to use "{hinted}".'
        )
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode".'
            + (hint if hinted else "")
        )


def _check_forward(create_graph: bool, strict: bool, vectorize: bool) -> None:
    for given, name, error in (
        (create_graph, "create_graph", NotImplementedError),
        (strict, "strict", RuntimeError),
    ):
        if given:
            raise error(
                f'torch.autograd.functional.jacobian: `{name}=True` and `strategy="forward-mode"` '
                f"are not supported together (yet). Please either set `{name}=False` or "
                '`strategy="reverse-mode"`.'
            )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly "
            "implemented for `vectorize=True`."
        )


def standard_basis(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Per tensor the rows of the standard basis of all their elements together."""
    sizes = [tensor.numel() for tensor in tensors]
    basis = []
    for tensor, start, size in zip(tensors, accumulate([0, *sizes]), sizes):
        rows = tensor.detach().new_zeros((sum(sizes), size))
        rows.diagonal(-start).fill_(1)
        basis.append(rows.reshape((sum(sizes), *tensor.shape)))
    return basis


def _all_rows(outputs: tuple, xs: tuple, create_graph: bool) -> list[list[Tensor]]:
    """The Jacobian per output and input, all rows at once."""
    variable = [output for output in outputs if output.requires_grad and output.numel()]
    found: Any = (None,) * len(xs)
    if variable:
        found = grad(
            variable,
            xs,
            standard_basis(variable),
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
            is_grads_batched=True,
        )
    blocks, start = [], 0
    for output in outputs:
        stop = start + (output.numel() if output.requires_grad else 0)
        row = []
        for g, x in zip(found, xs, strict=True):
            shape = (*output.shape, *x.shape)
            known = stop > start and g is not None
            row.append(g[start:stop].reshape(shape) if known else x.detach().new_zeros(shape))
        blocks.append(row)
        start = stop
    return blocks


def _columns(func: Callable[..., Any], inputs: tuple) -> tuple[bool, list[list[Tensor]]]:
    """Whether `func` gives a tuple, and the Jacobian per output and input, all columns at once."""
    with Level() as level:
        xs = [level.enter(x.detach()) for x in inputs]
        many, outputs = _as_tuple(func(*xs), "outputs", "jacobian")
        level.end()

    def column(*tangents: Tensor) -> tuple[Tensor, ...]:
        found = forward_products(list(outputs), xs, list(tangents), record=False)
        return tuple([zeros_of(y) if t is None else t for t, y in zip(found, outputs)])

    columns = vmap(column, out_dims=-1)(*standard_basis(inputs))
    sizes = [x.numel() for x in inputs]
    blocks = []
    for whole, output in zip(columns, outputs, strict=True):
        row = []
        for x, start, size in zip(inputs, accumulate([0, *sizes]), sizes):
            row.append(whole[..., start : start + size].reshape((*output.shape, *x.shape)))
        blocks.append(row)
    return many, blocks


def _rows(output: Tensor, xs: tuple, create_graph: bool, strict: bool) -> list[Tensor]:
    """The Jacobian of one output with respect to every input."""
    if output.is_complex():
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {output.dtype}"
        )
    name = "the user-provided function" if strict else None
    per_element = []
    for index in range(output.numel()):
        one = (output.detach() * 0).reshape(-1)
        one[index] = 1
        vector = one.reshape(output.shape)
        per_element.append(_grads((output,), xs, (vector,), create_graph, name))
    blocks = []
    for position, x in enumerate(xs):
        shape = (*output.shape, *x.shape)
        if not per_element:
            blocks.append(x.new_zeros(shape))
            continue
        F = recorded(x._storage.backend)
        stacked = F.stack([entry[position] for entry in per_element], axis=0)
        blocks.append(F.reshape(stacked, shape))
    return blocks


def hessian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a scalar function: ``x_i.shape + x_j.shape`` per pair of inputs.

    `vectorize` and `outer_jacobian_strategy` say how `jacobian` differentiates the gradient.
    """
    _check_strategy(outer_jacobian_strategy)
    several, _ = _as_tuple(inputs, "inputs", "hessian")

    def gradient(*xs: Tensor) -> Any:
        output = _scalar(func(*xs), "hessian").reshape(())
        rows = _rows(output, xs, True, strict)
        return tuple(rows) if several else rows[0]

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def _scalar(output: Any, caller: str) -> Tensor:
    if not isinstance(output, Tensor):
        raise RuntimeError(f"The function given to {caller} should return a single Tensor")
    if output.numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {caller} should contain a single element"
        )
    return output


def vhp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """``func(*inputs)`` and v^T H for a scalar function."""
    with enable_grad():
        several, given = _as_tuple(inputs, "inputs", "vhp")
        xs = _prepared(given, create_graph)
        vectors = _vectors(v, given, "vhp", "the input to func")
        output = _scalar(func(*xs), "vhp")
        name = "the user-provided function" if strict else None
        gradient = _grads((output,), xs, (output.detach() * 0 + 1,), True, name)
        name = "the jacobian of the user-provided function" if strict else None
        product = _grads(gradient, xs, vectors, create_graph, name)
    return (
        _finished((output,), False, create_graph),
        _finished(product, several, create_graph),
    )


#: H is symmetric, so H v is v^T H.
hvp = vhp

"""grad, vjp, jvp and linearize: derivatives of functions, as ``torch.func``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.levels import (
    Level,
    check_tangent,
    forward_products,
    reaches_variables,
    vector_products,
    zeros_of,
)
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.autograd.namespaces import recorded
from tensorflow_lite_clone.func._arguments import (
    ArgNums,
    checked_argnums,
    chosen,
    flat_inputs,
    flat_outputs,
    leave_aux,
    replaced,
    split_aux,
)
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._pytree import tree_flatten, treespec_pprint


class _Transform(Level):
    """A level that custom functions take notice of."""

    def __enter__(self) -> _Transform:
        mode.transforms.append(self)
        super().__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        mode.transforms.pop()


def _as_leaves(found: list, inputs: list[Tensor]) -> list[Tensor]:
    """Gradients, with zeros for inputs that had no part."""
    return [zeros_of(x) if g is None else g for g, x in zip(found, inputs, strict=True)]


def grad_and_value(
    func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of `func` and its value.

    `func` returns a scalar tensor, or with `has_aux` a pair of it and a tree of further tensors;
    the result is then ``gradient, (value, aux)``. The gradient has the structure of the argument
    number `argnums`, or is a tuple for a tuple of numbers. Tensors that `func` takes from outside
    are constants. Raises RuntimeError for other outputs and for argument numbers that are none,
    ValueError when something else than a tensor is to be differentiated by.
    """
    caller = "grad_and_value(f)(*args)"

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = checked_argnums(argnums, len(args))
        with _Transform() as level:
            flat, spec = flat_inputs(chosen(args, numbers))
            xs = [level.enter(x) for x in flat]
            result = func(*replaced(args, numbers, spec.unflatten(xs)), **kwargs)
            output, aux = split_aux(result, has_aux, caller)
            if not isinstance(output, Tensor):
                raise RuntimeError(
                    f"{caller}: Expected f(*args) to return a Tensor, got {type(output)}"
                )
            if output.ndim:
                raise RuntimeError(
                    f"{caller}: Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{output.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            level.end()
            record = level.outer and reaches_variables((output,))
            one = recorded(output._storage.backend).ones_like(output.detach())
            found = _as_leaves(vector_products([output], xs, [one], record=record), flat)
            gradient = spec.unflatten([level.leave(g) for g in found])
            value = level.leave(output)
            if has_aux:
                return gradient, (value, leave_aux(aux, level.leave))
            return gradient, value

    return wrapper


def grad(
    func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of `func`; see `grad_and_value`.

    With `has_aux` it gives a pair of the gradient and aux.
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``func(*primals)`` and a function that gives v^T J for a cotangent v of the output's shape.

    The products are a tuple with one tree of tensors per primal. With `has_aux` aux is a third
    result. Raises ValueError when a primal holds anything but tensors, RuntimeError when the
    output does.
    """
    caller = "vjp(f, *primals)"
    with _Transform() as level:
        flat, spec = flat_inputs(primals)
        xs = [level.enter(x) for x in flat]
        output, aux = split_aux(func(*spec.unflatten(xs)), has_aux, caller)
        ys, out_spec = flat_outputs(output, caller)
        level.end()
        results = [level.leave(y) for y in ys]
        if has_aux:
            aux = leave_aux(aux, level.leave)
    variable = level.outer and reaches_variables(ys)

    def vjp_fn(
        cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> Any:
        """The products with these cotangents; RuntimeError when their structure is another."""
        vectors, vector_spec = tree_flatten(cotangents)
        if vector_spec != out_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {treespec_pprint(vector_spec)}, primal "
                f"output: {treespec_pprint(out_spec)}"
            )
        for y, v in zip(ys, vectors, strict=True):
            if y.shape != v.shape:
                raise RuntimeError(
                    f"The size of tensor a {list(y.shape)} must match the size of tensor b "
                    f"{list(v.shape)}"
                )
        record = mode.grad if create_graph is None else create_graph
        record = record and (variable or reaches_variables(vectors))
        found = vector_products(ys, xs, vectors, record=record)
        return spec.unflatten(_as_leaves(found, flat))

    outputs = out_spec.unflatten(results)
    return (outputs, vjp_fn, aux) if has_aux else (outputs, vjp_fn)


def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """``func(*primals)`` and its derivative J t in the direction of `tangents`.

    Both arguments are tuples of one structure. `strict` makes an output that does not depend on
    the inputs an error instead of zeros. With `has_aux` aux is a third result. Raises
    RuntimeError for other arguments and outputs that are no tensors.
    """
    caller = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{caller}: Expected primals to be a tuple. E.g. it should be valid to call "
            "f(*primals)."
        )
    flat, spec = tree_flatten(primals)
    vectors, vector_spec = tree_flatten(tangents)
    if spec != vector_spec:
        raise RuntimeError(
            f"{caller}: Expected primals and tangents to have the same python structure. For "
            "example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            f"structure {spec} and tangents with structure {vector_spec}"
        )
    for name, values in (("primals", flat), ("tangents", vectors)):
        if not values:
            raise RuntimeError(f"{caller}: Expected {name} to contain at least one Tensor.")
        for value in values:
            if not isinstance(value, Tensor):
                raise RuntimeError(
                    f"{caller}: Expected {name} to contain only Tensors, got {type(value)}"
                )
    for x, t in zip(flat, vectors, strict=True):
        check_tangent(x, t)
    with _Transform() as level:
        xs = [level.enter(x) for x in flat]
        output, aux = split_aux(func(*spec.unflatten(xs)), has_aux, caller)
        ys, out_spec = flat_outputs(output, caller)
        level.end()
        record = level.outer and (reaches_variables(ys) or reaches_variables(vectors))
        products = forward_products(ys, xs, vectors, record)
        if strict and any([product is None for product in products]):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the "
                "inputs. This is not allowed with strict=True."
            )
        results = out_spec.unflatten([level.leave(y) for y in ys])
        derivatives = out_spec.unflatten([level.leave(t) for t in _as_leaves(products, ys)])
        if has_aux:
            return results, derivatives, leave_aux(aux, level.leave)
    return results, derivatives


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """``func(*primals)`` and the linear function that gives J t for tangents t.

    `func` runs once; the linear function may be called any number of times with tangents of the
    primals' structure and shapes (RuntimeError otherwise).
    """
    flat, spec = flat_inputs(primals)
    with _Transform() as level:
        xs = [level.enter(x) for x in flat]
        ys, out_spec = tree_flatten(func(*spec.unflatten(xs)))
        tensors = [y for y in ys if isinstance(y, Tensor)]
        level.end()
        outputs = out_spec.unflatten(
            [level.leave(y) if isinstance(y, Tensor) else y for y in ys]
        )
    variable = level.outer and reaches_variables(tensors)

    def jvp_fn(*tangents: Any) -> Any:
        """J t for these tangents."""
        vectors, vector_spec = tree_flatten(tangents)
        if vector_spec != spec:
            raise RuntimeError(
                f"Expected the tangents {vector_spec} to have the same argspec as the primals "
                f"{spec}"
            )
        for index, (x, t) in enumerate(zip(flat, vectors, strict=True)):
            if x.shape != t.shape:
                raise RuntimeError(
                    f"tangent:{index} with shape {t.shape} in flattened pytree doesn't match the "
                    f"shape {x.shape} of the corresponding primal."
                )
        record = mode.grad and (variable or reaches_variables(vectors))
        products = iter(_as_leaves(forward_products(tensors, xs, vectors, record), tensors))
        return out_spec.unflatten([next(products) if isinstance(y, Tensor) else y for y in ys])

    return outputs, jvp_fn

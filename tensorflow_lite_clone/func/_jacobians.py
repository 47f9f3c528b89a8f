"""jacrev, jacfwd and hessian: all rows or columns of a Jacobian at once, by `vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from tensorflow_lite_clone.autograd.functional import standard_basis
from tensorflow_lite_clone.func._arguments import (
    ArgNums,
    checked_argnums,
    chosen,
    flat_inputs,
    replaced,
)
from tensorflow_lite_clone.func._gradients import jvp, vjp
from tensorflow_lite_clone.func._vmap import vmap
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._pytree import tree_flatten


def _of_chosen(
    func: Callable[..., Any], argnums: ArgNums, args: tuple, kwargs: dict[str, Any]
) -> tuple[Any, tuple, Callable[..., Any]]:
    """The arguments that `argnums` names, as they stand and as a tuple, and `func` of these."""
    numbers = checked_argnums(argnums, len(args))
    is_tuple = isinstance(numbers, tuple)
    given = chosen(args, numbers)

    def of_primals(*values: Any) -> Any:
        return func(*replaced(args, numbers, values if is_tuple else values[0]), **kwargs)

    return given, (given if is_tuple else (given,)), of_primals


def jacrev(
    func: Callable[..., Any],
    argnums: ArgNums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that gives the Jacobian of `func`, by reverse mode: a row per output element.

    The result has the structure of the output, with the structure of the argument number
    `argnums` (a tuple for a tuple of numbers) in place of every tensor y, and in it tensors of
    the shape ``y.shape + x.shape``. With `has_aux` it is a pair with aux. `chunk_size` rows are
    computed at a time, by default all. Raises ValueError for a `chunk_size` that is not positive,
    RuntimeError and ValueError as `vjp`.
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given, primals, of_primals = _of_chosen(func, argnums, args, kwargs)
        output, pull, *aux = vjp(of_primals, *primals, has_aux=has_aux)
        ys, out_spec = tree_flatten(output)
        basis = standard_basis(ys)
        xs, _ = flat_inputs(primals)

        def row(*vectors: Tensor) -> Any:
            return tuple(tree_flatten(pull(out_spec.unflatten(vectors)))[0])

        columns = vmap(row, chunk_size=chunk_size)(*basis) if sum(map(Tensor.numel, ys)) else None
        blocks = []
        start = 0
        for y in ys:
            parts = []
            for index, x in enumerate(xs):
                shape = (*y.shape, *x.shape)
                if columns is None:
                    parts.append(x.detach().new_zeros(shape))
                else:
                    parts.append(columns[index][start : start + y.numel()].reshape(shape))
            start += y.numel()
            blocks.append(tree_flatten(given)[1].unflatten(parts))
        jacobian = out_spec.unflatten(blocks)
        return (jacobian, aux[0]) if has_aux else jacobian

    return wrapper


def jacfwd(
    func: Callable[..., Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """A function that gives the Jacobian of `func`, by products J t: a column per input element.

    The result is as that of `jacrev`. `randomness` is that of `vmap`.
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given, primals, of_primals = _of_chosen(func, argnums, args, kwargs)
        xs, spec = flat_inputs(primals)

        def column(*tangents: Tensor) -> Any:
            _, *results = jvp(of_primals, primals, spec.unflatten(tangents), has_aux=has_aux)
            ys, out_spec = tree_flatten(results[0])
            specs.append(out_spec)
            return tuple(results[1:]), tuple(ys)

        specs: list = []
        aux, rows = vmap(column, 0, (None, -1), randomness)(*standard_basis(xs))
        out_spec = specs[0]
        sizes = [x.numel() for x in xs]
        blocks = []
        for row in rows:
            parts = []
            for x, start, size in zip(xs, accumulate([0, *sizes]), sizes):
                part = row[..., start : start + size]
                parts.append(part.reshape((*row.shape[:-1], *x.shape)))
            blocks.append(tree_flatten(given)[1].unflatten(parts))
        jacobian = out_spec.unflatten(blocks)
        return (jacobian, aux[0]) if has_aux else jacobian

    return wrapper


def hessian(func: Callable[..., Any], argnums: ArgNums = 0) -> Callable[..., Any]:
    """A function that gives the second derivatives of `func`: `jacfwd` of its `jacrev`."""
    return jacfwd(jacrev(func, argnums), argnums)

"""Distinct elements: unique, unique_consecutive."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import dtype_of_scalar, promote_types
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops._samples import expect_values
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.pointwise._operands import cast
from tensorflow_lite_clone.ops.reduce._arguments import axis_of
from tensorflow_lite_clone.tensor import Tensor


class Unique(Op):
    """The distinct rows along the first axis, each row's number among them, and counts.

    Rows are vectors of a 2-d array; with `ordered` equal ones are found wherever they are and the
    result is sorted, else only neighbours are compared.
    """

    name = "unique_rows"
    nondifferentiable = (1, 2)

    def forward(F, x, *, ordered):
        size = x.shape[0]
        order = F.arange(size)
        if ordered:
            for column in range(x.shape[1] - 1, -1, -1):  # stable sorts, the first column last
                order = F.take(order, F.argsort(F.take(x[:, column], order, axis=0)), axis=0)
        rows = F.take(x, order, axis=0)
        new = F.any(rows[1:] != rows[:-1], axis=1)
        new = F.concat([F.ones_like(order[:1]) == 1, new], axis=0)
        number = F.cumulative_sum(F.astype(new, F.int64), axis=0) - 1
        starts = F.nonzero(new)[0]
        ends = F.concat([starts[1:], F.zeros_like(order[:1]) + size], axis=0)[: starts.shape[0]]
        inverse = F.put_along_axis(number, order, axis=0, size=size) if ordered else number
        return F.take(rows, starts, axis=0), inverse, ends - starts

    def backward_x(F, g, *, ordered):
        raise NotImplementedError("the derivative for 'unique' is not implemented.")


class IsIn(Op):
    """Whether each element of `x` is one of `y`."""

    def forward(F, x, y):
        if not y.size:
            return (x == x) & False
        y = F.sort(F.reshape(y, (-1,)))
        place = F.minimum(F.searchsorted(y, x), y.size - 1)
        return F.reshape(F.take(y, F.reshape(place, (-1,)), axis=0), x.shape) == x


@public("torch")
@with_out
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Whether each of `elements` is one of `test_elements`; one of the two may be a number."""
    if not isinstance(elements, Tensor):
        elements = test_elements.new_tensor(elements, dtype=dtype_of_scalar(elements))
    if not isinstance(test_elements, Tensor):
        test_elements = elements.new_tensor(test_elements, dtype=dtype_of_scalar(test_elements))
    dtype = promote_types(elements.dtype, test_elements.dtype)
    if dtype.kind == "c" or "b" in (elements.dtype.kind, test_elements.dtype.kind):
        kind = (elements if elements.dtype.kind in "bc" else test_elements).dtype.short_name
        raise RuntimeError(f"Unsupported input type encountered for isin(): {kind}")
    found = apply(IsIn, cast(elements, dtype), cast(test_elements, dtype))
    return found.logical_not() if invert else found


def _distinct(
    input: Tensor, dim: int | None, ordered: bool, return_inverse: bool, return_counts: bool
) -> Any:
    x = input
    if dim is None:
        rows = x.reshape(-1, 1)
    else:
        dim = axis_of(dim, x.ndim)
        if not x.ndim:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        x = x.movedim(dim, 0)
        if not x.numel() and x.shape[0]:
            raise RuntimeError(
                "There are 0 sized dimensions, and they aren't selected, so unique cannot be "
                "applied"
            )
        rows = x.reshape(x.shape[0], -1) if x.numel() else x.reshape(0, 1)
    name = "unique_dim" if dim is not None else "_unique2"
    expect_values(name if ordered else "unique_consecutive", input)
    values, inverse, counts = apply(Unique, rows, ordered=ordered)
    if dim is None:
        values, inverse = values.reshape(-1), inverse.reshape(input.shape)
    else:
        values = values.reshape(-1, *x.shape[1:])
        values = values.movedim(0, dim)
    if not (return_inverse or return_counts):
        return values
    results = [values]
    if return_inverse:
        results.append(inverse)
    if return_counts:
        results.append(counts)
    return tuple(results)


@public("torch", "method")
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements (or slices along `dim`), always sorted.

    With `return_inverse` also each element's index among them, with `return_counts` also how often
    each occurs, as a tuple.
    """
    return _distinct(input, dim, True, return_inverse, return_counts)


@public("torch", "method")
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The elements (or slices along `dim`) without those equal to their predecessor.

    `return_inverse` and `return_counts` as in `unique`.
    """
    return _distinct(input, dim, False, return_inverse, return_counts)

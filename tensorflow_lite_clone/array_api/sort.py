"""The standard's functions for sorting, searching and sets."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from tensorflow_lite_clone.array_api._axes import one_axis
from tensorflow_lite_clone.array_api._promotion import together
from tensorflow_lite_clone.array_api._register import word
from tensorflow_lite_clone.array_api.index import nonzero
from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.ops.index import sort as _sort
from tensorflow_lite_clone.ops.index import unique as _unique
from tensorflow_lite_clone.ops.pointwise import choice
from tensorflow_lite_clone.ops.pointwise._operands import cast
from tensorflow_lite_clone.tensor import Tensor


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: Tensor
    inverse_indices: Tensor


@word
def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along `axis`; always stable, NaN counts as the largest."""
    return _sort.sort(x, one_axis(axis, x.ndim), descending)[0]


@word
def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """The indices that put the elements in order along `axis`; see `sort`."""
    return _sort.argsort(x, one_axis(axis, x.ndim), descending)


@word
def searchsorted(
    x1: Tensor,
    x2: Tensor | float,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Tensor | None = None,
) -> Tensor:
    """Where each element of `x2`, or a number, would be inserted into the sorted `x1`."""
    if x1.ndim != 1:
        raise ValueError(f"searchsorted: x1 must have one dimension, not {x1.ndim}")
    x1, x2 = together(x1, x2)
    places = None if sorter is None else cast(sorter, int64)
    return _sort.searchsorted(x1, x2, side=side, sorter=places)


@word
def where(condition: Tensor, x1: Any = None, x2: Any = None, /) -> Any:
    """`x1` where the condition holds, else `x2`: arrays or numbers, broadcast and promoted.

    Without the two the places where it holds, as `nonzero`: scikit-learn asks it of a namespace.
    """
    if x1 is x2 is None:
        return nonzero(condition)
    if isinstance(x1, Tensor) or isinstance(x2, Tensor):
        x1, x2 = together(x1, x2)
    return choice.where(condition, x1, x2)


@word
def isin(x1: Tensor | int, x2: Tensor | int, /, *, invert: bool = False) -> Tensor:
    """Whether each element of `x1` is, or with `invert` is not, one of `x2`."""
    found = apply(_unique.IsIn, *together(x1, x2))
    return found.logical_not() if invert else found


@word
def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, their first places, each element's number among them, and counts."""
    values, inverse, counts = _unique.unique(x, return_inverse=True, return_counts=True)
    order = _sort.argsort(inverse.reshape(-1))
    starts = counts.cumsum(0) - counts
    return UniqueAll(values, order[starts], inverse, counts)


@word
def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements and how often each occurs."""
    return UniqueCounts(*_unique.unique(x, return_counts=True))


@word
def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements and each element's number among them."""
    return UniqueInverse(*_unique.unique(x, return_inverse=True))


@word
def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements, sorted."""
    return _unique.unique(x)

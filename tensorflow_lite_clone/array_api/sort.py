"""The standard's functions for sorting, searching and sets."""

from __future__ import annotations

from typing import NamedTuple

from tensorflow_lite_clone.array_api._register import word
from tensorflow_lite_clone.ops import sort as _sort
from tensorflow_lite_clone.ops import unique as _unique
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
    """The elements in order along `axis`."""
    return _sort.sort(x, axis, descending)[0]


@word
def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """The indices that put the elements in order along `axis`."""
    return _sort.argsort(x, axis, descending)


@word
def searchsorted(
    x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Where each element of `x2` would be inserted into the sorted `x1`."""
    return _sort.searchsorted(x1, x2, side=side, sorter=sorter)


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

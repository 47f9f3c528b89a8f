"""The standard's indexing functions, and primitives for indexing over Tensors."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.array_api._axes import axis_of_line, one_axis
from tensorflow_lite_clone.array_api._register import word
from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.ops.index import gather
from tensorflow_lite_clone.ops.index._indexing import IndexAdd, IndexPut, IndexSelect
from tensorflow_lite_clone.ops.pointwise._operands import cast
from tensorflow_lite_clone.tensor import Tensor


@word
def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices number `indices` along `axis`, which may be left out for a vector.

    Negative indices count from the end.
    """
    shape = x._storage.physical.shape
    axis = axis_of_line("take", axis, len(shape))
    return apply(IndexSelect, x, cast(indices, int64), axis=axis, shape=shape)


@word
def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements number `indices` along `axis`, each in its own row.

    The other axes broadcast; negative indices count from the end.
    """
    return gather.take_along_dim(x, cast(indices, int64), one_axis(axis, x.ndim))


@word
def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Where the elements are not zero, a vector of indices per dimension."""
    if not x.ndim:
        raise ValueError("nonzero: a zero-dimensional array has no places")
    return gather.nonzero(x, as_tuple=True)


@word
def getitem(x: Tensor, index: Any) -> Tensor:
    """``x[index]``."""
    return x[index]


@word
def index_put(
    x: Tensor, index: Any, value: Tensor, *, places: tuple = (0,), accumulate: bool = False
) -> Tensor:
    """A copy of x with `value` written, or added, at a stacked index; see `ops._indexing`."""
    return apply(IndexPut, x, index, value, places=places, accumulate=accumulate)


@word
def index_add(x: Tensor, index: Tensor, source: Tensor, *, axis: int = 0) -> Tensor:
    """A copy of x with `source` added to the slices number `index` along `axis`."""
    return apply(IndexAdd, x, index, source, axis=axis)

"""Reductions to fewer dimensions."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import DType, int64
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import normalize_dims
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops._operands import cast
from tensorflow_lite_clone.tensor import Tensor


def axes_of(dim: Any, ndim: int) -> tuple[int, ...]:
    """The axes a reduction over `dim` runs over; None and () mean all of them."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(ndim))
    axes = normalize_dims(dim, ndim)
    return axes if ndim else ()


def kept_shape(shape: tuple, axes: tuple) -> tuple:
    """`shape` with the reduced `axes` kept as ones."""
    return tuple([1 if axis in axes else size for axis, size in enumerate(shape)])


class Sum(Op):
    """Sum over axes."""

    def forward(F, x, *, axis, keepdims, shape):
        return F.sum(x, axis=axis, keepdims=keepdims)

    def backward_x(F, g, *, axis, keepdims, shape):
        if not keepdims:
            g = F.reshape(g, kept_shape(shape, axis))
        return F.broadcast_to(g, shape)


@public("torch", "method")
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None):
    """The sum over `dim` (an int, several, or all); integers are summed as int64."""
    if dtype is None and input._storage.array.dtype.kind in "biu":
        dtype = int64
    if dtype is not None:
        input = cast(input, dtype)
    shape = input._storage.array.shape
    return apply(Sum, input, axis=axes_of(dim, len(shape)), keepdims=keepdim, shape=shape)

"""Products of matrices of which one or both are sparse."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core import late_bound
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.index.sort import searchsorted
from tensorflow_lite_clone.ops.reduce.scan import cumsum
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.ops.shape.rearrange import repeat_interleave
from tensorflow_lite_clone.sparse.tensor import SparseTensor
from tensorflow_lite_clone.tensor import Tensor


@late_bound.sparse_matmul.provide
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """``input @ other``: dense, or sparse where both are sparse.

    A sparse factor is a matrix, a dense one a matrix or a vector; or a sparse batch of matrices is
    multiplied by a dense one. Memory: as many rows of the dense
    factor as there are values. RuntimeError for shapes that do not fit.
    """
    if input.ndim == other.ndim == 3 and isinstance(input, SparseTensor):
        return _batches(input, other)
    for factor in (input, other):
        if factor.ndim != 2 and (isinstance(factor, SparseTensor) or factor.ndim != 1):
            raise RuntimeError("products with sparse tensors are of matrices, and with vectors")
        if isinstance(factor, SparseTensor) and factor.dense_dim():
            raise NotImplementedError("products of sparse tensors that have dense dimensions")
    if input.shape[-1] != other.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({'x'.join(map(str, input.shape))} and "
            f"{'x'.join(map(str, other.shape))})"
        )
    if input.dtype is not other.dtype:
        raise RuntimeError(f"expected matrices of one dtype, not {input.dtype} and {other.dtype}")
    if not isinstance(input, SparseTensor):
        transposed: Any = other.t()
        product = _with_dense(transposed, input.t() if input.ndim == 2 else input)
        return product.t() if input.ndim == 2 else product
    return _both(input, other) if isinstance(other, SparseTensor) else _with_dense(input, other)


def _batches(a: SparseTensor, x: Tensor) -> Tensor:
    """The matrices of the batch `a`, beside each other on the diagonal of one, times those of x."""
    count, rows, columns = a.shape
    if isinstance(x, SparseTensor) or a.dense_dim():
        raise NotImplementedError("batches of products are of a sparse tensor and a dense one")
    if x.shape[:2] != (count, columns):
        raise RuntimeError(
            f"bmm: expected the second batch to be of shape ({count}, {columns}, n), but got "
            f"{tuple(x.shape)}"
        )
    batch, row, column = a._places
    places = stack([batch * rows + row, batch * columns + column])
    whole = SparseTensor(places, a._elements, (count * rows, count * columns))
    return _with_dense(whole, x.reshape(count * columns, -1)).reshape(count, rows, x.shape[2])


def _with_dense(a: SparseTensor, x: Tensor) -> Tensor:
    rows, columns = a._places
    values = a._elements if x.ndim == 1 else a._elements.unsqueeze(1)
    out = x.new_zeros((a.shape[0], *x.shape[1:]))
    return out.index_add(0, rows, values * x.index_select(0, columns))


def _both(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Each value of `a` meets the values of `b` in the row that its column names."""
    b = b.coalesce()
    starts_of = b._places[0].contiguous()
    columns = a._places[1].contiguous()
    starts = searchsorted(starts_of, columns)
    counts = searchsorted(starts_of, columns, right=True) - starts
    owner = repeat_interleave(counts)
    before = cumsum(counts, 0) - counts
    partner = starts[owner] + arange(len(owner), device=a.device) - before[owner]
    places = stack([a._places[0][owner], b._places[1][partner]])
    elements = a._elements[owner] * b._elements[partner]
    return SparseTensor(places, elements, (a.shape[0], b.shape[1])).coalesce()

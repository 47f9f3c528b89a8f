"""Products of matrices of which one or both are sparse."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core import late_bound
from tensorflow_lite_clone.core.device import sparse_csr, strided
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.index.sort import searchsorted
from tensorflow_lite_clone.ops.reduce.scan import cumsum
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.ops.shape.rearrange import repeat_interleave
from tensorflow_lite_clone.sparse.compressed import CompressedTensor
from tensorflow_lite_clone.sparse.tensor import SparseTensor
from tensorflow_lite_clone.tensor import Tensor


@late_bound.sparse_matmul.provide
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """``input @ other``: dense, or sparse where both are sparse.

    A sparse factor is a matrix, a dense one a matrix or a vector; or a sparse batch of matrices is
    multiplied by a dense one. Memory: as many rows of the dense
    factor as there are values. RuntimeError for shapes that do not fit, and for a product of a
    matrix in coordinates and one in rows or columns; of two of these it is in rows.
    """
    if isinstance(input, CompressedTensor) or isinstance(other, CompressedTensor):
        return _compressed(input, other)
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


def _compressed(input: Any, other: Any) -> Tensor:
    """The product of matrices of which one or both are in rows or columns."""
    factors = [x._coordinates() if isinstance(x, CompressedTensor) else x for x in (input, other)]
    if input.ndim > 2 or other.ndim > 2 or input.is_sparse or other.is_sparse:
        raise RuntimeError(
            f"matmul is not implemented for {input.layout.short_name} @ {other.layout.short_name} "
            f"of shapes {tuple(input.shape)} and {tuple(other.shape)}"
        )
    product: Any = matmul(*factors)
    return product.to_sparse_csr() if product.is_sparse else product


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


def reduced(a: Any, x: Tensor, reduce: str) -> Tensor:
    """The sums, means, maxima or minima, by row, of the elements of `a` times the rows of `x`.

    `a` is a matrix in CSR, (n, k), and `x` a dense one, (k, m); rows without elements give zeros.
    The gradient of a maximum goes to the first element that has it. RuntimeError for others.
    """
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"sparse_mm_reduce: reduce type of {reduce} has not been enabled.")
    if not a.is_sparse_csr:
        raise RuntimeError(
            f"sparse_mm_reduce: expect self to be SparseCsr, got {a.layout.short_name}"
        )
    if x.layout is not strided or x.ndim != 2 or a.ndim != 2 or a.shape[1] != x.shape[0]:
        raise RuntimeError(
            f"Expected a strided tensor of dimension 2 and tensor.size[0] == {a.shape[1]} but got: "
            f"layout {x.layout.short_name} and size {list(x.shape)}"
        )
    if a.dtype is not x.dtype:
        raise RuntimeError(
            f"Expected tensor for argument #1 'other' to have scalar type {a.dtype.short_name}; "
            f"but got torch.{x.dtype.short_name}Tensor instead"
        )
    coordinates: SparseTensor = a._coordinates()
    rows, columns = coordinates._places
    products = coordinates._elements.unsqueeze(1) * x.index_select(0, columns)
    if reduce in ("sum", "mean"):
        total = products.new_zeros((a.shape[0], x.shape[1])).index_add(0, rows, products)
        if reduce == "sum":
            return total
        starts = a.crow_indices()
        return total / (starts[1:] - starts[:-1]).clamp(min=1).unsqueeze(1).to(total.dtype)
    return _extremes(products, rows, a.shape[0], reduce)


def _extremes(products: Tensor, rows: Tensor, count: int, reduce: str) -> Tensor:
    """Per row and column the greatest or least of the products of the row; zero without one."""
    found = products.detach()
    best = found.new_zeros((count, found.shape[1]))
    best = best.index_reduce(0, rows, found, reduce, include_self=False)
    number = arange(len(rows), device=rows.device).unsqueeze(1).expand(found.shape)
    number = number.masked_fill(found != best.index_select(0, rows), len(rows))
    first = number.new_full(best.shape, len(rows)).index_reduce(0, rows, number, "amin")
    # A row without elements takes that of a row of zeros behind them.
    rest = products.new_zeros((1, products.shape[1]))
    return cat([products, rest]).gather(0, first)


def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0
) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` at the places of `input`, which is in CSR.

    Shapes (*b, n, m), (*b, n, k) and (*b, k, m), of one dtype; only the elements at these places
    are computed. RuntimeError for others.
    """
    if not isinstance(input, CompressedTensor):
        raise NotImplementedError(
            f"sampled_addmm expects an input in sparse_csr, not in {input.layout}"
        )
    if input.layout is not sparse_csr:
        raise RuntimeError(
            "sampled_addmm: Expected result to have sparse csr layout, but got "
            f"{input.layout.short_name}"
        )
    for name, matrix in (("mat1", mat1), ("mat2", mat2)):
        if matrix.layout is not strided:
            raise RuntimeError(
                f"sampled_addmm: Expected {name} to have strided layout, but got "
                f"{matrix.layout.short_name}"
            )
    if not mat1.dtype is mat2.dtype is input.dtype:
        names = [matrix.dtype.short_name for matrix in (input, mat1, mat2)]
        raise RuntimeError(
            "sampled_addmm: Expected self, mat1 and mat2 to have the same dtype, but got "
            f"{', '.join(names)}"
        )
    if mat1.shape[-1] != mat2.shape[-2]:
        shapes = [f"{matrix.shape[-2]}x{matrix.shape[-1]}" for matrix in (mat1, mat2)]
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({' and '.join(shapes)})"
        )
    for own, other, matrix in ((-2, "mat1", mat1), (-1, "mat2", mat2)):
        if input.shape[own] != matrix.shape[own] or matrix.shape[:-2] != input.shape[:-2]:
            raise RuntimeError(
                f"sampled_addmm: self.shape[{own}] must match {other}.shape[{own}], and batches "
                f"must be alike: {list(input.shape)} and {list(matrix.shape)}"
            )
    *batch, row, column = input._coordinates()._places
    left = mat1[(*batch, row)]
    right = mat2.transpose(-1, -2)[(*batch, column)]
    products = (left * right).sum(-1).reshape(input._elements.shape)
    if beta == 0:
        return input._with(products * alpha)
    return input._with(input._elements * beta + products * alpha)

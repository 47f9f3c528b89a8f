"""Sparse tensors, as ``torch.sparse``: in coordinates, and in compressed rows or columns.

`sparse_coo_tensor`, ``Tensor.to_sparse`` and gradients of ``Embedding(sparse=True)`` are of the
class `SparseTensor`. It can be moved, cast, coalesced, transposed, joined, summed, scaled, added to
its kind and to dense tensors, multiplied by either, made dense again, and multiplied as a matrix
(``@``, `mm`, ``torch.mm``, ``torch.spmm``, ``torch.matmul``); gradients go through its values and
through dense factors. `sparse_csr_tensor` and its kin (CSC, and blocks: BSR, BSC) and
``Tensor.to_sparse_csr`` make a `compressed.CompressedTensor`, of which there is what PyTorch has.
What is not here raises NotImplementedError: functions of which zero is not zero, parts of a
dimension by slices.
"""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.device import Layout, sparse_coo, sparse_csc, sparse_csr
from tensorflow_lite_clone.core.dtypes import DType, int64
from tensorflow_lite_clone.core.shape import expect_storage
from tensorflow_lite_clone.ops.create import constructors
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.linalg.matmul import matmul as _matmul
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.sparse import compressed_functions, products  # noqa: F401  enters them
from tensorflow_lite_clone.sparse.base import SparseBase
from tensorflow_lite_clone.sparse.construct import check_sparse_tensor_invariants
from tensorflow_lite_clone.sparse.conversions import empty
from tensorflow_lite_clone.sparse.functions import method
from tensorflow_lite_clone.sparse.products import sampled_addmm
from tensorflow_lite_clone.sparse.tensor import SparseTensor
from tensorflow_lite_clone.tensor import Tensor


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: DType | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """A tensor with `values` (nnz, ...) at `indices` (d, nnz), zeros elsewhere.

    Without `size` it is as small as the indices allow; with a size alone it is empty. The gradient
    goes to `values`; with `requires_grad` the result is a leaf. Indices are checked always:
    RuntimeError for those outside of `size`. `is_coalesced` says that they are in order and come
    once, which is checked with `check_invariants` only.
    """
    if values is None:
        size = indices if size is None else size
        indices = constructors.empty((len(size), 0), dtype=int64, device=device)
        values = constructors.empty((0,), dtype=dtype, device=device)
    values = constructors.as_tensor(values, dtype=dtype, device=device)
    indices = constructors.as_tensor(indices, device=values.device).to(int64)
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if not values.ndim:
        values = values.reshape(1)
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError(
            "indices and values must have same nnz, but got nnz from indices: "
            f"{indices.shape[1]}, nnz from values: {values.shape[0]}"
        )
    count = indices.shape[0]
    known = size is None or not indices.is_meta
    ends = (indices.amax(1) + 1).tolist() if known and indices.shape[1] else [0] * count
    size = (*ends, *values.shape[1:]) if size is None else constructors.size_of((tuple(size),))
    expect_storage(size, 1)
    if len(size) != count + values.ndim - 1:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, "
            f"sparse_dim = {count}, dense_dim = {values.ndim - 1}"
        )
    if known and indices.numel() and indices.amin().item() < 0:
        raise RuntimeError("found negative index in indices of a sparse tensor")
    for dim, (end, length) in enumerate(zip(ends, size, strict=False)):
        if end > length:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {length} but found "
                f"index {end - 1}"
            )
    if requires_grad or not values.requires_grad:
        values = values.detach().requires_grad_(requires_grad)  # a leaf of its own
    made = SparseTensor(indices, values, size, bool(is_coalesced))
    if is_coalesced and check_invariants:
        flat = made._flat()
        if bool((flat[1:] <= flat[:-1]).any()):
            raise RuntimeError(
                "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
            )
    return made


@method("new")
def _new(self: SparseTensor, *args: Any, device: Any = None) -> SparseBase:
    """A sparse tensor in this one's dtype: of a size and empty, or of indices, values and size."""
    device = device or self.device
    if args and isinstance(args[0], Tensor):
        return sparse_coo_tensor(*args, dtype=self.dtype, device=device)
    size = args[0] if args and not isinstance(args[0], int) else args or (0,)
    return empty("empty", size, sparse_coo, self.dtype, device)


def mm(sparse: Tensor, dense: Tensor, reduce: str | None = None) -> Tensor:
    """The product of two matrices of which at least one is sparse.

    With `reduce` ("sum", "mean", "amax", "amin"), of a CSR matrix and a dense one, that is what
    becomes of the products of a row's elements; rows without elements give zeros.
    """
    return _matmul(sparse, dense) if reduce is None else products.reduced(sparse, dense, reduce)


def addmm(
    mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0
) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)`` with a sparse `mat1`."""
    return beta * mat + alpha * mm(mat1, mat2)


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of all elements, dense, or over some dimensions, sparse."""
    return input.sum(dim, dtype=dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """`softmax` over the values along `dim`; zeros that are not stored count as minus infinity."""
    return _soft(input, dim, dtype, lambda x, total: x.exp() / total)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of `softmax`."""
    return _soft(input, dim, dtype, lambda x, total: x - total.log())


def _soft(input: Any, dim: int, dtype: Any, formula: Any) -> SparseTensor:
    x = (input if dtype is None else input.to(dtype)).coalesce()
    if x.dense_dim():
        raise NotImplementedError("softmax of sparse tensors that have dense dimensions")
    axis = dim % x.ndim
    kept = [other for other in range(x.ndim) if other != axis]
    lines = SparseTensor(x._places[kept], x._elements, [x.shape[other] for other in kept])
    _, line = lines._flat().unique(return_inverse=True)
    count = int(line.amax()) + 1 if line.numel() else 0
    empty = x._elements.new_zeros(count)
    largest = empty.index_reduce(0, line, x._elements.detach(), "amax", include_self=False)
    shifted = x._elements - largest[line]
    total = empty.index_add(0, line, shifted.exp())
    return x._with(formula(shifted, total[line]))


SparseTensor.functions |= {
    "clone": SparseTensor.clone, "addmm": addmm, "numel": SparseTensor.numel, "mv": _matmul
}  # fmt: skip


def spdiags(
    diagonals: Tensor, offsets: Tensor, shape: Any, layout: Layout | None = None
) -> SparseBase:
    """A matrix of the given `shape` with the rows of `diagonals` (k, n) as its diagonals.

    `offsets` (k,), int64 and each there once, says which: 0 is the main one, positive ones lie
    above it. Element j of a row is in column j. RuntimeError for other shapes and dtypes.
    """
    if layout not in (None, sparse_coo, sparse_csr, sparse_csc):
        raise RuntimeError(
            f"spdiags: only the layouts sparse_coo, sparse_csr and sparse_csc, not {layout}"
        )
    rows = diagonals.unsqueeze(0) if diagonals.ndim == 1 else diagonals
    starts = offsets.reshape(1) if not offsets.ndim else offsets
    if rows.ndim != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if starts.ndim != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if rows.shape[0] != starts.shape[0]:
        raise RuntimeError(
            f"Number of diagonals ({rows.shape[0]}) does not match the number of offsets "
            f"({starts.shape[0]})"
        )
    if starts.dtype is not int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {starts.dtype.short_name}")
    if starts.unique().numel() != starts.numel():
        raise RuntimeError("Offset tensor contains duplicate values")
    height, width = shape
    columns = constructors.zeros_like(rows, dtype=int64) + arange(rows.shape[1], device=rows.device)
    lines = columns - starts.unsqueeze(1)
    inside = (lines >= 0) & (lines < height) & (columns < width)
    places = stack([lines[inside], columns[inside]])
    matrix: Any = sparse_coo_tensor(places, rows[inside], (height, width))
    return matrix.to_sparse(layout=layout)


class _SparseType(type):
    """``torch.sparse.FloatTensor`` and its kin: constructors, types for `isinstance`."""

    dtype: DType

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, SparseTensor) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any) -> SparseTensor:
        if args and isinstance(args[0], Tensor):
            return sparse_coo_tensor(*args)
        size = args[0] if args and not isinstance(args[0], int) else args or (0,)
        return sparse_coo_tensor(size=size, dtype=cls.dtype)


for _dtype in dtypes.ALL:
    if _dtype not in dtypes.ALOOF and _dtype.kind != "c":
        _name = f"{_dtype.short_name}Tensor"
        globals()[_name] = _SparseType(_name, (), {"dtype": _dtype})

__all__ = [
    "SparseTensor",
    "addmm",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sparse_coo_tensor",
    "sum",
]

"""From every layout to every other: ``to_sparse`` of dense and of sparse tensors; empty ones."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.device import Layout, sparse_coo, sparse_csr
from tensorflow_lite_clone.core.dtypes import DType, int32, int64
from tensorflow_lite_clone.core.signature import is_int
from tensorflow_lite_clone.ops._samples import expect_values
from tensorflow_lite_clone.ops.create import constructors
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.index.sort import searchsorted
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.sparse.base import SparseBase
from tensorflow_lite_clone.sparse.compressed import BLOCKS, COLUMNS, CompressedTensor, compress
from tensorflow_lite_clone.sparse.functions import compressed, coordinates
from tensorflow_lite_clone.sparse.tensor import SparseTensor
from tensorflow_lite_clone.tensor import Tensor


def from_dense(
    input: Tensor, sparse_dim: int | None, layout: Layout | None, blocksize: Any, dense_dim: Any
) -> SparseBase:
    """The elements of a dense tensor that are not zero.

    In coordinates over the first `sparse_dim` dimensions (all of them); else in rows or columns of
    the two before the last `dense_dim`, and in blocks of `blocksize` of which some element is not
    zero. RuntimeError for numbers of dimensions and sizes of blocks that do not fit.
    """
    if layout in (None, sparse_coo):
        return _nonzero(input, input.ndim if sparse_dim is None else sparse_dim)
    dense = dense_dim or 0
    if not 0 <= dense <= input.ndim - 2:
        raise RuntimeError(
            f"dense_to_{layout.name}: dense_dim argument must be in [0,{input.ndim - 2}] range, "
            f"but {dense} is given"
        )
    batch = input.ndim - 2 - dense
    blocks = _blocksize(input, "dense", layout, blocksize, batch)
    return compress(_nonzero(input, batch + 2), layout, blocks, batch)


def _nonzero(input: Tensor, count: int) -> SparseTensor:
    flags = input != 0
    if count < input.ndim:
        flags = flags.reshape(*input.shape[:count], -1).any(-1)
    expect_values("_to_sparse", flags)
    return SparseTensor(flags.nonzero().t(), input[flags], input.shape, True)


def _blocksize(input: Tensor, source: str, layout: Layout, blocksize: Any, batch: int) -> Any:
    """The size of blocks of a tensor in `layout`; RuntimeError for one that does not fit."""
    if layout not in BLOCKS:
        return None
    if blocksize is None:
        raise RuntimeError(
            f"{source}_to_sparse: conversion from {input.layout.short_name} to {layout.short_name} "
            "without blocksize argument given is not supported"
        )
    height, width = (blocksize, blocksize) if is_int(blocksize) else blocksize
    rows, columns = input.shape[batch : batch + 2]
    if height < 1 or width < 1 or rows % height or columns % width:
        raise RuntimeError(
            f"{source}_to_{layout.name}: tensor sparse size ({rows},{columns}) must be divisible "
            f"by given blocksize ({height},{width})"
        )
    return height, width


@coordinates.method("to_sparse")
def _from_coordinates(
    self: SparseTensor,
    sparse_dim: int | None = None,
    *,
    layout: Layout | None = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> SparseBase:
    """The tensor itself, or a matrix in rows or columns, elements at one place summed.

    RuntimeError for another number of sparse dimensions.
    """
    if layout in (None, sparse_coo):
        if sparse_dim not in (None, self.sparse_dim()):
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument "
                "!=self.sparse_dim() is not supported"
            )
        return self
    if self.sparse_dim() != 2:
        raise RuntimeError(
            f"coo_to_{layout.name}: conversion from Sparse to {layout.short_name} for input "
            "tensors with sparse_dim()!=2 is not supported"
        )
    blocks = _blocksize(self, "sparse_coo", layout, blocksize, 0)
    return compress(self.coalesce(), layout, blocks)


@compressed.method("to_sparse")
def _from_compressed(
    self: CompressedTensor,
    sparse_dim: int | None = None,
    *,
    layout: Layout | None = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> SparseBase:
    """The elements in coordinates, or in rows or columns; the tensor itself in its own layout.

    RuntimeError from blocks to other rows and columns.
    """
    if layout in (None, sparse_coo):
        if sparse_dim not in (None, 2):
            raise RuntimeError(
                f"sparse_compressed_to_sparse: conversion from {self.layout.short_name} to Sparse "
                "with sparse_dim argument !=2 is not supported"
            )
        return self._coordinates()
    mine = self._blocksize
    if layout is self.layout and blocksize in (None, mine):
        return self
    if mine is not None and layout not in BLOCKS:
        raise RuntimeError(
            f"sparse_compressed_to_{layout.name}: expected SparseCsr or SparseCsc layout but got "
            f"{self.layout.short_name}"
        )
    blocks = _blocksize(self, "sparse_compressed", layout, blocksize or mine, self._batch)
    return compress(self._coordinates(), layout, blocks, self._batch, self._plain.dtype)


def empty(name: str, size: Any, layout: Layout, dtype: DType, device: Any) -> SparseBase:
    """A sparse tensor without elements, for the function `name`; all dimensions are sparse."""
    size = tuple(size)
    elements = constructors.zeros((0,), dtype=dtype, device=device)
    if layout is sparse_coo:
        places = constructors.zeros((len(size), 0), dtype=int64, device=device)
        return SparseTensor(places, elements, size, True)
    if layout in BLOCKS:
        raise RuntimeError(
            f"{name}_sparse_compressed expected sparse compressed (non-block) tensor layout but "
            f"got {layout.short_name}"
        )
    if len(size) < 2:
        raise RuntimeError(
            f"torch.{name}: Only batched sparse compressed (non-block) tensors are supported, but "
            f"got size {list(size)}"
        )
    batch, lines = size[:-2], size[-1 if layout in COLUMNS else -2]
    bounds = constructors.zeros((*batch, lines + 1), dtype=int64, device=device)
    plain = constructors.zeros((*batch, 0), dtype=int64, device=device)
    return CompressedTensor(layout, bounds, plain, elements.reshape(*batch, 0), size)


def _new_empty(
    self: SparseBase, *size: Any, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, **_: Any,
) -> SparseBase:  # fmt: skip
    """A tensor without elements, in this one's layout."""
    shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    found = empty("zeros", shape, self.layout, dtype or self.dtype, device or self.device)
    return found.requires_grad_(requires_grad)


for _register in (coordinates, compressed):
    _register.method("new_zeros", "new_empty")(_new_empty)


def _convert_indices_from_coo_to_csr(
    input: Tensor, size: int, *, out_int32: bool = False
) -> Tensor:
    """Where each of `size` rows starts, (size + 1,), among elements in the rows `input`, in order.

    RuntimeError for other than vectors.
    """
    if input.ndim > 1:
        raise RuntimeError(
            f"Input is supposed to be a vector, but got {input.ndim} dimensional tensor."
        )
    if input.dtype not in (int32, int64):
        raise NotImplementedError(f"expected int32 or int64 rows, but got {input.dtype}")
    rows = arange(size + 1, dtype=input.dtype, device=input.device)
    return searchsorted(input.contiguous(), rows, out_int32=out_int32)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor,
    col_indices: Tensor,
    *,
    out_int32: bool = False,
    transpose: bool = False,
) -> Tensor:
    """The rows and columns, stacked, of the elements of CSR indices; batched ones come first.

    With `transpose` rows and columns change places.
    """
    like = col_indices.new_zeros(col_indices.shape)
    size = (*col_indices.shape[:-1], crow_indices.shape[-1] - 1, 1)
    places = CompressedTensor(sparse_csr, crow_indices, col_indices, like, size)._coordinates()
    *batch, row, column = places._places
    found = stack([*batch, *((column, row) if transpose else (row, column))])
    return found.to(int32 if out_int32 else int64)

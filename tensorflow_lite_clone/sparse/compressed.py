"""Matrices in rows or columns: CSR and CSC, and BSR and BSC, of which the elements are blocks.

Where each row (or column) starts, the column (or row) of each element, and the values. With more
dimensions in front these are batches of matrices that have equally many elements; values may have
further dimensions of their own.
"""

# A sparse tensor takes fewer forms of arguments than the methods that it replaces.
# mypy: disable-error-code="override, assignment"
from __future__ import annotations

from typing import Any, NoReturn

from tensorflow_lite_clone.core.device import (
    Layout,
    sparse_bsc,
    sparse_bsr,
    sparse_csc,
    sparse_csr,
)
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.index.sort import argsort, searchsorted
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.ops.shape.rearrange import repeat_interleave
from tensorflow_lite_clone.sparse.base import SparseBase
from tensorflow_lite_clone.sparse.tensor import SparseTensor
from tensorflow_lite_clone.tensor import Tensor

#: Layouts whose compressed dimension is that of columns; those of which the elements are blocks.
COLUMNS, BLOCKS = (sparse_csc, sparse_bsc), (sparse_bsr, sparse_bsc)
#: Layouts by that of the transposed matrix.
TRANSPOSED = {
    sparse_csr: sparse_csc,
    sparse_csc: sparse_csr,
    sparse_bsr: sparse_bsc,
    sparse_bsc: sparse_bsr,
}
#: The names of the two tensors of indices, of layouts in rows and in columns.
INDEX_NAMES = (("crow_indices", "col_indices"), ("ccol_indices", "row_indices"))


class CompressedTensor(SparseBase):
    """A matrix, or a batch of matrices, in rows or columns.

    Of row i the elements are ``values[j]`` in the columns ``plain[j]``, for j from
    ``compressed[i]`` to ``compressed[i + 1]``. With n rows and batch dimensions `*b` the shapes are
    (*b, n + 1), (*b, nnz) and (*b, nnz, *block, *dense). The indices are int32 or int64.
    """

    __slots__ = ("_compressed", "_plain", "layout")

    def __new__(
        cls, layout: Layout, compressed: Tensor, plain: Tensor, values: Tensor, shape: Any
    ) -> CompressedTensor:
        self = object.__new__(cls)
        self.layout = layout
        self._compressed, self._plain, self._elements = compressed, plain, values
        self._size = Size(shape)
        return self

    functions = {}

    _compressed: Tensor
    _plain: Tensor
    layout: Layout

    is_sparse_csr = property(lambda self: self.layout is sparse_csr)
    _index = property(lambda self: (self._compressed, self._plain))
    _index_names = property(lambda self: INDEX_NAMES[self.layout in COLUMNS])

    def _arguments(self, index: tuple[Tensor, ...], elements: Tensor) -> tuple:
        return (self.layout, *index, elements, self._size)

    # -- what it is ---------------------------------------------------------------------------

    @property
    def _batch(self) -> int:
        """The number of batch dimensions."""
        return self._compressed.ndim - 1

    @property
    def _blocksize(self) -> tuple[int, int] | None:
        """The height and width of a block; None where elements are none."""
        if self.layout not in BLOCKS:
            return None
        height, width = self._elements.shape[self._batch + 1 : self._batch + 3]
        return height, width

    def _nnz(self) -> int:
        return self._plain.shape[-1]

    def sparse_dim(self) -> int:
        """2: rows and columns."""
        return 2

    def dense_dim(self) -> int:
        """The number of dimensions of each value, a block's aside."""
        return self.ndim - 2 - self._batch

    def values(self) -> Tensor:
        """The values, (*batch, nnz, *block, *dense)."""
        return self._elements

    def crow_indices(self) -> Tensor:
        """Where the elements of each row start, and how many there are; RuntimeError for CSC."""
        return self._compressed if self.layout not in COLUMNS else Tensor.crow_indices(self)

    def col_indices(self) -> Tensor:
        """The column of each element; RuntimeError for a matrix in columns."""
        return self._plain if self.layout not in COLUMNS else Tensor.col_indices(self)

    def ccol_indices(self) -> Tensor:
        """Where the elements of each column start, and how many there are; RuntimeError for CSR."""
        return self._compressed if self.layout in COLUMNS else Tensor.ccol_indices(self)

    def row_indices(self) -> Tensor:
        """The row of each element; RuntimeError for a matrix in rows."""
        return self._plain if self.layout in COLUMNS else Tensor.row_indices(self)

    def is_contiguous(self, memory_format: Any = None) -> NoReturn:
        """Always RuntimeError: there is no memory of all elements."""
        kind = self.layout.name.removeprefix("sparse_").upper()
        raise RuntimeError(f"Sparse {kind} tensors do not have is_contiguous")

    def type(self, dtype: Any = None) -> CompressedTensor:
        """This tensor in another dtype; RuntimeError without one, as the type has no name."""
        if dtype is None:
            raise RuntimeError(f"tensors of layout {self.layout} have no type name")
        return self.to(dtype)

    # -- conversions --------------------------------------------------------------------------

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The dense tensor, elements at one place summed."""
        if dtype is not None:
            raise RuntimeError(f"dtype argument is not supported by {self.layout.name}_to_dense")
        if self.is_meta:
            return self._elements.new_zeros(self._size)
        return self._coordinates().to_dense()

    def _coordinates(self) -> SparseTensor:
        batch = self._size[: self._batch]
        count, lines = batch.numel(), self._compressed.shape[-1] - 1
        bounds = self._compressed.to(int64).reshape(count, lines + 1)
        line = arange(lines, device=self.device).repeat(count)
        line = repeat_interleave(line, (bounds[:, 1:] - bounds[:, :-1]).reshape(-1))
        plain = self._plain.to(int64).reshape(-1)
        row, column = (plain, line) if self.layout in COLUMNS else (line, plain)
        sample = repeat_interleave(arange(count, device=self.device), self._nnz())
        elements = self._elements.reshape(-1, *self._elements.shape[self._batch + 1 :])
        if self._blocksize is not None:
            row, column, sample = _cells(row, column, sample, self._blocksize)
            elements = elements.reshape(-1, *elements.shape[3:])
        samples = []
        for length in reversed(batch):
            samples.append(sample % length)
            sample = sample // length
        places = stack([*samples[::-1], row, column])
        ordered = self.layout is sparse_csr  # PyTorch takes it for ordered without a look
        return SparseTensor(places, elements, self._size, ordered)


def _cells(row: Tensor, column: Tensor, sample: Tensor, size: tuple[int, int]) -> list[Tensor]:
    """The rows, columns and samples of the elements of blocks of `size`, for those of blocks."""
    height, width = size
    down = arange(height, device=row.device).reshape(-1, 1)
    across = arange(width, device=row.device)
    cells = ((row * height).reshape(-1, 1, 1) + down, (column * width).reshape(-1, 1, 1) + across,
             sample.reshape(-1, 1, 1))  # fmt: skip
    return [cell.expand(len(row), height, width).reshape(-1) for cell in cells]


def compress(
    x: SparseTensor, layout: Layout, blocksize: Any = None, batch: int = 0, dtype: Any = int64
) -> CompressedTensor:
    """The elements of `x`, whose first `batch` dimensions are those of a batch, in rows or columns.

    Those at one place stay apart, but within blocks. RuntimeError where matrices of the batch have
    different numbers of elements.
    """
    height, width = blocksize or (1, 1)
    rows, columns = x._size[batch] // height, x._size[batch + 1] // width
    sample = x._places.new_zeros(x._nnz())
    for place, length in zip(x._places, x._size[:batch], strict=False):
        sample = sample * length + place
    row, column = x._places[batch], x._places[batch + 1]
    elements = x._elements
    if layout in BLOCKS:
        cell = row % height * width + column % width
        flat = (sample * rows + row // height) * columns + column // width
        flat, owner = flat.unique(return_inverse=True)
        rest = elements.shape[1:]
        elements = elements.new_zeros((len(flat) * height * width, *rest)).index_add(
            0, owner * (height * width) + cell, elements
        )
        elements = elements.reshape(-1, height, width, *rest)
        row, column = flat // columns % rows, flat % columns
        sample = flat // (rows * columns)
    lines, line, plain = (columns, column, row) if layout in COLUMNS else (rows, row, column)
    key = sample * lines + line
    if layout in COLUMNS or not x._coalesced:
        order = argsort(key, stable=True)
        key, plain, elements = key[order], plain[order], elements[order]
    size = x._size[:batch]
    count = size.numel()
    if not count:
        raise RuntimeError(
            f"to_{layout.name}: Expected product of batch dimensions to be non-zero."
        )
    each = len(key) // count
    sample = arange(count, device=x.device).unsqueeze(1)
    bounds = sample * lines + arange(lines + 1, device=x.device)
    compressed = searchsorted(key.contiguous(), bounds) - sample * each
    if batch and (len(key) != each * count or bool((compressed[:, 0] != 0).any())):
        raise RuntimeError("Expect the same number of specified elements per batch.")
    return CompressedTensor(
        layout,
        compressed.to(dtype).reshape(*size, lines + 1),
        plain.to(dtype).reshape(*size, each),
        elements.reshape(*size, each, *elements.shape[1:]),
        x._size,
    )

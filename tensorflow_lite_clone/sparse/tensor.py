"""A sparse tensor in coordinates: where its elements are, and a dense tensor of what they are."""

# A sparse tensor takes fewer forms of arguments than the methods that it replaces.
# mypy: disable-error-code="override, assignment"
from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.device import sparse_coo
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.sparse.base import SparseBase
from tensorflow_lite_clone.tensor import Tensor


class SparseTensor(SparseBase):
    """`shape` with the elements ``values[n]`` at the places ``indices[:, n]``, zeros elsewhere.

    `indices` is (d, nnz) over the first d dimensions, `values` is (nnz, *the other dimensions).
    Places that come twice are summed, by `coalesce` for good.
    """

    __slots__ = ("_coalesced", "_places")

    def __new__(
        cls, indices: Tensor, values: Tensor, shape: Any, coalesced: bool = False
    ) -> SparseTensor:
        self = object.__new__(cls)
        self._places, self._elements = indices, values
        self._size, self._coalesced = Size(shape), coalesced or indices.shape[1] < 2
        return self

    functions = {}

    _places: Tensor
    _coalesced: bool

    is_sparse = True
    layout = sparse_coo
    _index_names = ("indices",)

    @property
    def _index(self) -> tuple[Tensor, ...]:
        return (self._places,)

    def _arguments(self, index: tuple[Tensor, ...], elements: Tensor) -> tuple:
        return (*index, elements, self._size, self._coalesced)

    def _coordinates(self) -> SparseTensor:
        return self

    def _get_grad(self) -> SparseTensor | None:
        """The gradient of a leaf, at its own places only."""
        g = self._elements.grad
        # As in PyTorch, a gradient that was accumulated is not known to be coalesced.
        return None if g is None else self._gradient(g)._coalesced_(self._nnz() < 2)

    def _gradient(self, g: Tensor) -> SparseTensor:
        """The gradient of this tensor, coalesced, for that of its values."""
        shared = SparseTensor(self._places, g, self._size)  # equal where places are equal
        ones = self._elements.new_ones(self._nnz())
        times = SparseTensor(self._places, ones, self._size[: self.sparse_dim()]).coalesce()
        total = shared.coalesce()
        count = times._elements.reshape((-1,) + (1,) * self.dense_dim())
        return SparseTensor(total._places, total._elements / count, self._size, True)

    def sparse_dim(self) -> int:
        """The number of dimensions that indices run over."""
        return self._places.shape[0]

    def dense_dim(self) -> int:
        """The number of dimensions of each value."""
        return self._elements.ndim - 1

    _dimI, _dimV = sparse_dim, dense_dim

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """False: there is no memory of all elements."""
        return False

    def _indices(self) -> Tensor:
        return self._places

    def _values(self) -> Tensor:
        return self._elements

    def indices(self) -> Tensor:
        """The places, in order and each once: RuntimeError before `coalesce`."""
        return self._ordered("indices")._places

    def values(self) -> Tensor:
        """What is at the places: RuntimeError before `coalesce`."""
        return self._ordered("values")._elements

    def _ordered(self, what: str) -> SparseTensor:
        if not self._coalesced:
            raise RuntimeError(
                f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first"
            )
        return self

    def is_coalesced(self) -> bool:
        """Whether the places are known to be in order and each there once."""
        return self._coalesced

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        self._coalesced = coalesced
        return self

    def copy_(self, src: Tensor, non_blocking: bool = False) -> SparseTensor:
        """Take the places and values of `src`, a sparse tensor of the same size."""
        if not isinstance(src, SparseTensor) or src._size != self._size:
            raise RuntimeError(
                f"a sparse tensor of size {tuple(self._size)} copies sparse tensors of its size, "
                f"not one of size {tuple(src.shape)} in {src.layout}"
            )
        self._places = src._places.to(self.device, copy=True)
        self._elements = src._elements.to(self.device, self.dtype, copy=True)
        self._coalesced = src._coalesced
        return self

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The dense tensor, places that come twice summed."""
        if dtype is not None:
            raise RuntimeError("dtype argument is not supported by sparse_to_dense")
        lead = self._size[: self.sparse_dim()].numel()
        empty = self._elements.new_zeros((lead, *self._elements.shape[1:]))
        return empty.index_add(0, self._flat(), self._elements).reshape(self._size)

    def coalesce(self) -> SparseTensor:
        """The tensor with its places in order and each there once; itself when they are."""
        if self._coalesced:
            return self
        flat, inverse = self._flat().unique(return_inverse=True)
        empty = self._elements.new_zeros((flat.shape[0], *self._elements.shape[1:]))
        elements = empty.index_add(0, inverse, self._elements)
        return SparseTensor(self._unflat(flat), elements, self._size, True)

    def _flat(self) -> Tensor:
        """Each place as one number, the last of the sparse dimensions fastest."""
        flat = self._places.new_zeros(self._nnz())
        for row, length in zip(self._places, self._size, strict=False):
            flat = flat * length + row
        return flat

    def _unflat(self, flat: Tensor) -> Tensor:
        rows = []
        for length in reversed(self._size[: self.sparse_dim()]):
            rows.append(flat % length)
            flat = flat // length
        return stack(rows[::-1]) if rows else flat.new_zeros((0, flat.shape[0]))

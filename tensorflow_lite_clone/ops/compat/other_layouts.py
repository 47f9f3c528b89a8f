"""PyTorch's methods of sparse and quantized tensors, for a dense one: itself, or an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from tensorflow_lite_clone.core import late_bound
from tensorflow_lite_clone.core.device import (
    COMPRESSED,
    AnyLayout,
    jagged,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.ops.pointwise._operands import cast
from tensorflow_lite_clone.tensor import Tensor

for _kind in (sparse_coo, *COMPRESSED, jagged):
    export(_kind, "torch", name=_kind.name)

_COO, _ROWS, _COLUMNS = (
    f"sparse {kind} tensor layout" for kind in ("coordinate", "row compressed", "column compressed")
)
_EXPECTED = {
    "values": "sparse tensor layout",
    "indices": _COO,
    "coalesce": _COO,
    "is_coalesced": _COO,
    "crow_indices": _ROWS,
    "col_indices": _ROWS,
    "ccol_indices": _COLUMNS,
    "row_indices": _COLUMNS,
}
_QUANTIZED = (
    "q_scale q_zero_point int_repr q_per_channel_axis q_per_channel_scales "
    "q_per_channel_zero_points"
).split()


def _expecting(name: str, layout: str) -> Callable[[Tensor], NoReturn]:
    def method(self: Tensor) -> NoReturn:
        raise RuntimeError(f"{name} expected {layout} but got {self.layout.short_name}")

    method.__name__ = name
    method.__doc__ = f"Always RuntimeError: {name} is of {layout}s."
    return method


def _unavailable(name: str) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any) -> Any:
        if self.is_quantized:  # whose class has methods of its own
            return getattr(self, name)(*args)
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the '{self.device.type.upper()}' "
            "backend: the tensor is dense and not quantized"
        )

    method.__name__ = name
    method.__doc__ = f"NotImplementedError for dense tensors: {name} is of other kinds."
    return method


for _name, _layout in _EXPECTED.items():
    export(_expecting(_name, _layout), "method", name=_name)
for _name in ("_indices", "_nnz", "_values", "qscheme", "to_padded_tensor"):
    export(_unavailable(_name), "method", name=_name)
for _name in _QUANTIZED:
    export(_unavailable(_name), "torch", "method", name=_name)


@public("method")
def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor itself, or in `dtype`."""
    return self if dtype is None else self.to(dtype)


@public("torch", "method")
def dequantize(input: Any) -> Any:
    """The tensor in float32, and of a quantized one the numbers that its codes stand for."""
    if isinstance(input, (list, tuple)):
        return tuple([dequantize(each) for each in input])
    return cast(input, float32)


@public("method")
def sparse_dim(self: Tensor) -> int:
    """0: no dimension of a dense tensor is sparse."""
    return 0


@public("method")
def dense_dim(self: Tensor) -> int:
    """The number of dimensions."""
    return self.ndim


@public("method")
def to_sparse(
    self: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: AnyLayout | None = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Tensor:
    """The elements that are not zero, as a sparse tensor.

    Without `layout` in coordinates, over the first `sparse_dim` dimensions; in rows or columns of
    matrices, batches of which have equally many elements, and where blocks of `blocksize` do not
    fit: RuntimeError. Values have the last `dense_dim` dimensions.
    """
    if layout is strided:
        return self
    count = self.ndim if sparse_dim is None else sparse_dim
    if not 0 <= count <= self.ndim:
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{self.ndim}] range, but "
            f"{sparse_dim} is given"
        )
    if count == 0 and self.ndim:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    result: Tensor = late_bound.to_sparse(self, count, layout, blocksize, dense_dim)
    return result


@public("method")
def to_sparse_coo(self: Tensor) -> Tensor:
    """The tensor in coordinates; see `to_sparse`."""
    return self.to_sparse()


@public("method")
def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The tensor in compressed rows; see `to_sparse`."""
    return self.to_sparse(layout=sparse_csr, dense_dim=dense_dim)


@public("method")
def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The tensor in compressed columns; see `to_sparse`."""
    return self.to_sparse(layout=sparse_csc, dense_dim=dense_dim)


@public("method")
def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """The tensor in compressed rows of blocks of ``(height, width)``; see `to_sparse`."""
    return self.to_sparse(layout=sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


@public("method")
def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """The tensor in compressed columns of blocks of ``(height, width)``; see `to_sparse`."""
    return self.to_sparse(layout=sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)


@public("method")
def sparse_mask(self: Tensor, mask: Any) -> Tensor:
    """The elements at the places of a sparse tensor, in a sparse tensor of its layout."""
    if mask.layout is strided:
        raise NotImplementedError("sparse_mask expects a mask that is a sparse tensor")
    if self.shape != mask.shape:
        raise RuntimeError(
            "sparse_mask(): operands have incompatible sizes; self has size "
            f"{list(self.shape)} but mask has size {list(mask.shape)}"
        )
    elements = self[tuple(mask._coordinates()._indices())]
    return mask._with(elements.reshape(mask._elements.shape))

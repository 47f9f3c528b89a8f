"""Functions of matrices in compressed rows or columns: those that PyTorch has.

What changes the values alone keeps the indices; sums and products of two matrices go by way of
coordinates, and their indices come in order.
"""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.device import sparse_coo, sparse_csr, strided
from tensorflow_lite_clone.core.shape import normalize_dim
from tensorflow_lite_clone.core.signature import is_int
from tensorflow_lite_clone.ops.compat import other_layouts
from tensorflow_lite_clone.ops.linalg.matmul import matmul
from tensorflow_lite_clone.ops.pointwise._operands import as_number
from tensorflow_lite_clone.ops.pointwise.compare import equal
from tensorflow_lite_clone.sparse import arithmetic, shapes
from tensorflow_lite_clone.sparse.compressed import BLOCKS, TRANSPOSED, CompressedTensor, compress
from tensorflow_lite_clone.sparse.functions import compressed
from tensorflow_lite_clone.sparse.tensor import SparseTensor
from tensorflow_lite_clone.tensor import Tensor


def _back(x: SparseTensor, like: CompressedTensor) -> CompressedTensor:
    """The elements of `x` in the layout and with the dtype of indices of `like`."""
    return compress(x, like.layout, like._blocksize, like._batch, like._plain.dtype)


# -- of each element ------------------------------------------------------------------------------

#: Functions that leave zero at zero, over the values; those of the second list have forms in place.
_POINTWISE = "angle isinf isnan isneginf isposinf signbit"
_IN_PLACE = f"{arithmetic.IN_PLACE} conj_physical neg negative"
_OPERATORS = {"abs": "__abs__", "neg": "__neg__"}


def _pointwise(name: str) -> None:
    def call(input: CompressedTensor) -> CompressedTensor:
        return input._with(getattr(input._elements, name)())

    def call_(input: CompressedTensor) -> CompressedTensor:
        getattr(input._elements, f"{name}_")()
        return input

    call.__name__, call_.__name__ = name, f"{name}_"
    call.__doc__, call_.__doc__ = f"`{name}` of the values.", f"In-place form of `{name}`."
    compressed.function(name, *([_OPERATORS[name]] if name in _OPERATORS else []))(call)
    if name in _IN_PLACE.split():
        compressed.function(f"{name}_")(call_)


for _name in f"{_POINTWISE} {_IN_PLACE}".split():
    _pointwise(_name)


@compressed.function("positive", "__pos__")
def positive(input: CompressedTensor) -> CompressedTensor:
    """`input` itself."""
    return input


@compressed.function("fill_")
def fill_(input: CompressedTensor, value: Any) -> CompressedTensor:
    """Set all values that are there to one number."""
    input._elements.fill_(value)
    return input


@compressed.function("zero_")
def zero_(input: CompressedTensor) -> CompressedTensor:
    """Forget all elements."""
    return input._assign(zeros_like(input))


@compressed.function("copy_")
def copy_(input: Any, src: Any, non_blocking: bool = False) -> Tensor:
    """Become a copy of a tensor of the same size and layout, with equally many elements."""
    if input.layout is not src.layout or input.layout is strided:
        raise RuntimeError(
            "torch.copy_: copy of sparse compressed tensors having different layouts is not "
            f"supported. self layout is {input.layout.short_name} and src layout is "
            f"{src.layout.short_name}"
        )
    if input.shape != src.shape or input._nnz() != src._nnz():
        raise RuntimeError(
            "torch.copy_: only sparse compressed tensors with the same number of specified "
            f"elements are supported, not {input._nnz()} in {list(input.shape)} and {src._nnz()} "
            f"in {list(src.shape)}"
        )
    for mine, other in zip((*input._index, input._elements), (*src._index, src._elements)):
        mine.copy_(other)
    return input


# -- sums and products of two ---------------------------------------------------------------------


def _is_dense(other: Any) -> bool:
    return not isinstance(other, Tensor) or other.layout is strided


def _expect_alike(name: str, input: CompressedTensor, other: Any) -> None:
    """RuntimeError unless `other` has the layout, shape and dtype of `input`."""
    if other.layout is not input.layout or other._blocksize != input._blocksize:
        raise RuntimeError(
            f"{name} expected tensors of one layout, but got {input.layout.short_name} and "
            f"{other.layout.short_name}"
        )
    if other.shape != input.shape:
        raise RuntimeError(
            f"{name}: Expected input tensors to have the same shape, but got tensor `self` with "
            f"shape {list(input.shape)} and tensor `other` with shape {list(other.shape)}"
        )
    if other.dtype is not input.dtype:
        raise RuntimeError(
            f"expected scalar type {input.dtype.short_name} but found {other.dtype.short_name}"
        )


@compressed.function("add", "__add__", "__radd__")
def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """``input + alpha * other`` of two tensors in one layout; dense if one of them is.

    RuntimeError for other layouts and shapes.
    """
    if not isinstance(input, CompressedTensor):
        if isinstance(input, SparseTensor):
            raise RuntimeError("add: tensors in coordinates and in rows do not add")
        return arithmetic.add(input, other._coordinates(), alpha=alpha)
    if _is_dense(other):
        first = other if type(alpha) is int and alpha == 1 else other * alpha
        return arithmetic.add(first, input._coordinates())
    _expect_alike("torch.add", input, other)
    pairs = zip(input._index, other._index, strict=True)
    if input._nnz() == other._nnz() and all([equal(x.to(y.dtype), y) for x, y in pairs]):
        return input._with(input._elements.add(other._elements, alpha=alpha))
    total: Any = arithmetic.add(
        input._coordinates().coalesce(), other._coordinates().coalesce(), alpha=alpha
    )
    return _back(total, input)


@compressed.function("add_", "__iadd__")
def add_(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """In-place form of `add`; a dense tensor keeps its memory."""
    if input.layout is strided:
        return arithmetic.add_(input, other._coordinates(), alpha=alpha)
    if not isinstance(other, CompressedTensor):
        raise RuntimeError("a sparse tensor adds, in place, tensors in its own layout only")
    total: Any = add(input, other, alpha=alpha)
    return input._assign(total)


@compressed.function("mul", "multiply", "__mul__", "__rmul__")
def mul(input: Any, other: Any) -> CompressedTensor:
    """The product with a number, with a dense tensor of the same shape, or with a sparse one.

    With dense factors it has the places of the sparse one, else those that both have.
    """
    if not isinstance(input, CompressedTensor):
        if isinstance(input, SparseTensor):
            raise RuntimeError("Expected result Tensor to be of format CSR")
        input, other = other, input
    if not getattr(other, "ndim", 0):  # a number
        return input._with(input._elements * other)
    if _is_dense(other):
        masked: Any = other_layouts.sparse_mask(other, input)
        return input._with(input._elements * masked._elements)
    if other.shape != input.shape:
        raise RuntimeError(
            f"mul: expected tensors of one size, but got {list(input.shape)} and "
            f"{list(other.shape)}"
        )
    product = arithmetic.mul(input._coordinates().coalesce(), other._coordinates().coalesce())
    return compress(product, input.layout, input._blocksize, input._batch)


@compressed.function("mul_", "multiply_", "__imul__")
def mul_(input: Any, other: Any) -> Tensor:
    """In-place form of `mul`."""
    if input.layout is strided:
        raise RuntimeError("a dense tensor is not multiplied in place by a sparse one")
    if as_number(other) is None:
        return input._assign(mul(input, other))
    input._elements.mul_(other)
    return input


@compressed.function("sparse_mask")
def sparse_mask(input: CompressedTensor, mask: Any) -> CompressedTensor:
    """The elements that are at places of `mask`, which is in the same layout; see `mul`."""
    if mask.layout is not input.layout:
        raise RuntimeError(
            f"sparse_mask: expected a mask in {input.layout.short_name}, not in "
            f"{mask.layout.short_name}"
        )
    return mul(input, mask._with(mask._elements.new_ones(mask._elements.shape, dtype=input.dtype)))


# -- matrix products ------------------------------------------------------------------------------


@compressed.function("addmm")
@compressed.function("addmv")
def addmm(input: Any, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``."""
    product = matmul(mat1, mat2)
    if input.layout is not strided and product.layout is strided:
        raise RuntimeError(
            f"addmm: computation is not implemented for {input.layout.short_name} + "
            f"{mat1.layout.short_name} @ {mat2.layout.short_name}"
        )
    product = product if type(alpha) is int and alpha == 1 else alpha * product
    if type(beta) is int and beta == 0:
        return product
    return input * beta + product


@compressed.function("linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.t() + bias``."""
    product = matmul(input, weight.t())
    return product if bias is None else product + bias


# -- shapes ---------------------------------------------------------------------------------------


@compressed.function("transpose", "swapaxes", "swapdims")
def transpose(input: CompressedTensor, dim0: int, dim1: int) -> CompressedTensor:
    """Rows and columns exchanged, or two dimensions of the batch, with the same values.

    A matrix in rows becomes one in columns. RuntimeError for dimensions of two kinds.
    """
    dim0, dim1 = normalize_dim(dim0, input.ndim), normalize_dim(dim1, input.ndim)
    batch = input._batch
    if input.dense_dim():
        raise RuntimeError(
            "transpose(): hybrid sparse compressed tensors with dense dimensions are not supported"
        )
    if dim0 == dim1:
        return input._with(input._elements)
    kinds = ["Batch" if dim < batch else "Sparse" for dim in (dim0, dim1)]
    if kinds[0] != kinds[1]:
        raise RuntimeError(
            "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), "
            f"got {dim0}({kinds[0]}) and {dim1}({kinds[1]})"
        )
    size = list(input.shape)
    size[dim0], size[dim1] = size[dim1], size[dim0]
    parts = (*input._index, input._elements)
    if kinds[0] == "Batch":
        first, plain, elements = [part.transpose(dim0, dim1) for part in parts]
        return CompressedTensor(input.layout, first, plain, elements, size)
    first, plain, elements = parts
    if input.layout in BLOCKS:
        elements = elements.transpose(-1, -2)
    return CompressedTensor(TRANSPOSED[input.layout], first, plain, elements, size)


@compressed.function("t")
def t(input: CompressedTensor) -> CompressedTensor:
    """The transposed matrix."""
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return transpose(input, 0, 1)


@compressed.function("adjoint")
def adjoint(input: CompressedTensor) -> CompressedTensor:
    """The conjugate transposed matrices."""
    found = transpose(input, -2, -1)
    return found.conj_physical() if found.dtype.is_complex else found


CompressedTensor.mT = property(lambda self: transpose(self, -2, -1))  # type: ignore[assignment]
CompressedTensor.mH = property(adjoint)  # type: ignore[assignment]
CompressedTensor.H = property(adjoint)  # type: ignore[assignment]
compressed.method("__getitem__")(shapes.item_at)


@compressed.function("select")
def select(input: CompressedTensor, dim: int, index: int) -> Tensor:
    """A matrix of a batch, in its layout, or a row or column of one matrix, in coordinates."""
    axis = normalize_dim(dim, input.ndim)
    length = input.shape[axis]
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of bounds for dimension {dim} with size {length}")
    if axis < input._batch:
        size = [*input.shape[:axis], *input.shape[axis + 1 :]]
        parts = *input._index, input._elements
        first, plain, elements = [part.select(axis, index) for part in parts]
        return CompressedTensor(input.layout, first, plain, elements, size)
    if input._batch:
        raise RuntimeError(
            "select(): selecting sparse dimensions is not supported for batched sparse compressed "
            "tensors."
        )
    if input.layout in BLOCKS:
        raise RuntimeError(f"select(): no view exists for an input in {input.layout.short_name}")
    found: Any = shapes.select(input._coordinates(), axis, index)
    return found._coalesced_(True) if found.layout is sparse_coo else found


@compressed.function("unbind")
def unbind(input: CompressedTensor, dim: int = 0) -> tuple[Tensor, ...]:
    """All slices along `dim`."""
    return tuple([select(input, dim, index) for index in range(input.shape[dim])])


@compressed.method("__iter__")
def _iterate(self: CompressedTensor) -> Any:
    return iter(unbind(self))


@compressed.function("sum")
def total(
    input: CompressedTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The sum of all elements, dense, or over rows, columns or both of a CSR matrix, in CSR.

    RuntimeError for sums over dimensions that are not kept, and for other layouts.
    """
    if dim is None:
        return input._elements.sum(dtype=dtype)
    if input.layout is not sparse_csr or input.ndim != 2:
        raise RuntimeError(
            "Currently the only compressed sparse format supported for sum.dim_IntList is CSR, of "
            f"two dimensions, but got layout {input.layout.short_name} of {input.ndim}"
        )
    if not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    axes = {normalize_dim(axis, 2) for axis in ([dim] if is_int(dim) else dim)} or {0, 1}
    x = input._coordinates()
    places = x._places.clone()
    for axis in axes:
        places[axis] = 0
    size = [1 if axis in axes else length for axis, length in enumerate(input.shape)]
    elements = x._elements.to(x._elements[:0].sum(dtype=dtype).dtype)
    return _back(SparseTensor(places, elements, size).coalesce(), input)


@compressed.function("item")
def item(input: CompressedTensor) -> Any:
    """The one element as a Python number; RuntimeError where there are several."""
    return input.to_dense().item()


# -- tensors like another -------------------------------------------------------------------------


@compressed.function("zeros_like")
def zeros_like(
    input: CompressedTensor, *, dtype: Any = None, device: Any = None
) -> CompressedTensor:
    """A tensor without elements, of the size and layout of another."""
    first, batch = input._compressed, input.shape[: input._batch]
    rest = input._elements.shape[input._batch + 1 :]
    index = (first.new_zeros(first.shape), input._plain.new_zeros((*batch, 0)))
    empty: Any = input._beside(index, input._elements.detach().new_zeros((*batch, 0, *rest)))
    return empty.to(device, dtype)


def _alike(name: str) -> Any:
    def like(input: Any, *, dtype: Any = None, device: Any = None) -> CompressedTensor:
        return input.detach().to(device, dtype, copy=True).fill_(name == "ones_like")

    like.__name__ = name
    like.__doc__ = "A tensor with the indices of another and values that are all alike."
    return like


for _name in ("empty_like", "ones_like"):
    CompressedTensor.functions[_name] = _alike(_name)
CompressedTensor.functions |= {
    "clone": CompressedTensor.clone, "mv": matmul, "numel": CompressedTensor.numel
}  # fmt: skip
for _name in "bfloat16 bool byte cdouble cfloat char double float half int long short".split():
    compressed.method(_name)(shapes.converting(_name))

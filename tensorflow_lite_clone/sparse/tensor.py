"""A sparse tensor in coordinates: where its elements are, and a dense tensor of what they are.

Everything is made of dense functions of `values`, so gradients of every order go through them.
A function of dense tensors asks for `_storage`, and gets an error that knows what `functions` has
in its place.
"""

# A sparse tensor takes fewer forms of arguments than the methods that it replaces.
# mypy: disable-error-code="override, assignment"
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from tensorflow_lite_clone._tensor_str import format_tensor
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.device import Device, sparse_coo
from tensorflow_lite_clone.core.dtypes import (
    DType,
    can_cast,
    get_default_dtype,
    int64,
    uncastable,
)
from tensorflow_lite_clone.core.errors import NotStrided
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.core.torch_function import disabled
from tensorflow_lite_clone.ops.create.convert import parse_to
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.tensor import Tensor


class SparseTensor(Tensor):
    """`shape` with the elements ``values[n]`` at the places ``indices[:, n]``, zeros elsewhere.

    `indices` is (d, nnz) over the first d dimensions, `values` is (nnz, *the other dimensions).
    Places that come twice are summed, by `coalesce` for good.
    """

    __slots__ = ("_coalesced", "_elements", "_places", "_size")

    __torch_function__ = disabled

    _edge = None  # the graph is that of the values
    _view = None

    def __new__(
        cls, indices: Tensor, values: Tensor, shape: Any, coalesced: bool = False
    ) -> SparseTensor:
        self = object.__new__(cls)
        self._places, self._elements = indices, values
        self._size, self._coalesced = Size(shape), coalesced or indices.shape[1] < 2
        return self

    #: By name what functions do of which an argument is sparse; entered by the files beside this.
    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    _places: Tensor
    _elements: Tensor
    _size: Size
    _coalesced: bool

    @property
    def _storage(self) -> NoReturn:
        raise NotStrided(
            self.functions,
            "this function does not take sparse tensors: see torch.sparse for what does, or use "
            "to_dense() first",
        )

    # -- what it is ---------------------------------------------------------------------------

    is_sparse = True
    layout = sparse_coo

    @property
    def shape(self) -> Size:
        """The size of every dimension."""
        return self._size

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._size)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._elements.dtype

    @property
    def device(self) -> Device:
        """The device that holds indices and values."""
        return self._elements.device

    is_cuda = property(lambda self: self._elements.is_cuda)
    is_cpu = property(lambda self: self._elements.is_cpu)
    is_meta = property(lambda self: self._elements.is_meta)
    grad_fn = property(lambda self: self._elements.grad_fn)
    is_leaf = property(lambda self: self._elements.is_leaf)
    requires_grad = property(
        lambda self: self._elements.requires_grad,
        lambda self, value: setattr(self._elements, "requires_grad", value),
    )

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

    def _set_grad(self, value: None) -> None:
        if value is not None:
            raise NotImplementedError("the gradient of a sparse tensor can be set to None only")
        self._elements.grad = None

    grad = property(_get_grad, _set_grad)

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Say whether operations on the values are to be recorded; returns the tensor."""
        self._elements.requires_grad_(requires_grad)
        return self

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one of its sizes."""
        return self._size if dim is None else self._size[dim]

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._size)

    ndimension = dim

    def numel(self) -> int:
        """The number of elements, zeros included."""
        return self._size.numel()

    def sparse_dim(self) -> int:
        """The number of dimensions that indices run over."""
        return self._places.shape[0]

    def dense_dim(self) -> int:
        """The number of dimensions of each value."""
        return self._elements.ndim - 1

    _dimI, _dimV = sparse_dim, dense_dim

    def element_size(self) -> int:
        """The bytes of one element."""
        return self.dtype.itemsize

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """False: there is no memory of all elements."""
        return False

    def numpy(self, *, force: bool = False) -> NoReturn:
        """Always TypeError: NumPy has no sparse arrays."""
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def _nnz(self) -> int:
        return self._places.shape[1]

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

    def __len__(self) -> int:
        return self._size[0]

    def __bool__(self) -> bool:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self, **_: Any) -> str:
        device = f"device='{self.device}', " if not self.is_cpu else ""
        dtype = "" if self.dtype is get_default_dtype() else f"dtype={self.dtype}, "
        dtype = "" if self.dtype is int64 else dtype
        count = "" if self.is_meta else f"nnz={self._nnz()}, "
        tail = f"{device}size={tuple(self._size)}, {count}{dtype}layout={self.layout}"
        if self.grad_fn is not None:
            tail += f", grad_fn=<{type(self.grad_fn).__name__}>"
        elif self.requires_grad:
            tail += ", requires_grad=True"
        places = _text("tensor(indices=tensor", self._places)
        elements = _text("       values=tensor", self._elements.detach())
        return f"{places},\n{elements},\n       {tail})"

    # -- conversions --------------------------------------------------------------------------

    def _with(self, elements: Tensor) -> SparseTensor:
        return SparseTensor(self._places, elements, self._size, self._coalesced)

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """Another device or dtype, in the forms of ``Tensor.to``."""
        device, dtype, _, copied = parse_to(*args, **kwargs)
        if not copied and device in (None, self.device) and dtype in (None, self.dtype):
            return self
        places = self._places.to(device or self._places.device)
        elements = self._elements.to(device, dtype)
        return SparseTensor(places, elements, self._size, self._coalesced)

    def cpu(self) -> SparseTensor:
        """On the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None, **_: Any) -> SparseTensor:
        """On a CUDA device."""
        return self.to("cuda" if device is None else Device("cuda", device))

    def clone(self, *, memory_format: Any = None) -> SparseTensor:
        """A copy of indices and values."""
        return SparseTensor(
            self._places.clone(), self._elements.clone(), self._size, self._coalesced
        )

    def detach(self) -> SparseTensor:
        """The same values out of the graph."""
        return self._with(self._elements.detach())

    def detach_(self) -> SparseTensor:
        """Take the tensor itself out of the graph."""
        self._elements = self._elements.detach()
        return self

    def _set_data(self, data: SparseTensor) -> None:
        self._places, self._elements = data._places, data._elements.detach()
        self._size, self._coalesced = data._size, data._coalesced

    data = property(detach, _set_data)

    def _assign(self, other: SparseTensor) -> SparseTensor:
        """Become what `other` is, for functions in place; RuntimeError for leaves of a graph."""
        if mode.grad and self.requires_grad and self.is_leaf:
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
        if not can_cast(other.dtype, self.dtype):
            raise uncastable(other.dtype, self.dtype)
        self._places, self._elements = other._places, other._elements.to(self.dtype)
        self._size, self._coalesced = other._size, other._coalesced
        return self

    def type(self, dtype: Any = None) -> Any:
        """The type's name (``torch.sparse.FloatTensor``), or this tensor in another dtype."""
        if dtype is None:
            place = "" if self.is_cpu else f"{self.device.type}."
            return f"torch.{place}sparse.{self.dtype.short_name}Tensor"
        return self.to(dtype)

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

    def __copy__(self) -> SparseTensor:
        function, arguments = self.__reduce_ex__(2)
        return function(*arguments)

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        if id(self) not in memo:
            places, elements = copy.deepcopy((self._places, self._elements), memo)
            attributes = copy.deepcopy(vars(self), memo)
            memo[id(self)] = _rebuilt(places, elements, self._size, self._coalesced, attributes)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        elements = self._elements.detach()
        return _rebuilt, (self._places, elements, self._size, self._coalesced, vars(self))

    def to_sparse(self, sparse_dim: int | None = None, **_: Any) -> SparseTensor:
        """The tensor itself; RuntimeError for another number of sparse dimensions."""
        if sparse_dim not in (None, self.sparse_dim()):
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument "
                "!=self.sparse_dim() is not supported"
            )
        return self

    def to_sparse_coo(self) -> SparseTensor:
        """The tensor itself."""
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


def _rebuilt(
    places: Tensor, elements: Tensor, size: Size, coalesced: bool, attributes: dict[str, Any]
) -> SparseTensor:
    """What copies and pickles make: a sparse tensor with the attributes that it was given."""
    tensor = SparseTensor(places, elements, size, coalesced)
    vars(tensor).update(attributes)
    return tensor


def _text(prefix: str, part: Tensor) -> str:
    if not part.numel() or part.is_meta:
        contents = "[]" if not part.numel() else "..."
        return f"{prefix}({contents}, size={tuple(part.shape)})"
    storage = part._storage
    return format_tensor(
        storage.array,
        shape=part.shape,
        dtype=part.dtype,
        default_dtype=part.dtype,
        prefix=prefix,
        fetch=storage.backend.numbers,
    )

"""A sparse tensor in coordinates: where its elements are, and a dense tensor of what they are.

Everything is made of dense functions of `values`, so gradients of every order go through them.
A dense function that is not defined here asks for `_storage`, and gets the error that says so.
"""

# A sparse tensor takes fewer forms of arguments than the methods that it replaces.
# mypy: disable-error-code="override, assignment"
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NoReturn

from tensorflow_lite_clone.core.device import Device, sparse_coo
from tensorflow_lite_clone.core.dtypes import DType, get_default_dtype, int64
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.ops.convert import parse_to
from tensorflow_lite_clone.ops.join import cat, stack
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.tensor.printing import format_tensor


class SparseTensor(Tensor):
    """`shape` with the elements ``values[n]`` at the places ``indices[:, n]``, zeros elsewhere.

    `indices` is (d, nnz) over the first d dimensions, `values` is (nnz, *the other dimensions).
    Places that come twice are summed, by `coalesce` for good.
    """

    __slots__ = ("_coalesced", "_elements", "_places", "_size")

    _edge = None  # the graph is that of the values
    _view = None

    def __new__(
        cls, indices: Tensor, values: Tensor, shape: Any, coalesced: bool = False
    ) -> SparseTensor:
        self = object.__new__(cls)
        self._places, self._elements = indices, values
        self._size, self._coalesced = Size(shape), coalesced
        return self

    _places: Tensor
    _elements: Tensor
    _size: Size
    _coalesced: bool

    @property
    def _storage(self) -> NoReturn:
        raise NotImplementedError(
            "this function does not take sparse tensors: what does is matrix products, sums, "
            "transposes, sums and differences of two, products with numbers and dense tensors, "
            "and torch.sparse; use to_dense() first"
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
    grad_fn = property(lambda self: self._elements.grad_fn)
    is_leaf = property(lambda self: self._elements.is_leaf)
    requires_grad = property(
        lambda self: self._elements.requires_grad,
        lambda self, value: setattr(self._elements, "requires_grad", value),
    )

    def _get_grad(self) -> SparseTensor | None:
        """The gradient of a leaf, at its own places only."""
        g = self._elements.grad
        if g is None:
            return None
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
        tail = f"{device}size={tuple(self._size)}, nnz={self._nnz()}, {dtype}layout={self.layout}"
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
        device, dtype, _, _ = parse_to(*args, **kwargs)
        places = self._places.to(device or self._places.device)
        elements = self._elements.to(device, dtype)
        return SparseTensor(places, elements, self._size, self._coalesced)

    def cpu(self) -> SparseTensor:
        """On the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None, **_: Any) -> SparseTensor:
        """On a CUDA device."""
        return self.to("cuda" if device is None else Device("cuda", device))

    def clone(self, **_: Any) -> SparseTensor:
        """A copy of indices and values."""
        return SparseTensor(
            self._places.clone(), self._elements.clone(), self._size, self._coalesced
        )

    def detach(self) -> SparseTensor:
        """The same values out of the graph."""
        return self._with(self._elements.detach())

    data = property(detach)

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

    def to_sparse(self, *args: Any, **kwargs: Any) -> SparseTensor:
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
        return stack(rows[::-1])

    # -- arithmetic ---------------------------------------------------------------------------

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Two of the sparse dimensions exchanged."""
        order = list(range(self.sparse_dim()))
        order[dim0], order[dim1] = order[dim1], order[dim0]
        size = [*(self._size[axis] for axis in order), *self._size[len(order) :]]
        return SparseTensor(self._places[order], self._elements, size)

    def t(self) -> SparseTensor:
        """The transposed matrix."""
        return self.transpose(0, 1)

    T = property(t)

    def __neg__(self) -> SparseTensor:
        return self._with(-self._elements)

    def __mul__(self, other: Any) -> SparseTensor:
        if isinstance(other, SparseTensor):
            return NotImplemented
        if isinstance(other, Tensor) and other.ndim:
            other = other.expand(self._size)[tuple(self._places)]
        return self._with(self._elements * other)

    __rmul__ = mul = multiply = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        if isinstance(other, Tensor) and other.ndim:
            raise RuntimeError("a sparse tensor can be divided by a number only")
        return self._with(self._elements / other)

    div = __truediv__

    def __add__(self, other: Any) -> SparseTensor:
        if not isinstance(other, SparseTensor):
            raise RuntimeError(
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead."
            )
        if other._size != self._size:
            raise RuntimeError(f"sparse tensors of shapes {self._size} and {other._size}")
        places = cat([self._places, other._places], 1)
        elements = cat([self._elements, other._elements])
        return SparseTensor(places, elements, self._size).coalesce()

    add = __add__

    def __radd__(self, other: Any) -> Tensor:
        return other + self.to_dense()

    def __sub__(self, other: Any) -> SparseTensor:
        return self + (-other)

    def __rsub__(self, other: Any) -> Tensor:
        return other - self.to_dense()

    def sum(self, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
        """The sum of all elements, dense, or over some of the sparse dimensions, sparse."""
        source = self if dtype is None else self.to(dtype)
        if dim is None:
            return source._elements.sum()
        axes = {axis % self.ndim for axis in ([dim] if isinstance(dim, int) else dim)}
        if keepdim or max(axes) >= self.sparse_dim():
            raise NotImplementedError("sums of sparse tensors drop sparse dimensions only")
        kept = [axis for axis in range(self.sparse_dim()) if axis not in axes]
        if not kept:
            return source._elements.sum(0)
        size = [length for axis, length in enumerate(self._size) if axis not in axes]
        return SparseTensor(source._places[kept], source._elements, size).coalesce()


def _rebuilt(
    places: Tensor, elements: Tensor, size: Size, coalesced: bool, attributes: dict[str, Any]
) -> SparseTensor:
    """What copies and pickles make: a sparse tensor with the attributes that it was given."""
    tensor = SparseTensor(places, elements, size, coalesced)
    vars(tensor).update(attributes)
    return tensor


def _text(prefix: str, part: Tensor) -> str:
    if not part.numel():
        return f"{prefix}([], size={tuple(part.shape)})"
    storage = part._storage
    return format_tensor(
        storage.array,
        shape=part.shape,
        dtype=part.dtype,
        default_dtype=part.dtype,
        prefix=prefix,
        fetch=storage.backend.numbers,
    )


def _converting(name: str) -> Callable[[SparseTensor], SparseTensor]:
    def convert(self: SparseTensor) -> SparseTensor:
        return self._with(getattr(self._elements, name)())

    convert.__name__ = name
    convert.__doc__ = f"The same places with values in ``{name}``."
    return convert


for _name in ("bfloat16", "double", "float", "half", "int", "long"):
    setattr(SparseTensor, _name, _converting(_name))

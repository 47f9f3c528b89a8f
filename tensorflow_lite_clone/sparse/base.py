"""What tensors of every sparse layout are: tensors of indices, and a dense tensor of values.

Everything is made of dense functions of the values, so gradients of every order go through them.
A function of dense tensors asks for `_storage`, and gets an error that knows what `functions` has
in its place.
"""

# A sparse tensor takes fewer forms of arguments than the methods that it replaces.
# mypy: disable-error-code="override, assignment"
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Self

from tensorflow_lite_clone._tensor_str import _add_suffixes, format_tensor, grad_fn_name
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import (
    DType,
    bool_,
    can_cast,
    complex64,
    complex128,
    float64,
    get_default_dtype,
    int64,
    uncastable,
)
from tensorflow_lite_clone.core.errors import NotStrided
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.core.torch_function import disabled
from tensorflow_lite_clone.ops.create.convert import parse_to
from tensorflow_lite_clone.tensor import Tensor


class SparseBase(Tensor):
    """A tensor of a sparse layout; each class says by `_index` and `_arguments` what it holds."""

    __slots__ = ("_elements", "_size")

    __torch_function__ = disabled

    _edge = None  # the graph is that of the values
    _view = None

    #: By name what functions do of which an argument is of this class; entered by the files beside.
    functions: ClassVar[dict[str, Callable[..., Any]]]

    _elements: Tensor
    _size: Size

    @property
    def _index(self) -> tuple[Tensor, ...]:
        """The tensors of indices."""
        raise NotImplementedError

    def _arguments(self, index: tuple[Tensor, ...], elements: Tensor) -> tuple:
        """The arguments for a tensor like this one with other indices and values."""
        raise NotImplementedError

    def _beside(self, index: tuple[Tensor, ...], elements: Tensor) -> Self:
        """A tensor like this one with other indices and values."""
        return type(self)(*self._arguments(index, elements))

    def _with(self, elements: Tensor) -> Self:
        """A tensor like this one with other values."""
        return self._beside(self._index, elements)

    def _become(self, other: Self, elements: Tensor) -> Self:
        """Take over the indices of `other`, and values."""
        for name in type(self).__slots__:
            setattr(self, name, getattr(other, name))
        self._size, self._elements = other._size, elements
        return self

    def _coordinates(self) -> Any:
        """The same elements in coordinates, in the order of the values."""
        raise NotImplementedError

    @property
    def _storage(self) -> NoReturn:
        raise NotStrided(
            self.functions,
            f"this function does not take sparse tensors (of layout {self.layout}): see "
            "torch.sparse for what does, or use to_dense() first",
        )

    # -- what it is ---------------------------------------------------------------------------

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

    def _get_grad(self) -> Self | None:
        """The gradient of a leaf, at its own places only."""
        g = self._elements.grad
        return None if g is None else self._gradient(g)

    def _gradient(self, g: Tensor) -> Self:
        """The gradient of this tensor for that of its values."""
        return self._with(g)

    def _set_grad(self, value: None) -> None:
        if value is not None:
            raise NotImplementedError("the gradient of a sparse tensor can be set to None only")
        self._elements.grad = None

    grad = property(lambda self: self._get_grad(), _set_grad)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
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

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Whether the values lie in page-locked memory."""
        return self._elements.is_pinned(device)

    def element_size(self) -> int:
        """The bytes of one element."""
        return self.dtype.itemsize

    def numpy(self, *, force: bool = False) -> NoReturn:
        """Always TypeError: NumPy has no sparse arrays."""
        raise TypeError(
            f"can't convert {self.layout.short_name} layout tensor to numpy. Use "
            "Tensor.to_dense() first."
        )

    def __len__(self) -> int:
        return self._size[0]

    def __bool__(self) -> bool:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")

    def __hash__(self) -> int:
        return id(self)

    #: What `repr` calls the tensors of indices.
    _index_names: ClassVar[tuple[str, ...]]

    def __repr__(self, **_: Any) -> str:
        default = get_default_dtype()
        known = {default, complex128 if default is float64 else complex64, int64, bool_}
        facts = [] if self.is_cpu else [f"device='{self.device}'"]
        facts.append(f"size={tuple(self._size)}")
        facts += [] if self.is_meta else [f"nnz={self._nnz()}"]
        facts += [] if self.dtype in known else [f"dtype={self.dtype}"]
        facts.append(f"layout={self.layout}")
        if self.grad_fn is not None:
            facts.append(f"grad_fn=<{grad_fn_name(self._elements)}>")
        elif self.requires_grad:
            facts.append("requires_grad=True")
        start = "tensor("
        texts = []
        parts = (*self._index, self._elements.detach())
        for name, part in zip((*self._index_names, "values"), parts, strict=True):
            texts.append(_text(f"{start}{name}=tensor", part))
            start = " " * len(start)
        return _add_suffixes(",\n".join(texts), facts, len(start), force_newline=self.is_sparse)

    def _nnz(self) -> int:
        return self._elements.shape[0]

    # -- copies and conversions -----------------------------------------------------------------

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Another device or dtype, in the forms of ``Tensor.to``."""
        device, dtype, copied, _ = parse_to(*args, **kwargs)
        if not copied and device in (None, self.device) and dtype in (None, self.dtype):
            return self
        index = tuple([part.to(device or part.device, copy=copied) for part in self._index])
        return self._beside(index, self._elements.to(device, dtype, copy=copied))

    def type_as(self, other: Tensor) -> Self:
        """This tensor with the dtype of another, on its device."""
        return self.to(other.device, other.dtype)

    def cpu(self) -> Self:
        """On the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None, **_: Any) -> Self:
        """On a CUDA device."""
        return self.to("cuda" if device is None else Device("cuda", device))

    def clone(self, *, memory_format: Any = None) -> Self:
        """A copy of indices and values."""
        return self._beside(tuple([part.clone() for part in self._index]), self._elements.clone())

    def detach(self) -> Self:
        """The same values out of the graph."""
        return self._with(self._elements.detach())

    def detach_(self) -> Self:
        """Take the tensor itself out of the graph."""
        self._elements = self._elements.detach()
        return self

    def _set_data(self, data: Self) -> None:
        self._become(data, data._elements.detach())

    data = property(detach, _set_data)

    def _assign(self, other: Self) -> Self:
        """Become what `other` is, for functions in place; RuntimeError for leaves of a graph."""
        if mode.grad and self.requires_grad and self.is_leaf:
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
        if not can_cast(other.dtype, self.dtype):
            raise uncastable(other.dtype, self.dtype)
        return self._become(other, other._elements.to(self.dtype))

    def type(self, dtype: Any = None) -> Any:
        """The type's name (``torch.sparse.FloatTensor``), or this tensor in another dtype."""
        if dtype is None:
            place = "" if self.is_cpu else f"{self.device.type}."
            return f"torch.{place}sparse.{self.dtype.short_name}Tensor"
        return self.to(dtype)

    def __copy__(self) -> Self:
        function, arguments = self.__reduce_ex__(2)
        return function(*arguments)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) not in memo:
            index, elements = copy.deepcopy((self._index, self._elements), memo)
            attributes = copy.deepcopy(vars(self), memo)
            memo[id(self)] = _rebuilt(type(self), self._arguments(index, elements), attributes)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        arguments = self._arguments(self._index, self._elements.detach())
        return _rebuilt, (type(self), arguments, vars(self))


def _rebuilt(cls: type[SparseBase], arguments: tuple, attributes: dict[str, Any]) -> SparseBase:
    """What copies and pickles make: a sparse tensor with the attributes that it was given."""
    tensor = cls(*arguments)
    vars(tensor).update(attributes)
    return tensor


def _text(prefix: str, part: Tensor) -> str:
    if not part.numel() or part.is_meta:
        contents = "..." if part.is_meta else "[]"
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

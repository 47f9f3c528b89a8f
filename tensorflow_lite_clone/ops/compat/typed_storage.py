"""``Tensor.storage()``: the memory that a tensor shares with its views, element by element."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any

from tensorflow_lite_clone.autograd.inplace import check_inplace
from tensorflow_lite_clone.autograd.node import Leaf
from tensorflow_lite_clone.core.dtypes import DType, get_default_dtype
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.shape import contiguous_strides
from tensorflow_lite_clone.ops.compat.untyped_storage import UntypedStorage, expect_values, rows_of
from tensorflow_lite_clone.ops.create.constructors import empty, tensor
from tensorflow_lite_clone.ops.shape.slices import as_strided
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor


class _Warned:
    once = False


class TypedStorage:
    """All elements of a tensor's memory in order; writing one writes the tensor."""

    def __init__(
        self,
        source: Any = 0,
        *,
        wrap_storage: UntypedStorage | None = None,
        dtype: DType | None = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        if wrap_storage is None:
            if isinstance(source, int):
                source = empty(source, dtype=dtype, device=device)
            elif not isinstance(source, Tensor):
                source = tensor(source, dtype=dtype, device=device)
            dtype = source.dtype
            wrap_storage = UntypedStorage(source)
        self._untyped_storage = wrap_storage
        #: The elements' dtype.
        self.dtype = dtype or get_default_dtype()

    @property
    def _line(self) -> Tensor:
        return self._untyped_storage._line(self.dtype)

    @property
    def device(self) -> Any:
        """The device that holds the memory."""
        return self._line.device

    @property
    def is_cuda(self) -> bool:
        """Whether that is a CUDA device."""
        return self._line.is_cuda

    is_sparse = False

    def size(self) -> int:
        """How many elements there are."""
        return self._line.numel()

    __len__ = size

    _size = size

    def nbytes(self) -> int:
        """How many bytes there are."""
        return self._untyped_storage.nbytes()

    def resize_(self, size: int) -> None:
        """Give the memory room for `size` elements; see `UntypedStorage.resize_`."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    _resize_ = resize_

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes()

    def element_size(self) -> int:
        """The bytes of one element."""
        return self._line.element_size()

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._line.data_ptr()

    def untyped(self) -> UntypedStorage:
        """The same memory in bytes."""
        return self._untyped_storage

    def type(self) -> str:
        """The type's name, such as ``torch.FloatStorage``."""
        return self._line.type().replace("Tensor", "Storage")

    def is_shared(self) -> bool:
        """Whether other processes see the memory."""
        return self._line.is_shared()

    def _new_shared(self, size: int, *, device: Any = None) -> TypedStorage:
        """Shared memory for `size` elements of the same dtype: batches are collated into it."""
        line = self._line.new_empty((size,), device=device)
        return TypedStorage(line.share_memory_())

    def tolist(self) -> list[Any]:
        """The elements as Python numbers; NotImplementedError for those of ``meta``."""
        expect_values(self)
        return self._line.tolist()

    def clone(self) -> TypedStorage:
        """A copy."""
        return TypedStorage(self._line.clone())

    __copy__ = clone

    def __deepcopy__(self, memo: dict) -> TypedStorage:
        memory = copy.deepcopy(self._untyped_storage, memo)
        return TypedStorage(wrap_storage=memory, dtype=self.dtype)

    def __reduce__(self) -> tuple:
        return TypedStorage, (self._line,)

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        self._line.fill_(value)
        return self

    def copy_(self, source: TypedStorage) -> TypedStorage:
        """Set the elements to those of another storage."""
        self._line.copy_(source._line)
        return self

    def cpu(self) -> TypedStorage:
        """The memory in the host's, a copy if it is elsewhere."""
        return TypedStorage(self._line.cpu())

    def cuda(self, device: Any = None) -> TypedStorage:
        """The memory on a CUDA device."""
        return TypedStorage(self._line.cuda(device))

    def _place(self, index: Any) -> int:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise TypeError(f"can't index a TypedStorage with {type(index).__name__}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return index

    def __getitem__(self, index: Any) -> Any:
        expect_values(self)
        return self._line[self._place(index)].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._line[self._place(index)] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        rows = rows_of(self)
        kind = f"dtype={self.dtype}, device={self.device}"
        return f"{rows}[torch.storage.TypedStorage({kind}) of size {len(self)}]"


@public("method")
def storage(self: Tensor) -> TypedStorage:
    """The memory that this tensor shares with its views, as elements of its dtype; deprecated."""
    if not _Warned.once:
        _Warned.once = True
        warnings.warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will "
            "be the only storage class. This should only matter to you if you are using storages "
            "directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead of "
            "tensor.storage()",
            stacklevel=level_outside(),
        )
    return TypedStorage(self)


@public("method")
def _typed_storage(self: Tensor) -> TypedStorage:
    """`storage` without its warning."""
    return TypedStorage(self)


@public("method")
def set_(
    self: Tensor,
    source: Tensor | UntypedStorage | TypedStorage | None = None,
    storage_offset: int | None = None,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """Make this tensor show other memory: a storage, or a tensor's; without `source` none.

    `size`, `stride` (by default row-major) and `storage_offset` (from the storage's first element,
    or the tensor's) say what of it, by default all. Writes through either are seen in both; they
    count their versions apart. A gradient does not flow through.

    Raises RuntimeError for another dtype than this tensor's, for elements that lie outside of the
    memory, and for a leaf that requires a gradient.

    >>> x = torch.empty(0).set_(torch.arange(6.0).untyped_storage(), 1, (2, 2), (3, 1))
    >>> x
    tensor([[1., 2.],
            [4., 5.]])
    """
    check_inplace(self, False)
    shown = _shown(self, source)
    if shown.device != self.device:
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{self.device}" to a storage on '
            f'different device "{shown.device}".  This is no longer allowed; the devices must '
            "match."
        )
    if size is not None:
        size = tuple(size)
        start = shown.storage_offset() + (storage_offset or 0)
        stride = contiguous_strides(size) if stride is None else stride
        shown = as_strided(shown, size, stride, start)
    elif storage_offset is not None:
        raise TypeError("set_(): a storage offset needs a size")
    backend, root = shown._storage.backend, shown._storage.root or shown._storage
    version = self._storage.current_version() + 1
    self._storage.bump()
    # The version counter is this tensor's own.
    memory = Storage(root.array, backend)
    memory.version = version
    if root is not shown._storage:
        memory = Storage(shown._storage.array, backend, memory)
    self._storage = memory
    if self._edge is None or not isinstance(self._edge[0], Leaf):
        self._edge = self._view = None
    else:
        self._edge[0].adopt(self)
    return self


def _shown(target: Tensor, source: Any) -> Tensor:
    """All of `source` as a tensor of the target's dtype."""
    if source is None:
        return target.new_empty((0,))
    if isinstance(source, UntypedStorage):
        return source._line(target.dtype)
    if not isinstance(source, (Tensor, TypedStorage)):
        raise TypeError(
            f"set_(): argument 'source' must be Tensor or Storage, not {type(source).__name__}"
        )
    if source.dtype is not target.dtype:
        raise RuntimeError(
            f"set_(): expected a source of dtype {target.dtype.short_name}, got "
            f"{source.dtype.short_name}"
        )
    return source.detach() if isinstance(source, Tensor) else source._line


@public("method")
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What `Module.load_state_dict` puts in this tensor's place: this tensor with `other` copied
    into it, or with `assign` `other` itself; detached.
    """
    return other.detach() if assign else self.copy_(other).detach()


export(TypedStorage, "torch", "storage", name="TypedStorage")

"""``Tensor.untyped_storage()``: the memory that a tensor shares with its views, as bytes."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.core.dtypes import DType, get_default_dtype, uint8
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.ops.create.constructors import empty, tensor
from tensorflow_lite_clone.ops.create.interchange import frombuffer
from tensorflow_lite_clone.ops.properties import deep_copied
from tensorflow_lite_clone.storage import Storage, bytes_of, bytes_of_memory, resize_memory
from tensorflow_lite_clone.tensor import Tensor, new_tensor


class UntypedStorage:
    """The bytes a tensor and its views lie in.

    Made of a tensor, of a number of bytes, or of a sequence of their values, these on `device`.
    """

    def __init__(self, source: Any = 0, *, device: Any = None) -> None:
        if isinstance(source, int):
            source = empty(source, dtype=uint8, device=device)
        elif not isinstance(source, Tensor):
            if not hasattr(type(source), "__getitem__") or isinstance(source, str):
                kind = type(source).__name__
                raise RuntimeError(f"UntypedStorage(): expected a sequence of ints, got {kind}")
            source = tensor(source, dtype=uint8, device=device)
        self._root = source._storage.root or source._storage

    @property
    def _memory(self) -> Storage:
        return self._root.root or self._root  # which changes when the size does

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first `nbytes` bytes of a file; see `torch.from_file`."""
        return cls(from_file(filename, shared, nbytes, dtype=uint8))

    @property
    def device(self) -> Any:
        """The device that holds the bytes."""
        return self._memory.backend.device

    @property
    def is_cuda(self) -> bool:
        """Whether a CUDA device holds the bytes."""
        return self.device.type == "cuda"

    is_sparse = is_sparse_csr = False

    @property
    def _cdata(self) -> int:
        """A number that tells this memory from all others, also where it has no address."""
        return id(self._memory)

    def data_ptr(self) -> int:
        """The address of the first byte; 0 where there is none."""
        return self.nbytes() and self._memory.backend.data_pointer(self._memory.array)

    def nbytes(self) -> int:
        """How many bytes there are."""
        return bytes_of_memory(self._memory)

    size = __len__ = nbytes

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes()

    def element_size(self) -> int:
        """1: an element is a byte."""
        return 1

    def is_shared(self) -> bool:
        """Whether other processes see the bytes."""
        return self._memory.backend.is_shared(self._memory.array)

    def share_memory_(self) -> UntypedStorage:
        """Move the bytes to where other processes see them; see `Tensor.share_memory_`."""
        new_tensor(self._memory).share_memory_()
        return self

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Whether the bytes lie in page-locked memory of a device's host."""
        return new_tensor(self._memory).is_pinned(device)

    def _new_shared(self, size: int, *, device: Any = None) -> UntypedStorage:
        """`size` bytes of shared memory."""
        line = new_tensor(self._memory).new_empty((size,), dtype=uint8, device=device)
        return UntypedStorage(line.share_memory_())

    def untyped(self) -> UntypedStorage:
        """This storage."""
        return self

    def cpu(self) -> UntypedStorage:
        """The bytes in host memory, a copy if they are elsewhere."""
        return UntypedStorage(new_tensor(self._memory).cpu())

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """The bytes on a CUDA device."""
        return UntypedStorage(new_tensor(self._memory).cuda(device, non_blocking))

    def clone(self) -> UntypedStorage:
        """A copy."""
        return UntypedStorage(self._line().clone())

    __copy__ = clone

    def __deepcopy__(self, memo: dict) -> UntypedStorage:
        return UntypedStorage(new_tensor(deep_copied(self._memory, memo)))

    def __reduce__(self) -> tuple:
        return UntypedStorage, (self._line(),)

    def fill_(self, value: int) -> UntypedStorage:
        """Set every byte."""
        self._line().fill_(value)
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Set the bytes to those of another storage."""
        self._line().copy_(source._line())
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """Give the memory another size in bytes, for all tensors over it; returns this storage.

        Bytes are kept as far as there is room, others are undefined. Tensors that reach beyond
        keep their shapes, and raise RuntimeError when they are used until the memory is large
        enough again. What NumPy or a graph holds of it is not freed before they let go.

        >>> x = torch.arange(4.0)
        >>> x.untyped_storage().resize_(0).nbytes(), x.shape
        (0, torch.Size([4]))
        >>> x.untyped_storage().resize_(16).nbytes()
        16
        >>> x.fill_(2.0)
        tensor([2., 2., 2., 2.])
        """
        if not isinstance(size, int):
            raise RuntimeError(f"resize_ expects an int, but got {type(size).__name__}")
        if size < 0:
            raise RuntimeError(f"resize_ expects a size from 0 on, but got {size}")
        if size != self.nbytes():
            self._root = resize_memory(self._memory, size)
        return self

    def tolist(self) -> list[int]:
        """The bytes as numbers; NotImplementedError for those of the device ``meta``."""
        expect_values(self)
        return self._line().tolist()

    def _line(self, dtype: DType = uint8) -> Tensor:
        """The memory as a tensor, of bytes or as many whole elements of `dtype` as there are."""
        memory = self._memory
        backend, line = memory.backend, bytes_of(memory)
        if dtype is not uint8:
            whole = line.shape[0] // dtype.itemsize * dtype.itemsize
            line = backend.F.bitcast(line[:whole], backend.native[dtype])
        return new_tensor(Storage(line, backend, memory))

    def __dlpack__(self, **options: Any) -> Any:
        return self._line().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple:
        return self._line().__dlpack_device__()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise RuntimeError(
                    f"Trying to slice with a step of {step}, but only a step of 1 is supported"
                )
            part = self._line()[start : max(start, stop)]._storage
            return UntypedStorage(new_tensor(Storage(part.array, part.backend)))
        expect_values(self)
        return self._line()[self._place(index)].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._line()[index if isinstance(index, slice) else self._place(index)] = value

    def _place(self, index: Any) -> int:
        if not isinstance(index, int):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return index

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        rows = rows_of(self)
        kind = f"device={self.device}"
        return f"{rows}[torch.storage.UntypedStorage({kind}) of size {len(self)}]"


def expect_values(storage: Any) -> None:
    """Raise NotImplementedError for memory that has no bytes to read."""
    if not backends.load(storage.device).has_values:
        raise NotImplementedError(f"Not available for '{storage.device.type}' device type")


def rows_of(storage: Any) -> str:
    """The elements of a typed or untyped storage as it prints them, one a line."""
    if not backends.load(storage.device).has_values:
        return "...\n"
    return "".join([f" {value}\n" for value in storage.tolist()])


@public("method")
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory that this tensor shares with its views."""
    return UntypedStorage(self)


@public("torch")
def from_file(
    filename: Any,
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: DType | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A CPU tensor over the first `size` elements of a file, which the system loads when they are
    read.

    What is written to it goes to the file if `shared`, which then is made or made longer as
    needed; otherwise it stays here.

    Raises:
        RuntimeError: the file is shorter and not `shared`.
    """
    dtype = dtype or get_default_dtype()
    nbytes = size * dtype.itemsize
    with open(filename, ("r+b" if os.path.exists(filename) else "w+b") if shared else "rb") as file:
        have = os.fstat(file.fileno()).st_size
        if have < nbytes:
            if not shared:
                raise RuntimeError(
                    f"file <{filename}> size <{have}> is smaller than the required mapping size "
                    f"<{nbytes}>"
                )
            file.truncate(nbytes)
        if not nbytes:
            return empty(0, dtype=dtype, requires_grad=requires_grad)
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        memory = mmap.mmap(file.fileno(), nbytes, access=access)
    return frombuffer(memory, dtype=dtype, requires_grad=requires_grad)


export(UntypedStorage, "torch", "storage", name="UntypedStorage")

"""Storages of a file: as pickles refer to them, while writing and while reading."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.apply import wrap
from tensorflow_lite_clone.core.dtypes import DType, uint8
from tensorflow_lite_clone.core.strides import extent
from tensorflow_lite_clone.ops.compat.typed_storage import TypedStorage
from tensorflow_lite_clone.ops.compat.untyped_storage import UntypedStorage
from tensorflow_lite_clone.serialization._foreign import Foreign
from tensorflow_lite_clone.serialization._kinds import KINDS, UNTYPED, StorageKind
from tensorflow_lite_clone.serialization._locations import Restorer, location_tag
from tensorflow_lite_clone.serialization._rebuild import memory_of, storage_over, unfilled
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import new_tensor


class Reference:
    """Stands for a storage in what is pickled."""

    def __init__(self, name: tuple) -> None:
        self.name = name


class Collected:
    """The storages that a pickle refers to, under the keys "0", "1", ...

    `behind` is what the format has at the end of each reference.
    """

    def __init__(self, behind: tuple = ()) -> None:
        self._behind = behind
        self._memories: list[Storage] = []
        self._lines: list[Any] = []  # their arrays as they were when they were referred to
        self._references: dict[tuple[int, Any], Reference] = {}
        self._places: dict[int, tuple[str, DType | None]] = {}

    def refer(self, memory: Storage, dtype: DType | None) -> Reference:
        """The reference to a storage whose elements are read as `dtype`; None: as bytes.

        Raises RuntimeError when the memory has been referred to with another dtype.
        """
        kind = KINDS.get(dtype, UNTYPED) if dtype is not None else UNTYPED
        made = self._references.get((id(memory), kind))
        if made is not None:
            return made
        key, before = self._places.get(id(memory), (str(len(self._memories)), dtype))
        if before is not dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different "
                "types"
            )
        if id(memory) not in self._places:
            self._places[id(memory)] = key, dtype
            self._memories.append(memory)
            self._lines.append(_line(memory))
        location = location_tag(UntypedStorage(new_tensor(memory)))
        numel = self.nbytes(int(key)) // kind.itemsize
        made = Reference(("storage", kind, key, location, numel, *self._behind))
        self._references[id(memory), kind] = made
        return made

    def __len__(self) -> int:
        return len(self._memories)

    def itemsize(self, key: int) -> int:
        """The bytes that an element of storage number `key` has for those who refer to it."""
        dtype = self._places[id(self._memories[key])][1]
        return (KINDS.get(dtype, UNTYPED) if dtype is not None else UNTYPED).itemsize

    def bytes_of(self, key: int) -> Any:
        """The contents of storage number `key`: a host array of uint8."""
        host = np.ascontiguousarray(self._memories[key].backend.to_host(self._lines[key]))
        return host.view(np.uint8)

    def nbytes(self, key: int) -> int:
        """How many bytes storage number `key` has."""
        line = self._lines[key]
        return line.size * line.dtype.itemsize


def _line(memory: Storage) -> Any:
    """All elements of a storage in the order in which they lie."""
    backend, array = memory.backend, memory.array
    return backend.F.as_strided(array, (extent(array.shape, backend.strides(array)),), (1,))


class Part(NamedTuple):
    """A storage of a file: room for its bytes, and the array that becomes of them."""

    kind: StorageKind
    data: Any
    array: Any
    backend: Any


class Loaded:
    """The storages of a file, read when a pickle first refers to them.

    ``read(key, nbytes)`` gives a host array of uint8; `restore` puts it to its place; `swaps`
    says that the file has the other byte order, `filled` that the bytes are there already.
    """

    def __init__(
        self,
        read: Callable[[str, int], Any],
        restore: Restorer,
        swaps: bool = False,
        filled: bool = True,
    ) -> None:
        self._read = read
        self._restore = restore
        self._swaps = swaps
        self._filled = filled
        self.late: list[Callable[[], None]] = []  # what waits for the bytes
        self._made: dict[str, Any] = {}
        self.parts: dict[str, Part] = {}  # those whose bytes are to be read

    def persistent_load(self, name: Any) -> Any:
        """What a pickle refers to: a storage, or in the oldest files a class with its source."""
        if isinstance(name, tuple) and name and _text(name[0]) == "module" and len(name) > 1:
            return name[1]
        if not isinstance(name, tuple) or len(name) < 5 or _text(name[0]) != "storage":
            raise pickle.UnpicklingError("Unknown typename for persistent_load: not a storage")
        kind, key, location, numel = name[1], _text(name[2]), _text(name[3]), name[4]
        if type(kind) is Foreign:
            return kind
        if not isinstance(kind, StorageKind) or type(numel) is not int or numel < 0:
            raise pickle.UnpicklingError("a storage needs a kind and a number of elements")
        if key not in self._made:
            self._made[key] = self._make(kind, key, location, numel)
        made = self._made[key]
        if len(name) > 5 and name[5] is not None:
            return self._window(made, kind, name[5])
        return made

    def _make(self, kind: StorageKind, key: str, location: str, numel: int) -> Any:
        data = self._read(key, numel * kind.itemsize)
        if self._swaps and kind.dtype is not None:
            data = swapped(data, kind.dtype)
        data = data[: numel * kind.itemsize]
        bytes_ = storage_over(data, backends.load("cpu"), None)
        place = memory_of(self._restore(bytes_, location))
        backend, array = place.backend, place.array
        if array.dtype != backend.native[uint8]:
            array = backend.F.bitcast(array, backend.native[uint8])
        if not self._filled:
            self.parts[key] = Part(kind, data, array, backend)
        return self._waiting(storage_over(array, backend, kind.dtype))

    def _waiting(self, storage: Any) -> Any:
        """The storage, on whose bytes others wait if they are not there."""
        if not self._filled:
            unfilled[memory_of(storage)] = self.late
        return storage

    def _window(self, made: Any, kind: StorageKind, view: Any) -> Any:
        """A part of another storage as a storage of its own: only the first files have them."""
        if not isinstance(view, tuple) or [type(entry) for entry in view[1:]] != [int, int]:
            raise pickle.UnpicklingError("a part of a storage needs a key and two integers")
        view_key, offset, numel = view
        name = _text(view_key)
        if name not in self._made:
            memory = memory_of(made)
            array = memory.array[offset : offset + numel]
            self._made[name] = self._waiting(TypedStorage(wrap(array, memory.backend)))
        return self._made[name]


def _text(value: Any) -> str:
    """Text of a file, in Python 2's files bytes."""
    if isinstance(value, bytes):
        return value.decode("ascii", "replace")
    if not isinstance(value, str):
        raise pickle.UnpicklingError(f"expected text, not {type(value).__name__}")
    return value


def swapped(data: Any, dtype: DType) -> Any:
    """An array of bytes with the bytes of each number, or part of a complex one, reversed."""
    size = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    whole = data[: data.size // size * size]
    return whole.view(f"u{size}").byteswap().view(np.uint8)

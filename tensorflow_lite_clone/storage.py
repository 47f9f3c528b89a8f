"""Storage: one array on a device, with the version counter that guards saved values.

Whoever computes may lay a result as suits it (see `LazyStorage`): what reads ``storage.array`` gets
an array that lies as the tensor's strides say, what reads ``storage.physical`` gets it as it lies.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet, ref

from tensorflow_lite_clone.core import locks
from tensorflow_lite_clone.core.dtypes import uint8
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.core.shape import contiguous_strides
from tensorflow_lite_clone.core.strides import (
    channels_last,
    extent,
    format_strides,
    has_format,
    is_channels_last,
)
from tensorflow_lite_clone.dispatch import capture
from tensorflow_lite_clone.dispatch.hooks import on_memory_write, on_storage
from tensorflow_lite_clone.dispatch.result_layout import conversions

if TYPE_CHECKING:
    from tensorflow_lite_clone.core.protocols import Array, Backend


class Storage:
    """An array, the backend it lives on, and its place among views of the same memory.

    A view's storage points to the `root` storage whose memory it shares; in-place writes through
    any of them are counted in the root's `version`.
    """

    __slots__ = ("__weakref__", "array", "backend", "root", "version")

    array: Any
    physical: Any  # the same slot: `array`, except where the storage is `LazyStorage`
    backend: Any  # a backend asks its own for more than `protocols.Backend` has
    version: int
    root: Storage | None

    def __init__(self, array: Array, backend: Backend, root: Storage | None = None) -> None:
        self.array = array
        self.backend = backend
        self.root = root
        self.version = 0
        if root is not None and type(root) is ReleasableStorage:
            root.views.add(self)
        if on_storage:
            for created in on_storage:
                created(self)

    def current_version(self) -> int:
        """How many in-place writes this memory has seen."""
        return (self.root or self).version

    def bump(self) -> None:
        """Count one in-place write."""
        root = self.root or self
        root.version += 1
        if on_memory_write:
            for written in on_memory_write:
                written(root)


Storage.physical = vars(Storage)["array"]


class LazyStorage(Storage):
    """A storage whose tensor is told to be row-major, and whose array lies channels_last.

    Kernels for images are fastest with the channels next to each other, so what they make stays
    so from one to the next. No view of it exists yet, and nobody has seen an address: the first
    read of `array` (by a view, an export, an op that is not of any layout) makes it an ordinary
    storage with a row-major copy. Ops of any layout and whoever asks for shape or dtype read
    `physical`.
    """

    __slots__ = ()

    @property
    def array(self) -> Any:
        return _materialized(self)

    @array.setter
    def array(self, array: Array) -> None:
        with _materializing:
            self.physical = array
            self.__class__ = Storage  # type: ignore[assignment]


class _Own(threading.local):
    """The lazy storages that this thread has made, and such as were."""

    def __init__(self) -> None:  # called once per thread
        self.storages: WeakSet[Storage] = WeakSet()

    def free(self) -> list[Storage]:
        return [storage for storage in self.storages if storage.__class__ is LazyStorage]


_own = _Own()
_materializing = locks.reentrant_lock()


#: Lazy storages that were made while a graph was captured, and that graph.
_captured: WeakKeyDictionary[Storage, Any] = WeakKeyDictionary()


def _materialized(storage: Storage) -> Any:
    with _materializing:  # another thread may have been first
        physical = storage.physical
        if storage.__class__ is LazyStorage:
            graph = _captured[storage]() if storage in _captured else None
            if graph is not capture.state.graph and graph in capture.running:
                raise RuntimeError(
                    "another thread captures the work that makes this tensor: it has no values yet"
                )
            if not storage.backend.is_contiguous(physical):
                physical = storage.backend.settled(physical)
                conversions["settled"] += 1
            storage.array = physical
        return physical


def materialize_all() -> None:
    """Make every free storage of this thread an ordinary one."""
    for storage in _own.free():
        _materialized(storage)


def keep_lazy(storages: Iterable[Storage]) -> None:
    """Let storages stay free where captures begin and end: those that captured work alone reads."""
    _own.storages.difference_update(storages)


def _materialize_around_a_capture() -> None:
    """Before it, as what is copied for good must not be copied again by replays; and at its end, as
    later copies would not see what replays write."""
    outside = capture.state.graph is None
    backends = {storage.backend for storage in _own.free()} if outside else ()
    for backend in backends:
        backend.synchronize()  # they may be the work of any stream
    materialize_all()
    for backend in backends:
        backend.synchronize()  # and any stream may read the copies, which this one makes


capture.on_boundary.append(_materialize_around_a_capture)


@contextmanager
def contiguous_storages() -> Iterator[None]:
    """While this is open no storage is free: for tracers, which know arrays by identity."""
    before, flags.free_layouts = flags.free_layouts, False
    materialize_all()
    try:
        yield
    finally:
        flags.free_layouts = before


def lazily_contiguous(array: Array, backend: Backend, inputs: Any = ()) -> Storage:
    """The storage of what an op of any layout made from `inputs`, storages or None.

    It is free where the array is channels_last, and none of the inputs is told to be.
    """
    made = Storage(array, backend)
    if not backend.lays:
        return made
    contiguous = backend.is_contiguous(array)
    if contiguous and (array.ndim != 4 or 1 not in array.shape):
        return made
    last = _is_last(array)
    if contiguous and not last:
        return made
    for storage in inputs:
        if (
            storage is not None
            and storage.__class__ is not LazyStorage
            and _is_last(storage.physical)
        ):
            return made
    if contiguous:  # one order as well as the other, as axes have length 1: only strides differ
        made.array = backend.F.as_strided(array, array.shape, contiguous_strides(array.shape))
    elif last:
        made.__class__ = LazyStorage
        _own.storages.add(made)
        if capture.state.graph is not None:
            _captured[made] = ref(capture.state.graph)
    elif any([storage.__class__ is LazyStorage for storage in inputs]):
        made.array = backend.F.copy(array)
        conversions["settled"] += 1
    return made


def strides_of(storage: Storage) -> tuple[int, ...]:
    """The strides, in elements, that the storage is told to have."""
    if storage.__class__ is LazyStorage:
        return contiguous_strides(storage.physical.shape)
    strides: tuple[int, ...] = storage.backend.strides(storage.physical)
    return strides


def offset_of(storage: Storage) -> int:
    """How many elements lie before a tensor's first one in its memory."""
    if storage.root is None:
        return 0
    if type(storage.array) is FreedArray:
        return storage.array.offset // storage.array.itemsize
    F = storage.backend.F
    distance: int = F.address(storage.array) - F.address(storage.root.array)
    itemsize: int = storage.physical.dtype.itemsize
    return distance // itemsize


def bytes_of_memory(storage: Storage) -> int:
    """The size of the memory that a tensor shares with its views."""
    memory = (storage.root or storage).array
    itemsize: int = memory.dtype.itemsize
    return extent(memory.shape, storage.backend.strides(memory)) * itemsize


def reshaped(storage: Storage, shape: tuple[int, ...], strides: tuple[int, ...]) -> Storage | None:
    """The storage of a tensor of another shape, over the same memory from the same element on.

    None where the memory ends before.
    """
    array, backend = storage.array, storage.backend
    end = offset_of(storage) + extent(shape, strides)
    if end * array.dtype.itemsize > bytes_of_memory(storage):
        return None
    array = backend.F.as_strided(array, shape, strides)
    return Storage(array, backend, storage.root or storage)


def _is_last(array: Any) -> bool:
    return array.ndim == 4 and is_channels_last(array.shape, array.strides)


def in_physical_layout(storages: Any) -> list[Any]:
    """The arrays of storages (or None), as they lie; settled where that would show.

    An operand that lies in an order of its own is told to, and may give it to the result. One that
    is row-major is copied, so that the result is not.
    """
    arrays: list[Any] = []
    shapes = []
    for storage in storages:
        array: Any = None if storage is None else storage.physical
        arrays.append(array)
        if storage.__class__ is LazyStorage:
            shapes.append(array.shape)
    if len(shapes) in (0, len(arrays)):
        return arrays
    for place, storage in enumerate(storages):
        if storage is None or storage.__class__ is LazyStorage or arrays[place].ndim < 2:
            continue
        if not storage.backend.is_contiguous(arrays[place]):
            return [None if storage is None else storage.array for storage in storages]
        if arrays[place].shape in shapes:
            arrays[place] = _brought_last(arrays[place], storage.backend)
    return arrays


def _brought_last(array: Array, backend: Backend) -> Any:
    strides = format_strides(array.shape, channels_last)
    if has_format(array.shape, backend.strides(array), strides):
        return array
    conversions["packed"] += 1
    return backend.F.restride(array, strides=strides)


def in_logical_layout(g: Any, like: Storage) -> Any:
    """The gradient of what `like` holds, channels_last where that is told to be, else row-major."""
    backend = like.backend
    is_last = like.__class__ is not LazyStorage and _is_last(like.physical)
    if _is_last(g) is is_last:
        return g
    conversions["packed" if is_last else "settled"] += 1
    if is_last:
        return backend.F.restride(g, strides=backend.strides(like.physical))
    return backend.F.copy(g)


class FreedArray:
    """Stands for an array whose memory was given up: where it lay, and what of it.

    Any use but questions of its shape and dtype is a RuntimeError.
    """

    __slots__ = ("_reason", "dtype", "offset", "shape", "strides")

    def __init__(self, array: Any, offset: int, reason: str) -> None:
        self._reason = reason
        self.dtype = array.dtype
        self.offset = offset  # in bytes, as strides are
        self.shape = array.shape
        self.strides = array.strides

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(self._reason)

    def refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(self._reason)

    __getitem__ = __setitem__ = __array__ = __array_ufunc__ = __array_function__ = refuse

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        itemsize: int = self.dtype.itemsize
        return itemsize

    @property
    def size(self) -> int:
        return prod(self.shape)

    def over(self, line: Any, backend: Backend) -> Any:
        """The array over other memory, a line of bytes; itself where that ends before."""
        strides = tuple([stride // self.itemsize for stride in self.strides])
        end = self.offset + extent(self.shape, strides) * self.itemsize
        if end > line.shape[0]:
            return self
        window = backend.F.bitcast(line[self.offset : end], self.dtype)
        return backend.F.as_strided(window, self.shape, strides)


def _freed(storage: Storage, start: int, reason: str) -> FreedArray:
    """What stands for a storage's array, in memory that begins at the address `start`."""
    array = storage.array
    if type(array) is FreedArray:
        return array
    offset = storage.backend.F.address(array) - start if array.size else 0
    return FreedArray(array, offset, reason)


def bytes_of(storage: Storage) -> Any:
    """The memory of a root storage as a line of bytes."""
    array, backend = storage.array, storage.backend
    count = bytes_of_memory(storage) // array.dtype.itemsize
    return backend.F.bitcast(backend.F.as_strided(array, (count,), (1,)), backend.native[uint8])


def view_of_copy(storage: Storage, copied: Storage) -> Storage:
    """The view of a copy of a root storage that `storage` is of the root."""
    backend = storage.backend
    start = backend.F.address((storage.root or storage).array)
    array = _freed(storage, start, "").over(bytes_of(copied), backend)
    return Storage(array, backend, copied)


class ReleasableStorage(Storage):
    """A storage whose array can be given up for a while, though tensors and graphs point to it.

    What a graph saved are storages. So once the array is given up here and in the views, nothing
    of this package holds it, and when it is put back a backward pass finds it in its place.
    Only an array in row-major order without gaps may be put back, of the same shape and dtype.
    """

    __slots__ = ("views",)

    def __init__(self, array: Array, backend: Backend) -> None:
        super().__init__(array, backend)
        self.views: WeakSet[Storage] = WeakSet()

    def release(self, reason: str) -> None:
        """Drop the array; until `restore` every use is a RuntimeError that says `reason`."""
        start = self.backend.F.address(self.array)
        for storage in (*self.views, self):
            storage.array = _freed(storage, start, reason)

    def restore(self, array: Array) -> None:
        """Let the storage and its views lie in `array`, which holds the same values."""
        self.array = array
        line = bytes_of(self)
        for view in self.views:
            if type(view.array) is FreedArray:
                view.array = view.array.over(line, self.backend)


def resize_memory(root: Storage, nbytes: int) -> Storage:
    """Give the memory of a root storage and its views another size, and return its new root.

    Bytes are kept as far as there is room, others are undefined. What reaches beyond can not be
    used until the memory is large enough again.
    """
    backend = root.backend
    before = bytes_of(root)
    line: Any = backend.empty((nbytes,), uint8)
    kept = min(nbytes, before.shape[0])
    backend.write(line[:kept], before[:kept])
    memory = ReleasableStorage(line, backend)
    memory.version = root.version
    start = backend.F.address(root.array)
    reason = "the memory of this tensor was given up by resize_ of its storage"
    for storage in (*_views_of(root), root):
        storage.array = _freed(storage, start, reason).over(line, backend)
        storage.root = memory
        memory.views.add(storage)
    return memory


def _views_of(root: Storage) -> Iterable[Storage]:
    if type(root) is ReleasableStorage:
        return list(root.views)
    # A root does not know its views, which would make all views slower to take.
    found = [x for x in gc.get_referrers(root) if issubclass(type(x), Storage)]
    return [storage for storage in found if storage.root is root]

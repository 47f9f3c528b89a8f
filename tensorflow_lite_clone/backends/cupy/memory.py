"""Device memory through CuPy's pool, its figures, and page-locked host memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from threading import Lock, RLock, local
from typing import Any

import cupy
import cupyx
import numpy as np
from cupy.cuda.runtime import getDevice as get_device

from tensorflow_lite_clone.core.errors import OutOfMemoryError

_GIB = 1 << 30
_UNIT = 512  # bytes: sizes of blocks are multiples of it


class CudaOutOfMemoryError(OutOfMemoryError, MemoryError):
    """No room on a CUDA device; a MemoryError too, which is what CuPy's own code expects."""


def allocator(pool: Any) -> Callable[[int], Any]:
    """The allocation function of a pool, which reports its figures when there is no room."""
    malloc = pool.malloc

    def allocate(size: int) -> Any:
        if _listeners or _thread.tells:
            _hook.follow()
        try:
            return malloc(size)
        except cupy.cuda.memory.OutOfMemoryError:
            free, total = cupy.cuda.runtime.memGetInfo()
            raise CudaOutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {size / _GIB:.2f} GiB. GPU "
                f"{cupy.cuda.runtime.getDevice()} has a total capacity of {total / _GIB:.2f} GiB "
                f"of which {free / _GIB:.2f} GiB is free. The pool holds "
                f"{pool.total_bytes() / _GIB:.2f} GiB, of which {pool.used_bytes() / _GIB:.2f} GiB "
                f"are in use."
            ) from None

    return allocate


def counting(pool: Any) -> Callable[[int], Any]:
    """The `allocator` of CuPy's own pool, whose peaks are counted."""
    allocate = allocator(pool)

    def count(size: int) -> Any:
        pointer = allocate(size)
        _peaks.add(size, pool)
        return pointer

    return count


def _allocate_uncached(size: int) -> Any:
    # Whole words: atomics on one or two bytes compare and swap the word around them.
    return cupy.cuda.MemoryPointer(cupy.cuda.Memory(size + -size % 4), 0)


def install() -> None:
    """Let CuPy allocate through the function above.

    With PyTorch's variable ``PYTORCH_NO_CUDA_MEMORY_CACHING`` set to 1 all memory comes from the
    driver and goes back there, for tools that look for wrong accesses: the pool hides those.
    """
    if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING") == "1":
        cupy.cuda.set_allocator(_allocate_uncached)
    else:
        cupy.cuda.set_allocator(counting(cupy.get_default_memory_pool()))


class _Peaks:
    """The most bytes that were in use and held at once, by device, from the first allocation on.

    The pool's own figure of what is in use is a walk over all blocks. It is asked for only where
    what it was, and all that was allocated since, is more than the peak: what was released since
    can only have made it less.
    """

    def __init__(self) -> None:
        self.most: dict[int, int] = {}
        self.most_held: dict[int, int] = {}
        self._bound: dict[int, int] = {}
        self._lock = RLock()  # the collector may run within, and what it deletes allocate

    def add(self, size: int, pool: Any) -> None:
        """Count an allocation on the current device."""
        index = get_device()
        with self._lock:
            bound = self._bound.get(index, 0) + size + -size % _UNIT
            if bound > self.most.get(index, 0):
                bound = pool.used_bytes()
                self.most[index] = max(self.most.get(index, 0), bound)
            self._bound[index] = bound

    def look(self, index: int, pool: Any) -> None:
        """Compare with what is in use and held now on the current device."""
        self.most[index] = max(self.most.get(index, 0), pool.used_bytes())
        self.most_held[index] = max(self.most_held.get(index, 0), pool.total_bytes())

    def restart(self, index: int, pool: Any) -> None:
        """Let the peaks of the current device be what is in use and held now."""
        with self._lock:
            self.most[index] = self._bound[index] = pool.used_bytes()
            self.most_held[index] = pool.total_bytes()


class _Thread(local):
    tells = False  # whether the hook below is among the thread's


class _Hook(cupy.cuda.MemoryHook):
    """Tells listeners of each allocation and release, in threads that it was attached in.

    CuPy's hooks belong to a thread, and cost as much as a small allocation.
    """

    name = "tensorflow_lite_clone.listeners"

    def __init__(self) -> None:
        # Where memory was taken, by address: CuPy's events may name another device when it goes.
        self._devices: dict[int, int] = {}

    def follow(self) -> None:
        """Be attached in this thread while somebody listens."""
        if bool(_listeners) is not _thread.tells:
            _thread.tells = not _thread.tells
            if _thread.tells:
                self.__enter__()
            else:
                self.__exit__()
                self._devices.clear()

    def malloc_postprocess(
        self, device_id: int, size: int, mem_size: int, mem_ptr: int, pmem_id: int
    ) -> None:
        """Called by CuPy after each allocation from a pool; address 0: there was no room."""
        if mem_ptr:
            self._devices[mem_ptr] = get_device()
            self._tell(self._devices[mem_ptr], mem_size, mem_ptr)

    def free_postprocess(self, device_id: int, mem_size: int, mem_ptr: int, pmem_id: int) -> None:
        """Called by CuPy when memory goes back to its pool."""
        self._tell(self._devices.pop(mem_ptr, device_id), -mem_size, mem_ptr)

    def _tell(self, index: int, size: int, address: int) -> None:
        for heard, listener in _listeners:
            if heard == index:
                listener(size, address)


_peaks = _Peaks()
_thread = _Thread()
_hook = _Hook()
_listeners: list[tuple[int, Callable[[int, int], None]]] = []


def listen(index: int, listener: Callable[[int, int], None]) -> Callable[[], None]:
    """Tell `listener` the bytes and address of each allocation on a device, and of each release
    with negative bytes; gives the function that ends it."""
    entry = (index, listener)
    _listeners.append(entry)
    _hook.follow()

    def end() -> None:
        _listeners.remove(entry)
        _hook.follow()

    return end


def figures(index: int) -> dict[str, int]:
    """Bytes in use and held by the pool of a device, now and at most; bytes free on the device."""
    with cupy.cuda.Device(index):
        pool = cupy.get_default_memory_pool()
        _peaks.look(index, pool)
        free, total = cupy.cuda.runtime.memGetInfo()
        return {
            "allocated": pool.used_bytes(),
            "reserved": pool.total_bytes(),
            "max_allocated": _peaks.most[index],
            "max_reserved": _peaks.most_held[index],
            "free_blocks": pool.n_free_blocks(),
            "free": free,
            "total": total,
        }


def used_bytes(index: int) -> int:
    """Bytes of a device's pool that are in use."""
    with cupy.cuda.Device(index):
        return cupy.get_default_memory_pool().used_bytes()


def reset_peak(index: int) -> None:
    """Count the peaks from now on."""
    with cupy.cuda.Device(index):
        _peaks.restart(index, cupy.get_default_memory_pool())


def release(index: int) -> None:
    """Give what the pool holds and nobody uses back to the driver."""
    with cupy.cuda.Device(index):
        pool = cupy.get_default_memory_pool()
        _peaks.look(index, pool)
        pool.free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()


def from_peer(array: Any, source: int, index: int) -> Any:
    """A copy on device `index` of a contiguous array of device `source`.

    The streams that are current on the two wait for each other: the copy sees what was written
    before, and the memory is not written again while it is read. The host waits for nothing.
    """
    with cupy.cuda.Device(source):
        current = cupy.cuda.get_current_stream()
        ready = cupy.cuda.Event(disable_timing=True)
        ready.record(current)
    with cupy.cuda.Device(index):
        made = cupy.empty(array.shape, array.dtype)
        ours = cupy.cuda.get_current_stream()
        ours.wait_event(ready)
        made.data.copy_from_device_async(array.data, array.nbytes, ours)
        done = cupy.cuda.Event(disable_timing=True)
        done.record(ours)
    with cupy.cuda.Device(source):
        current.wait_event(done)
    return made


# ---- page-locked host memory


def pinned_copy(array: np.ndarray) -> np.ndarray:
    """A copy of a host array in page-locked memory, from which copies run beside the program."""
    made = cupyx.empty_pinned(array.shape, array.dtype)
    made[...] = array
    return made


def is_pinned(array: np.ndarray) -> bool:
    """Whether a host array lies in page-locked memory."""
    if not array.size:
        return False
    kind = cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data).type
    return kind == cupy.cuda.runtime.memoryTypeHost


# What a copy still reads or writes; CuPy's pool would hand pinned memory out again at once.
_in_flight: deque[tuple[Any, Any]] = deque()
_in_flight_lock = Lock()  # between a look at the oldest and its removal


def _keep(array: np.ndarray, stream: Any) -> None:
    event = cupy.cuda.Event(disable_timing=True)
    event.record(stream)
    with _in_flight_lock:
        while _in_flight and _in_flight[0][0].done:
            _in_flight.popleft()
        _in_flight.append((event, array))


def upload(array: np.ndarray) -> Any:
    """A device array of a host array in pinned memory, copied while the program goes on."""
    made = cupy.empty(array.shape, array.dtype)
    stream = cupy.cuda.get_current_stream()
    made.data.copy_from_host_async(array.ctypes.data, array.nbytes, stream)
    _keep(array, stream)
    return made


def download(array: Any) -> np.ndarray:
    """A pinned host array that a copy begins to fill: it is right once the stream is in step."""
    if not array.flags.c_contiguous:  # `ascontiguousarray` would give a zero-dim array an axis
        array = cupy.ascontiguousarray(array)
    made = cupyx.empty_pinned(array.shape, array.dtype)
    stream = cupy.cuda.get_current_stream()
    array.data.copy_to_host_async(made.ctypes.data, array.nbytes, stream)
    _keep(made, stream)
    return made

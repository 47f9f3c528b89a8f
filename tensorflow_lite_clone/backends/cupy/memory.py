"""Device memory through CuPy's pool, its figures, and page-locked host memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from threading import Lock, local
from typing import Any

import cupy
import cupyx
import numpy as np
from cupy.cuda.runtime import getDevice as get_device

from tensorflow_lite_clone.core.errors import OutOfMemoryError

_GIB = 1 << 30


class CudaOutOfMemoryError(OutOfMemoryError, MemoryError):
    """No room on a CUDA device; a MemoryError too, which is what CuPy's own code expects."""


def allocator(pool: Any) -> Callable[[int], Any]:
    """The allocation function of a pool, which reports its figures when there is no room.

    It counts: CuPy's hooks belong to a thread, and this function is what all threads call.
    """
    malloc = pool.malloc

    def allocate(size: int) -> Any:
        if _peaks.counting and not _thread.counts:
            _peaks.attach()
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
        cupy.cuda.set_allocator(allocator(cupy.get_default_memory_pool()))


class _Thread(local):
    counts = False  # whether the hook below is among the thread's


_thread = _Thread()


class _Peaks(cupy.cuda.MemoryHook):
    """Counts from the first allocation: the largest sums of bytes in use and held, by device.

    CuPy calls it after each allocation and release of a pool, so it adds and compares integers
    and asks the pool for nothing; the pool's own figure of what is in use is a walk over all
    blocks.
    """

    name = "tensorflow_lite_clone.peaks"

    def __init__(self) -> None:
        self.counting = True
        self.used: dict[int, int] = {}
        self.most: dict[int, int] = {}
        self.most_held: dict[int, int] = {}
        self.listeners: list[tuple[int, Callable[[int, int], None]]] = []
        # Where memory was taken, by address: CuPy's events may name another device when it goes.
        self._devices: dict[int, int] = {}

    def attach(self) -> None:
        """Count in this thread too."""
        if not _thread.counts:
            self.__enter__()
            _thread.counts = True

    def detach(self) -> None:
        """Count no more, and forget what was counted."""
        self.counting = False
        if _thread.counts:
            self.__exit__()
            _thread.counts = False
        for figures in (self.used, self.most, self.most_held, self._devices):
            figures.clear()

    def restart(self, index: int) -> None:
        """Let the peaks of a device be what is in use and held now."""
        with cupy.cuda.Device(index):
            pool = cupy.get_default_memory_pool()
            self.used[index] = self.most[index] = pool.used_bytes()
            self.most_held[index] = pool.total_bytes()

    def alloc_postprocess(self, device_id: int, mem_size: int, mem_ptr: int) -> None:
        """Called by CuPy after a pool has asked the driver for memory; address 0: it had none."""
        if mem_ptr:
            index, held = get_device(), cupy.get_default_memory_pool().total_bytes()
            if held > self.most_held.get(index, 0):
                self.most_held[index] = held

    def malloc_postprocess(
        self, device_id: int, size: int, mem_size: int, mem_ptr: int, pmem_id: int
    ) -> None:
        """Called by CuPy after each allocation from a pool; address 0: there was no room."""
        if not mem_ptr:
            return
        index = self._devices[mem_ptr] = get_device()
        used = self.used
        if index in used:
            used[index] += mem_size
            if used[index] > self.most[index]:
                self.most[index] = used[index]
        else:
            self.restart(index)
        for heard, listener in self.listeners:
            if heard == index:
                listener(mem_size, mem_ptr)

    def free_postprocess(self, device_id: int, mem_size: int, mem_ptr: int, pmem_id: int) -> None:
        """Called by CuPy when memory goes back to its pool."""
        index = self._devices.pop(mem_ptr, device_id)
        if index in self.used:
            self.used[index] -= mem_size
        for heard, listener in self.listeners:
            if heard == index:
                listener(-mem_size, mem_ptr)


_peaks = _Peaks()


def _watching(index: int) -> _Peaks:
    _peaks.counting = True
    _peaks.attach()
    if index not in _peaks.used:
        _peaks.restart(index)
    return _peaks


def unwatch() -> None:
    """Count no more until a figure is asked for, and then from there: for timings."""
    if not _peaks.listeners:
        _peaks.detach()


def listen(index: int, listener: Callable[[int, int], None]) -> Callable[[], None]:
    """Tell `listener` the bytes and address of each allocation on a device, and of each release
    with negative bytes; gives the function that ends it."""
    listeners = _watching(index).listeners
    listeners.append((index, listener))
    return lambda: listeners.remove((index, listener))


def figures(index: int) -> dict[str, int]:
    """Bytes in use and held by the pool of a device, now and at most; bytes free on the device."""
    peaks = _watching(index)
    with cupy.cuda.Device(index):
        pool = cupy.get_default_memory_pool()
        used, held = pool.used_bytes(), pool.total_bytes()
        free, total = cupy.cuda.runtime.memGetInfo()
        blocks = pool.n_free_blocks()
    # What a thread without the hook released was not counted: the pool knows better.
    peaks.used[index] = used
    return {
        "allocated": used,
        "reserved": held,
        "max_allocated": max(peaks.most[index], used),
        "max_reserved": max(peaks.most_held[index], held),
        "free_blocks": blocks,
        "free": free,
        "total": total,
    }


def used_bytes(index: int) -> int:
    """Bytes of a device's pool that are in use."""
    with cupy.cuda.Device(index):
        return cupy.get_default_memory_pool().used_bytes()


def reset_peak(index: int) -> None:
    """Count the peaks from now on."""
    _watching(index).restart(index)


def release(index: int) -> None:
    """Give what the pool holds and nobody uses back to the driver."""
    with cupy.cuda.Device(index):
        cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()


def from_peer(array: Any, source: int, index: int) -> Any:
    """A copy on device `index` of a contiguous array of device `source`.

    The streams that are current on the two wait for each other: the copy sees what was written
    before, and the memory is not written again while it is read. The host waits for nothing.
    """
    with cupy.cuda.Device(source):
        theirs = cupy.cuda.get_current_stream()
        ready = cupy.cuda.Event(disable_timing=True)
        ready.record(theirs)
    with cupy.cuda.Device(index):
        made = cupy.empty(array.shape, array.dtype)
        ours = cupy.cuda.get_current_stream()
        ours.wait_event(ready)
        made.data.copy_from_device_async(array.data, array.nbytes, ours)
        done = cupy.cuda.Event(disable_timing=True)
        done.record(ours)
    with cupy.cuda.Device(source):
        theirs.wait_event(done)
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

"""Device memory through CuPy's pool, its figures, and page-locked host memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from threading import Lock
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
    """The allocation function of a pool, which reports its figures when there is no room."""
    malloc = pool.malloc

    def allocate(size: int) -> Any:
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


class _Peaks(cupy.cuda.MemoryHook):
    """Watches allocations for the largest sums of bytes in use and held, by device.

    It costs about a microsecond an allocation, so it begins when a peak is first asked for.
    """

    name = "tensorflow_lite_clone.peaks"

    def __init__(self) -> None:
        self.used: dict[int, int] = {}
        self.most: dict[int, int] = {}
        self.most_held: dict[int, int] = {}
        self.listeners: list[tuple[int, Callable[[int, int], None]]] = []
        # Where memory was taken, by address: CuPy's events may name another device when it goes.
        self._places: dict[int, int] = {}

    def watch(self, index: int) -> None:
        """Begin with what is in use now."""
        with cupy.cuda.Device(index):
            pool = cupy.get_default_memory_pool()
            self.used[index] = self.most[index] = pool.used_bytes()
            self.most_held[index] = pool.total_bytes()

    def malloc_postprocess(self, **event: Any) -> None:
        """Called by CuPy after each allocation from a pool."""
        index = self._places[event["mem_ptr"]] = get_device()
        used = self.used.get(index, 0) + event["mem_size"]
        self.used[index] = used
        if used > self.most.get(index, 0):
            self.most[index] = used
        for heard, listener in self.listeners:
            if heard == index:
                listener(event["mem_size"], event["mem_ptr"])

    def free_postprocess(self, **event: Any) -> None:
        """Called by CuPy when memory goes back to its pool."""
        index = self._places.pop(event["mem_ptr"], event["device_id"])
        self.used[index] = self.used.get(index, 0) - event["mem_size"]
        for heard, listener in self.listeners:
            if heard == index:
                listener(-event["mem_size"], event["mem_ptr"])


_peaks: list[_Peaks] = []


def _watching(index: int) -> _Peaks:
    if not _peaks:
        peaks = _Peaks()
        peaks.__enter__()  # until `unwatch`
        _peaks.append(peaks)
    if index not in _peaks[0].most:
        _peaks[0].watch(index)
    return _peaks[0]


def unwatch() -> None:
    """Forget the peaks, which are then counted from when one is asked for again."""
    if _peaks and not _peaks[0].listeners:
        _peaks.pop().__exit__()


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
        peaks.most_held[index] = max(peaks.most_held[index], held)
        free, total = cupy.cuda.runtime.memGetInfo()
        blocks = pool.n_free_blocks()
    return {
        "allocated": used,
        "reserved": held,
        "max_allocated": max(peaks.most[index], used),
        "max_reserved": peaks.most_held[index],
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
    _watching(index).watch(index)


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

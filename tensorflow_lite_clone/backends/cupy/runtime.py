"""Devices, streams and events of the CUDA runtime, as `torch.cuda` needs them."""

from __future__ import annotations

import sys
from collections import deque
from contextlib import nullcontext
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import cupy
from cupy.cuda import runtime

from tensorflow_lite_clone.backends.cupy import device_asserts
from tensorflow_lite_clone.backends.cupy.fusion.deferred import chain
from tensorflow_lite_clone.dispatch import capture


class DeviceProperties(NamedTuple):
    """What a device is, as ``torch.cuda.get_device_properties`` names it; memory in bytes."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_multi_processor: int
    max_threads_per_block: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    regs_per_multiprocessor: int
    L2_cache_size: int
    clock_rate: int
    memory_bus_width: int
    pci_bus_id: int
    is_integrated: int
    uuid: str


def properties(index: int) -> DeviceProperties:
    """The properties of device `index`."""
    found = runtime.getDeviceProperties(index)
    return DeviceProperties(
        found["name"].decode(),
        found["major"],
        found["minor"],
        found["totalGlobalMem"],
        found["multiProcessorCount"],
        found["warpSize"],
        found["maxThreadsPerMultiProcessor"],
        found["maxThreadsPerBlock"],
        found["sharedMemPerBlock"],
        found["sharedMemPerBlockOptin"],
        found["sharedMemPerMultiprocessor"],
        found["regsPerMultiprocessor"],
        found["l2CacheSize"],
        found.get("clockRate", 0),
        found.get("memoryBusWidth", 0),
        found["pciBusID"],
        found["integrated"],
        bytes(found["uuid"]).hex() if "uuid" in found else "",
    )


def current_device() -> int:
    """The device on which arrays are made."""
    return runtime.getDevice()


def set_device(index: int) -> None:
    """Make a device the current one; RuntimeError where it does not exist."""
    if not 0 <= index < runtime.getDeviceCount():
        raise RuntimeError(
            f"CUDA error: invalid device ordinal: cuda:{index} was asked for, and there are "
            f"{runtime.getDeviceCount()} devices"
        )
    runtime.setDevice(index)


def on(index: int) -> Any:
    """A context in which a device is the current one."""
    return nullcontext() if runtime.getDeviceCount() == 1 else cupy.cuda.Device(index)


def synchronize(index: int) -> None:
    """Wait for all work on a device; AcceleratorError for what a kernel has found wrong."""
    capture.crossing("waits for the device")
    cupy.cuda.Device(index).synchronize()
    device_asserts.raise_reported()


def wait(handle: Any) -> None:
    """Wait for a stream or an event; AcceleratorError for what a kernel has found wrong."""
    handle.synchronize()
    device_asserts.raise_reported()


def can_access_peer(index: int, peer: int) -> bool:
    """Whether device `index` can read the memory of device `peer` directly."""
    return bool(runtime.deviceCanAccessPeer(index, peer))


# The streams that programs have beside the default ones, by identity (streams of one pointer are
# equal), and pointers to the default ones.
_streams: WeakValueDictionary[int, Any] = WeakValueDictionary()
_DEFAULT = (0, 1, 2)


def new_stream(index: int, priority: int) -> Any:
    """A stream of a device that does not wait for the default stream."""
    with cupy.cuda.Device(index):
        stream = cupy.cuda.Stream(non_blocking=True, priority=priority)
    _streams[id(stream)] = stream
    return stream


def external_stream(pointer: int, index: int) -> Any:
    """A stream that another library made."""
    stream = cupy.cuda.ExternalStream(pointer, index)
    _streams[id(stream)] = stream
    return stream


def _captures(stream: Any) -> bool:
    return stream.ptr not in _DEFAULT and bool(stream.is_capturing())


def let_all_wait() -> None:
    """Let every other stream wait for what the current one has been given so far.

    For work that a program knows nothing of, and so orders no streams around: what it has read may
    be written again, and what it has written be read, on any of them. Streams that are captured
    may not wait for others; what is captured is replayed as a whole.
    """
    current = cupy.cuda.get_current_stream()
    if capture.state.graph is not None or not _streams or _captures(current):
        return
    streams = {s.ptr: s for reference in _streams.valuerefs() if (s := reference()) is not None}
    others = [s for s in streams.values() if s.ptr != current.ptr and not _captures(s)]
    if current.ptr not in _DEFAULT:
        others.append(default_stream())
    if others:
        event = cupy.cuda.Event(disable_timing=True)
        event.record(current)
        for stream in others:
            stream.wait_event(event)


def default_stream() -> Any:
    """The stream work goes to unless another is in use."""
    return cupy.cuda.Stream.null


def current_stream(index: int) -> Any:
    """The stream that work on a device goes to now."""
    with cupy.cuda.Device(index):
        return cupy.cuda.get_current_stream()


def use_stream(stream: Any, index: int) -> None:
    """Make a device the current one, and let its work go to `stream`."""
    chain.flush()
    runtime.setDevice(index)
    stream.use()


def enter_stream(stream: Any, index: int) -> None:
    """Begin a block in which a device is the current one, and its work goes to `stream`."""
    chain.flush()  # what waits was asked for on the stream of before
    set_device(index)
    stream.__enter__()


def leave_stream(stream: Any, index: int, *exception: object) -> None:
    """End such a block; the device stays the current one."""
    try:
        chain.flush()
    finally:
        set_device(index)  # the block may have changed it
        stream.__exit__(*exception)


def new_event(index: int, blocking: bool, timing: bool, interprocess: bool) -> Any:
    """An event of a device."""
    with cupy.cuda.Device(index):
        return cupy.cuda.Event(blocking, not timing, interprocess)


def record(event: Any, stream: Any) -> None:
    """Let an event stand for the end of what `stream` has been given so far."""
    chain.flush()
    event.record(stream)


def elapsed_time(start: Any, end: Any) -> float:
    """Milliseconds between two recorded events."""
    return cupy.cuda.get_elapsed_time(start, end)


# Arrays that a stream other than their own still uses, with the event that ends this.
_kept: deque[tuple[Any, Any]] = deque()
# Memory that other streams use while a program holds it, by its identity.
_lent: dict[int, _Loan] = {}
_lock = Lock()  # of both, between a look and a removal


class _Loan:
    """Memory, the streams that use it, and the ends of their work when nobody else holds it."""

    __slots__ = ("ends", "memory", "streams")

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.streams: dict[tuple[int, int], Any] = {}  # by device and pointer
        self.ends: list[Any] = []

    def is_over(self) -> bool:
        """Whether the memory may be used again."""
        if not self.ends:
            if sys.getrefcount(self.memory) > _ALONE:
                return False
            self.ends = [_end_of(stream, index) for (index, _), stream in self.streams.items()]
        return all([end.done for end in self.ends])


_ALONE = 2  # references to memory that only its loan holds: the loan's, and that of the question


def _end_of(stream: Any, index: int) -> Any:
    """An event after what is queued in a stream now, of device `index` if it is a default one."""
    with on(index if stream.device_id < 0 else stream.device_id):
        event = cupy.cuda.Event(disable_timing=True)
        event.record(stream)
    return event


def _keeps_in_graph(array: Any) -> bool:
    """Whether the graph that is captured keeps an array: a captured event can never be asked."""
    graph = capture.state.graph
    if graph is not None:
        graph.pool.kept.append(array)
    return graph is not None


def keep(array: Any, stream: Any) -> None:
    """Keep an array's memory from being used again before `stream` has come this far."""
    if _keeps_in_graph(array):
        return
    event = _end_of(stream, runtime.getDevice())
    with _lock:
        while _kept and _kept[0][0].done:
            _kept.popleft()
        _kept.append((event, array))


def lend(array: Any, stream: Any, index: int | None = None) -> None:
    """Keep an array's memory, once nobody holds it, until `stream` has done its work of then.

    `index` is the device whose default stream is meant, by default the array's. What was lent
    before is looked at, and given back where it may be used again.
    """
    if _keeps_in_graph(array):
        return
    memory = array.data.mem
    with _lock:
        loan = _lent.setdefault(id(memory), _Loan(memory))
        # the default streams of all devices have one pointer
        loan.streams[memory.device_id if index is None else index, stream.ptr] = stream
    del memory
    settle()


def settle() -> None:
    """Give lent memory back where it may be used again; nothing while a graph is captured."""
    if capture.state.graph is None:
        with _lock:
            for key in [key for key, loan in _lent.items() if loan.is_over()]:
                del _lent[key]


def profile(collect: bool) -> None:
    """Let a profiler that runs beside the program collect, or let it stop."""
    if collect:
        runtime.profilerStart()
    else:
        runtime.profilerStop()


def range_push(message: str) -> None:
    """Open a range in profilers' timelines."""
    cupy.cuda.nvtx.RangePush(message)


def range_pop() -> None:
    """Close the innermost range."""
    cupy.cuda.nvtx.RangePop()


def mark(message: str) -> None:
    """Mark a moment in profilers' timelines."""
    cupy.cuda.nvtx.Mark(message)

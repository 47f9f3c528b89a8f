"""CUDA graphs over CuPy: capture, replay, and the memory that both need.

`Graphs` is what a backend offers as `backend.graphs`; everything above it (`torch.cuda.CUDAGraph`,
`torch.compile`) knows these classes only and no CUDA.

A capture records what this thread launches on a side stream and executes nothing. Arrays that are
made meanwhile come from the graph's own pool: CuPy's pools keep free blocks per stream, so memory
that is freed during the capture is used again in the order of the stream, and nobody else gets it
as long as the pool lives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime

from tensorflow_lite_clone.backends.cupy import memory
from tensorflow_lite_clone.backends.cupy.arrays import is_dense
from tensorflow_lite_clone.backends.cupy.capture_log import CaptureLog
from tensorflow_lite_clone.backends.cupy.fusion.deferred import chain
from tensorflow_lite_clone.dispatch import capture, hooks

MODES = ("global", "thread_local", "relaxed")
_TO_DEVICE, _ON_DEVICE = runtime.memcpyHostToDevice, runtime.memcpyDeviceToDevice
_DEFAULT_STREAMS = (0, 1)  # as pointers: the default stream, and its explicit name
_NOT_DEFAULT = (
    "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to "
    "replay them on the default stream.)"
)


class Pool:
    """Memory for one graph, or for several that are never replayed at the same time."""

    def __init__(self) -> None:
        self.memory = cupy.cuda.MemoryPool()
        self.allocate = memory.allocator(self.memory)
        #: what captured work reads and nobody else holds
        self.kept: list[Any] = []

    def __repr__(self) -> str:
        return f"<graph pool of {self.memory.total_bytes()} bytes>"


class Graph:
    """Work that was captured once and can be launched again and again."""

    def __init__(
        self,
        index: int,
        prepare: Callable[[], object],
        deferring: Callable[[], AbstractContextManager[None]],
        pool: Pool | None = None,
    ) -> None:
        self.index = index
        self._prepare, self._deferring = prepare, deferring
        self.pool = Pool() if pool is None else pool
        self._graph: Any = None
        self._stream: Any = None
        self._exit = ExitStack()
        self._waiting = ExitStack()

    def begin(self, mode: str = "global") -> None:
        """Capture what this thread launches on the current stream from now on.

        RuntimeError on the default stream, or when this thread captures already. Whatever the
        mode, unrelated work of the process stays allowed, as with PyTorch's "relaxed".
        """
        if mode not in MODES:
            raise ValueError(
                "Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got "
                f"{mode}"
            )
        stream = cupy.cuda.get_current_stream()
        if stream.ptr in _DEFAULT_STREAMS:
            raise RuntimeError(_NOT_DEFAULT)
        self._prepare()
        capture.cross_boundary()
        capture.begin(self)
        try:
            self._exit.callback(capture.end)
            self._exit.enter_context(cupy.cuda.using_allocator(self.pool.allocate))
            stream.begin_capture(runtime.streamCaptureModeRelaxed)
            self._waiting.enter_context(self._deferring())
        except BaseException:
            self._exit.close()
            raise
        self._stream = stream

    def end(self, broken: bool = False) -> None:
        """End the capture; RuntimeError if something in between has broken it off."""
        stream, self._stream = self._stream, None
        if stream is None:
            raise RuntimeError("capture_end() was called without a capture under way")
        try:
            try:
                with self._waiting:
                    if not broken:
                        capture.cross_boundary()
            finally:
                self._graph = stream.end_capture()
        finally:
            self._exit.close()

    def abandon(self) -> None:
        """End the capture after an error and drop what was captured."""
        try:
            if self._stream is not None:
                chain.drop()
                self.end(broken=True)
        except runtime.CUDARuntimeError:
            pass  # the error that is under way has broken the capture off
        self._graph = None

    @property
    def launch(self) -> Callable[[], None]:
        """The function that queues the whole graph on the current stream."""
        if self._graph is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        replay = _on_device(self.index, self._graph.launch)

        def launch() -> None:
            if hooks.around_region:
                hooks.run_region("CUDAGraph.replay", replay)
            else:
                replay()

        return launch

    def reset(self) -> None:
        """Drop the graph; its pool is freed with the last graph and array that use it."""
        self._graph = None
        self.pool = Pool()

    def __del__(self) -> None:
        self._graph = None  # before the pool, which keeps communicators that wait for the graph

    def dot(self, flags: int = 0) -> str:
        """The graph in the DOT language."""
        if self._graph is None:
            raise RuntimeError("nothing was captured yet: there is no graph to draw")
        return self._graph.debug_dot_str(flags)


class Cells:
    """Zero-dim float32 arrays that the host fills before every replay.

    A copy from page-locked memory is made later than it is asked for, so each replay has a row of
    its own to copy from, and an event per half of the rows tells when they may be written again.
    """

    ROWS, SIZE = 128, 512

    def __init__(self, index: int) -> None:
        self.index = index
        self.count = 0
        self._array = cupy.zeros(self.SIZE, np.float32)
        self._last: list[float] = []
        self._row = 0
        self._rows: Any = None
        self._events: list[Any] = []
        self.fill = _on_device(index, self._fill)

    def new(self) -> Any:
        """One more cell; RuntimeError when there are too many."""
        if self.count == self.SIZE:
            raise RuntimeError(f"a captured step may read {self.SIZE} dynamic scalars at most")
        self.count += 1
        return self._array[self.count - 1]

    def _fill(self, values: list[float]) -> None:
        """Queue the copy of all cells' values on the current stream, if any has changed."""
        if values == self._last:
            return
        if self._rows is None:
            size = self.ROWS * self.SIZE
            pinned = cupy.cuda.alloc_pinned_memory(4 * size)
            self._rows = np.frombuffer(pinned, np.float32, size).reshape(self.ROWS, self.SIZE)
            self._events = [cupy.cuda.Event(disable_timing=True) for _ in range(2)]
        half = self.ROWS // 2
        if self._row % half == 0:
            self._events[self._row // half].synchronize()  # one that was not recorded is done
        row = self._rows[self._row]
        row[: len(values)] = values
        stream = cupy.cuda.get_current_stream()
        runtime.memcpyAsync(
            self._array.data.ptr, row.ctypes.data, 4 * len(values), _TO_DEVICE, stream.ptr
        )
        if self._row % half == half - 1:
            self._events[self._row // half].record(stream)
        self._row = (self._row + 1) % self.ROWS
        self._last = values


class _Own(threading.local):
    """This thread's side streams, by device: what a stream captures may be of one thread alone."""

    def __init__(self) -> None:
        self.streams: dict[int, Any] = {}


_own = _Own()


class _SideStream:
    """Context in which work goes to a stream that waits for what is queued so far."""

    def __init__(self, index: int, stream: Any) -> None:
        self._device = cupy.cuda.Device(index)
        if stream is None:  # always the same: a pool keeps its free blocks per stream
            with self._device:
                stream = _own.streams.get(index) or cupy.cuda.Stream(non_blocking=True)
            _own.streams[index] = stream
        self._stream = stream

    def __enter__(self) -> None:
        self._device.__enter__()
        self._outer = cupy.cuda.get_current_stream()
        self._stream.wait_event(self._outer.record())
        self._stream.__enter__()  # not `use`, which a block with another stream inside would undo

    def __exit__(self, *exception: object) -> None:
        event = self._stream.record()
        self._stream.__exit__(*exception)
        self._outer.wait_event(event)
        self._device.__exit__(*exception)


class Graphs:
    """What one device offers for graphs.

    `prepare` makes what must not be made within a capture: its first values would be those of the
    first replay. `deferring` is a block in which pointwise kernels wait for each other.
    """

    on_host = False

    def __init__(
        self,
        index: int,
        prepare: Callable[[], object],
        deferring: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.index = index
        self._prepare, self._deferring = prepare, deferring

    def pool(self) -> Pool:
        """A new pool."""
        return Pool()

    def graph(self, pool: Pool | None = None) -> Graph:
        """A graph that is yet to be captured."""
        return Graph(self.index, self._prepare, self._deferring, pool)

    def cells(self) -> Cells:
        """A set of cells."""
        with cupy.cuda.Device(self.index):
            return Cells(self.index)

    def record(self) -> CaptureLog:
        """A context that takes down what is captured inside, for ``write(folder, title)``."""
        return CaptureLog(self.index)

    def side_stream(self, stream: Any = None) -> Any:
        """A context for warm-up and capture, by default on this thread's side stream."""
        return _SideStream(self.index, stream)

    def is_capturing(self) -> bool:
        """Whether work on the current stream is being captured."""
        stream = cupy.cuda.get_current_stream()
        return stream.ptr not in _DEFAULT_STREAMS and bool(stream.is_capturing())

    def buffer(self, like: Any) -> Any:
        """An uninitialised array laid out like another one, without its gaps and repetitions."""
        with cupy.cuda.Device(self.index):
            return cupy.empty_like(like)

    def copy_fn(self, target: Any) -> Callable[[Any], None]:
        """The function that copies arrays of the same shape and dtype into `target`, at best fast.

        The address is looked up once: `target` must be kept.
        """
        shape, strides, nbytes = target.shape, target.strides, target.nbytes
        pointer, dense = target.data.ptr, is_dense(target)
        current, copy_bytes, kind = cupy.cuda.get_current_stream, runtime.memcpyAsync, _ON_DEVICE

        def copy(source: Any) -> None:
            if dense and source.strides == strides and source.shape == shape:
                if nbytes:
                    copy_bytes(pointer, source.data.ptr, nbytes, kind, current().ptr)
            elif source.shape == shape:
                target[...] = source
            else:
                raise RuntimeError(
                    f"a captured graph works on an input of shape {list(shape)}, but was given "
                    f"one of shape {list(source.shape)}"
                )

        return _on_device(self.index, copy)

    def clone_fn(self, array: Any) -> Callable[[], Any]:
        """The function that returns a copy of what `array` holds when it is called."""
        shape, dtype, nbytes, pointer = array.shape, array.dtype, array.nbytes, array.data.ptr
        if not nbytes or not array.flags.c_contiguous:
            return _on_device(self.index, lambda: array.copy(order="K"))
        current, copy_bytes, kind = cupy.cuda.get_current_stream, runtime.memcpyAsync, _ON_DEVICE
        make = cupy.ndarray

        def clone() -> Any:
            made = make(shape, dtype)
            copy_bytes(made.data.ptr, pointer, nbytes, kind, current().ptr)
            return made

        return _on_device(self.index, clone)


def _on_device(index: int, call: Callable[..., Any]) -> Callable[..., Any]:
    """`call` with a device as the current one, where there are others."""
    if runtime.getDeviceCount() == 1:
        return call

    def on_device(*args: Any) -> Any:
        with cupy.cuda.Device(index):
            return call(*args)

    return on_device

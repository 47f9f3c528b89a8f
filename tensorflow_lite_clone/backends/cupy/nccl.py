"""NCCL through CuPy: one communicator on one device, with a stream of its own.

What it queues waits for the work that was queued on the current stream before, and nothing on that
stream waits for it until `Channel.join` says so: communication runs beside computation. All of it
can be captured in a graph, since streams that wait for a captured one are captured, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import cupy

from tensorflow_lite_clone.backends.cupy import runtime
from tensorflow_lite_clone.backends.cupy.fusion.deferred import chain
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.dispatch import capture

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # where the library is missing: `is_available` says so
    from cupy.cuda import nccl

#: NCCL's numbers (nccl.h): of element types,
TYPES: dict[DType, int] = {
    dtypes.int8: 0, dtypes.uint8: 1, dtypes.bool_: 1, dtypes.int32: 2, dtypes.uint32: 3,
    dtypes.int64: 4, dtypes.uint64: 5, dtypes.float16: 6, dtypes.float32: 7, dtypes.float64: 8,
    dtypes.bfloat16: 9,
}  # fmt: skip
#: and of reductions. Booleans are 0 and 1, so sums are maxima and products minima.
REDUCTIONS = {"SUM": 0, "PRODUCT": 1, "MAX": 2, "MIN": 3, "AVG": 4}
BOOLEAN = {"SUM": 2, "MAX": 2, "BOR": 2, "PRODUCT": 3, "MIN": 3, "BAND": 3}
_BYTE = 1

is_available = bool(nccl.available)


def version() -> tuple[int, int, int]:
    """NCCL's version."""
    number = nccl.get_version()
    return number // 10000, number // 100 % 100, number % 100


def unique_id() -> bytes:
    """What the ranks of one communicator must know to meet."""
    return nccl.get_unique_id()


@contextmanager
def group() -> Iterator[None]:
    """What is queued within starts together, so that sends and receives may wait for each other."""
    nccl.groupStart()
    try:
        yield
    finally:
        nccl.groupEnd()


class Channel:
    """A communicator; made by all its ranks at once."""

    def __init__(self, index: int, size: int, identity: bytes, rank: int) -> None:
        self.index = index
        with cupy.cuda.Device(index):
            self._nccl = nccl.NcclCommunicator(size, identity, rank)
            self.stream = cupy.cuda.Stream(non_blocking=True)
        self._captured = False

    def queue(self, call: Callable[[Channel], None]) -> Any:
        """Queue what `call` queues after the current stream's work; the event of its end."""
        with cupy.cuda.Device(self.index):
            self.fork()
            call(self)
            return self.record()

    def fork(self) -> None:
        """Let what is queued from now on wait for the current stream."""
        chain.flush()
        graph = capture.state.graph
        if graph is not None and self not in graph.pool.kept:
            graph.pool.kept.append(self)  # its end would wait for that of the graph
            self._captured = True
        self.stream.wait_event(cupy.cuda.get_current_stream().record(_event()))

    def record(self) -> Any:
        """An event after what has been queued."""
        return self.stream.record(_event())

    def join(self, event: Any) -> None:
        """Let the current stream wait for an event."""
        with cupy.cuda.Device(self.index):
            cupy.cuda.get_current_stream().wait_event(event)

    def keep(self, arrays: Sequence[Any]) -> None:
        """Keep arrays that nobody else holds until what has been queued is over."""
        with cupy.cuda.Device(self.index):
            for array in arrays:
                runtime.keep(array, self.stream)

    def all_reduce(self, array: Any, dtype: DType, op: str) -> None:
        """Queue a reduction in place."""
        chain.wrote(array)
        where = array.data.ptr
        code = _reduction(dtype, op)
        self._nccl.allReduce(where, where, array.size, TYPES[dtype], code, self.stream.ptr)

    def reduce(self, array: Any, target: Any, root: int, dtype: DType, op: str) -> None:
        """Queue a reduction to `target`, which the root alone writes."""
        chain.wrote(target)
        self._nccl.reduce(
            array.data.ptr, target.data.ptr, array.size, TYPES[dtype], _reduction(dtype, op), root,
            self.stream.ptr,
        )  # fmt: skip

    def reduce_scatter(self, first: Any, target: Any, dtype: DType, op: str) -> None:
        """Queue a reduction of arrays that follow `first` in memory, one for each rank."""
        chain.wrote(target)
        self._nccl.reduceScatter(
            first.data.ptr, target.data.ptr, target.size, TYPES[dtype], _reduction(dtype, op),
            self.stream.ptr,
        )  # fmt: skip

    def broadcast(self, array: Any, target: Any, root: int) -> None:
        """Queue a copy of the root's `array` to all targets."""
        chain.wrote(target)
        self._nccl.broadcast(
            array.data.ptr, target.data.ptr, array.nbytes, _BYTE, root, self.stream.ptr
        )

    def all_gather(self, array: Any, first: Any) -> None:
        """Queue a copy of the arrays of all ranks to those that follow `first` in memory."""
        chain.wrote(first)
        self._nccl.allGather(array.data.ptr, first.data.ptr, array.nbytes, _BYTE, self.stream.ptr)

    def send(self, array: Any, peer: int) -> None:
        """Queue a send."""
        self._nccl.send(array.data.ptr, array.nbytes, _BYTE, peer, self.stream.ptr)

    def receive(self, array: Any, peer: int) -> None:
        """Queue a receive."""
        chain.wrote(array)
        self._nccl.recv(array.data.ptr, array.nbytes, _BYTE, peer, self.stream.ptr)

    def close(self) -> None:
        """Give the communicator back; one that graphs have captured goes with the last of them."""
        self.stream.synchronize()
        if not self._captured:
            self._nccl.destroy()


def _event() -> Any:
    return cupy.cuda.Event(disable_timing=True)


def _reduction(dtype: DType, op: str) -> int:
    return (BOOLEAN if dtype is dtypes.bool_ else REDUCTIONS)[op]


def follow_each_other(arrays: Sequence[Any]) -> bool:
    """Whether arrays of one size lie one behind the other."""
    start, size = arrays[0].data.ptr, arrays[0].nbytes
    return all([array.data.ptr == start + i * size for i, array in enumerate(arrays)])


def is_over(event: Any) -> bool:
    """Whether an event has happened."""
    return event.done


def wait_on_host(event: Any) -> None:
    """Wait for an event."""
    event.synchronize()

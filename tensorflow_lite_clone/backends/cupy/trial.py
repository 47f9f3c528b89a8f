"""How long a generated kernel takes, measured over memory of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import cupy

from tensorflow_lite_clone.backends.cupy import memory
from tensorflow_lite_clone.backends.cupy.fusion.expression import Trace
from tensorflow_lite_clone.backends.cupy.fusion.launch import Plan
from tensorflow_lite_clone.backends.cupy.fusion.layout import Walk
from tensorflow_lite_clone.backends.cupy.fusion.source import Form
from tensorflow_lite_clone.core.errors import OutOfMemoryError

LAUNCHES = 20  # of a graph
_REPLAYS = 7
_COPIED = 1 << 28  # bytes, much more than a cache holds
_FILL = 0x3F  # of each byte: floats of all sizes are then ordinary numbers
_ALIGNMENT = 16


class Laid(NamedTuple):
    """How an array lies, without its memory."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    dtype: Any
    address: int

    @property
    def bytes(self) -> int:
        """The bytes of the elements that are there: repeated ones count once."""
        count = self.dtype.itemsize
        for size, step in zip(self.shape, self.strides):
            count *= size if step else 1
        return int(count)

    @property
    def layout(self) -> tuple:
        """What makes a launch take its time."""
        return self.shape, self.strides, self.dtype, self.address % _ALIGNMENT

    def again(self) -> Any:
        """An array that lies so in new memory."""
        steps = [(size - 1) * step for size, step in zip(self.shape, self.strides)]
        before = -sum([step for step in steps if step < 0])
        after = sum([step for step in steps if step > 0]) + self.dtype.itemsize
        start = (self.address - before) % _ALIGNMENT
        made = cupy.cuda.alloc(start + before + after)
        made.memset_async(int(self.dtype.kind == "b") or _FILL, start + before + after)
        return cupy.ndarray(self.shape, self.dtype, made + (start + before), self.strides)

    def __str__(self) -> str:
        size = " x ".join(map(str, self.shape)) or "one element"
        return f"{self.dtype.name} {size}"


class Ready(NamedTuple):
    """What a plan is made of, how its operands lie (numbers as they are), and its results."""

    name: str
    trace: Trace
    walk: Walk
    form: Form
    operands: tuple
    results: tuple[Laid, ...]

    @property
    def bytes(self) -> int:
        """The bytes that are read and written."""
        used = {self.operands[symbol.value] for symbol in self.trace.operands}
        return sum([laid.bytes for laid in (*used, *self.results) if isinstance(laid, Laid)])


def seconds(ready: Ready) -> float | None:
    """The device's time for a launch, over memory of its own; None where there is no room."""
    try:
        with cupy.cuda.using_allocator(memory.allocator(cupy.cuda.MemoryPool())):
            operands = tuple([v.again() if isinstance(v, Laid) else v for v in ready.operands])
            results = tuple([laid.again() for laid in ready.results])
            plan = Plan(ready.name, ready.trace, ready.walk, ready.form)
            return _measured(lambda: plan.into(operands, results))
    except OutOfMemoryError:
        return None


def copy_speed() -> float | None:
    """The bytes that the current device reads and writes in a second; None without room for it."""
    return _copy_speed(cupy.cuda.runtime.getDevice())


@cache
def _copy_speed(device: int) -> float | None:
    try:
        with cupy.cuda.using_allocator(memory.allocator(cupy.cuda.MemoryPool())):
            source, target = cupy.cuda.alloc(_COPIED), cupy.cuda.alloc(_COPIED)
    except OutOfMemoryError:
        return None

    def copy() -> None:
        target.copy_from_device_async(source, _COPIED, cupy.cuda.get_current_stream())

    return 2 * _COPIED / _measured(copy)


def _measured(work: Callable[[], object]) -> float:
    """Seconds of one run of `work` among several, in a captured graph that is replayed."""
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.get_current_stream().synchronize()
    with stream:
        work()
        stream.begin_capture(cupy.cuda.runtime.streamCaptureModeRelaxed)
        for _ in range(LAUNCHES):
            work()
        graph = stream.end_capture()
        times = []
        for _ in range(_REPLAYS):
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            start.record(stream)
            graph.launch()
            end.record(stream)
            end.synchronize()
            times.append(cupy.cuda.get_elapsed_time(start, end))
    return sorted(times)[_REPLAYS // 2] / LAUNCHES / 1e3

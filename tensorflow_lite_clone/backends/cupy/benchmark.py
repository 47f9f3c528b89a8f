"""How long a generated kernel takes, measured over memory of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import cupy
import numpy as np
from cupy import ndarray

from tensorflow_lite_clone.backends.cupy import memory
from tensorflow_lite_clone.backends.cupy.fusion.deferred import Step
from tensorflow_lite_clone.core.errors import OutOfMemoryError

LAUNCHES = 20  # of a graph
_REPLAYS = 7
_COPIED = 1 << 28  # bytes, much more than a cache holds
_FILL = 0x3F  # of each byte: floats of all sizes are then ordinary numbers
_ALIGNMENT = 16


class ArrayLayout(NamedTuple):
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


def without_memory(step: Step) -> Step:
    """A step with how its arrays lie in place of them; numbers stay."""

    def physical(value: Any) -> Any:
        if value.__class__ is not ndarray:
            return value
        return ArrayLayout(value.shape, value.strides, np.dtype(value.dtype), value.data.ptr)

    operands, results = tuple(map(physical, step.operands)), tuple(map(physical, step.results))
    return step._replace(operands=operands, results=results)


def bytes_of(step: Step) -> int:
    """The bytes that a step without memory reads and writes."""
    used = {step.operands[symbol.value] for symbol in step.trace.operands}
    return sum(
        [physical.bytes for physical in (*used, *step.results) if isinstance(physical, ArrayLayout)]
    )


def seconds(step: Step) -> float | None:
    """The device's time for a step without memory, over new memory; None where there is no room."""

    def again(value: Any) -> Any:
        return value.again() if isinstance(value, ArrayLayout) else value

    try:
        with cupy.cuda.using_allocator(memory.allocator(cupy.cuda.MemoryPool())):
            operands, results = tuple(map(again, step.operands)), tuple(map(again, step.results))
            return _median_time(step._replace(operands=operands, results=results).launch)
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

    return 2 * _COPIED / _median_time(copy)


def _median_time(work: Callable[[], object]) -> float:
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

"""What kernels find wrong with values, such as an index out of range: an error a little later.

To read indices back would stop the queue. So kernels that meet a value out of range write what they
found into a word of pinned host memory, and it is raised where the host next waits for the device:
when a value is read, or something is synchronized. (PyTorch's kernels stop by an assertion, which
is raised there, too, but ends the process's use of the GPU.)
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from cupy.cuda import MemoryPointer, UnownedMemory

from tensorflow_lite_clone.backends.cupy.kernel import Kernel, blocks_for
from tensorflow_lite_clone.core.errors import AcceleratorError

INDEX, CLASS = 1, 2  # FAULT_INDEX and FAULT_CLASS of fault.cuh
_FILE = "check.cu"
_CHECK_INDEX = Kernel(_FILE, "check_index", params=("I",))
_CHECK_RANGE = Kernel(_FILE, "check_range", params=("T",))
_NONE = -(1 << 63)  # no index: nothing is skipped
_BYTES = 24
_MAX_BLOCKS = 1024
_messages: list[str] = []  # of `check_range`; the number of the first is CLASS + 1


class _Report:
    """Three numbers: what is wrong (0: nothing), the value, and the size that it goes beyond."""

    def __init__(self) -> None:
        self.memory = cupy.cuda.alloc_pinned_memory(_BYTES)
        self.words = memoryview(self.memory).cast("B")[:_BYTES].cast("q")
        self.words[0] = 0
        # Every device sees pinned memory at the host's address.
        lent = UnownedMemory(self.memory.ptr, _BYTES, self.memory, 0)
        self.array = cupy.ndarray((3,), np.int64, MemoryPointer(lent, 0))


_report: _Report | None = None


def prepare() -> None:
    """Take the memory, once; this cannot be done while a graph is captured."""
    global _report
    if _report is None:
        _report = _Report()


def report() -> Any:
    """What a kernel takes as `fault`."""
    prepare()
    return _report.array  # type: ignore[union-attr]


def is_report(array: Any) -> bool:
    """Whether this is what `report` gives."""
    return _report is not None and array is _report.array


def raise_reported() -> None:
    """Raise AcceleratorError for what a kernel has found since the last time; the work goes on."""
    if _report is not None and _report.words[0]:
        what, value, size = _report.words
        _report.words[0] = 0
        said = _message(what, value, size)
        raise AcceleratorError(f"CUDA error: device-side assert triggered: {said}")


def _message(what: int, value: int, size: int) -> str:
    if what == INDEX:
        return f"index {value} is out of bounds for a dimension of size {size}"
    if what == CLASS:
        return f"Target {value} is out of bounds for {size} classes."
    return _messages[what - CLASS - 1]


def check_index(x: Any, low: int, high: int, what: int = INDEX, skipped: int = _NONE) -> None:
    """Look on the device whether low <= x < high, or x is `skipped`."""
    if not x.size:
        return
    if x.dtype.char not in "ilq":
        x = x.astype(np.int64)
    x, grid = cupy.ascontiguousarray(x), min(blocks_for(x.size, 256), _MAX_BLOCKS)
    _CHECK_INDEX[x.dtype](grid, 256, x, x.size, low, high, skipped, what, report())


def check_range(x: Any, low: float, high: float, message: str) -> None:
    """Look on the device whether low <= x <= high; `message` is what is said if not."""
    if not x.size:
        return
    if x.dtype.char not in "fd":
        x = x.astype(np.float64 if x.dtype.itemsize == 8 else np.float32)
    if message not in _messages:
        _messages.append(message)
    what = CLASS + 1 + _messages.index(message)
    x, grid = cupy.ascontiguousarray(x), min(blocks_for(x.size, 256), _MAX_BLOCKS)
    _CHECK_RANGE[x.dtype](grid, 256, x, x.size, float(low), float(high), what, report())


def check_items(shape: tuple, index: Any) -> None:
    """Look on the device at the integer arrays of an index of an array of this shape."""
    items = index if type(index) is tuple else (index,)
    named = sum([_ndim_of(item) for item in items])
    dim = 0
    for item in items:
        if item is Ellipsis:
            dim += len(shape) - named
        elif type(item) is cupy.ndarray and item.dtype.kind in "iu":
            check_index(item, -shape[dim], shape[dim])
            dim += 1
        else:
            dim += _ndim_of(item)


def _ndim_of(item: Any) -> int:
    """How many dimensions an item of an index looks at."""
    if type(item) is cupy.ndarray and item.dtype.kind == "b":
        return item.ndim
    return 0 if item is None or item is Ellipsis else 1

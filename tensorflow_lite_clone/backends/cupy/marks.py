"""Points in a device's queue of work, to measure device time between them."""

from __future__ import annotations

from typing import Any

import cupy
from cupy.cuda import get_current_stream
from cupy.cuda.runtime import eventRecord as record
from cupy.cuda.runtime import getDevice as get_device

from tensorflow_lite_clone.dispatch import capture


class Marks:
    """The marks of one device: events that are used again once they were read.

    Nothing waits when a mark is made; `settle` waits once, before marks are read.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self._free: list[Any] = []

    def mark(self) -> Any:
        """A mark after what is queued on the current stream; None while that is captured."""
        if capture.state.graph is not None:
            return None
        if get_device() != self.index:
            with cupy.cuda.Device(self.index):
                return self.mark()
        try:
            event = self._free.pop()
        except IndexError:
            event = cupy.cuda.Event()
        record(event.ptr, get_current_stream().ptr)
        return event

    def is_current(self) -> bool:
        """Whether the device is CuPy's current one in this thread."""
        return bool(get_device() == self.index)

    def settle(self) -> None:
        """Wait until every mark that was made is reached."""
        cupy.cuda.Device(self.index).synchronize()

    def microseconds(self, first: Any, last: Any) -> float:
        """The time from one mark to another, both of them reached."""
        return 1e3 * float(cupy.cuda.get_elapsed_time(first, last))

    def recycle(self, marks: list[Any]) -> None:
        """Take back marks that nobody reads any more."""
        self._free += marks

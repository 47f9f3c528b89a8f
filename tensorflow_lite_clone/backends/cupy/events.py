"""Points in a device's queue of work, to measure device time between them."""

from __future__ import annotations

from typing import Any

import cupy
from cupy.cuda import get_current_stream
from cupy.cuda.runtime import eventRecord as event_record
from cupy.cuda.runtime import getDevice as get_device

from tensorflow_lite_clone.dispatch import capture


class EventPool:
    """The events of one device, which are used again once they were read.

    Nothing waits when one is recorded; `synchronize` waits once, before they are read.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self._free: list[Any] = []

    def record(self) -> Any:
        """An event after what is queued on the current stream; None while that is captured."""
        if capture.state.graph is not None:
            return None
        if get_device() != self.index:
            with cupy.cuda.Device(self.index):
                return self.record()
        try:
            event = self._free.pop()
        except IndexError:
            event = cupy.cuda.Event()
        event_record(event.ptr, get_current_stream().ptr)
        return event

    def is_current(self) -> bool:
        """Whether the device is CuPy's current one in this thread."""
        return bool(get_device() == self.index)

    def synchronize(self) -> None:
        """Wait until every event that was recorded is reached."""
        cupy.cuda.Device(self.index).synchronize()

    def microseconds(self, first: Any, last: Any) -> float:
        """The time from one event to another, both of them reached."""
        return 1e3 * float(cupy.cuda.get_elapsed_time(first, last))

    def recycle(self, events: list[Any]) -> None:
        """Take back events that nobody reads any more."""
        self._free += events

"""The CPU with the words of a device's module, as ``torch.cpu``: work is done when it is asked for.

Streams and events are objects that do nothing, so that code for any device runs.
"""

from __future__ import annotations

from typing import Any


class Stream:
    """A queue that is always empty."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Nothing."""

    def record_event(self) -> None:
        """Nothing."""

    def wait_event(self, event: Any) -> None:
        """Nothing."""


class Event:
    """A point in work that is already done."""

    def query(self) -> bool:
        """True."""
        return True

    def record(self, stream: Any = None) -> None:
        """Nothing."""

    def synchronize(self) -> None:
        """Nothing."""

    def wait(self, stream: Any = None) -> None:
        """Nothing."""


class _Current:
    stream = Stream()


class StreamContext:
    """Context in which a stream is the current one; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        self._previous = _Current.stream
        _Current.stream = self.stream or self._previous

    def __exit__(self, *exception: object) -> None:
        _Current.stream = self._previous


def stream(stream: Stream | None) -> StreamContext:
    """A context in which `stream` is the current one."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The current stream."""
    return _Current.stream


def current_device() -> str:
    """``"cpu"``."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing: there is one."""


def device_count() -> int:
    """1."""
    return 1


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def synchronize(device: Any = None) -> None:
    """Nothing: work is done when it is asked for."""


__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]

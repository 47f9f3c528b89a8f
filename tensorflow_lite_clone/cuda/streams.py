"""Streams, events, and which of them is current."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.cuda._devices import index_of, layer


class Stream:
    """A queue of work on a device, as ``torch.cuda.Stream``; it runs beside other streams."""

    def __init__(self, device: Any = None, priority: int = 0, **handle: Any) -> None:
        self._index = index_of(device)
        #: CuPy's stream
        self.handle = handle.get("handle") or layer("runtime").new_stream(self._index, priority)

    @property
    def device(self) -> Device:
        """The device whose work it queues."""
        return Device("cuda", self._index)

    @property
    def cuda_stream(self) -> int:
        """The runtime's pointer."""
        return self.handle.ptr

    def synchronize(self) -> None:
        """Wait for all work queued so far."""
        with self._here():
            layer("runtime").wait(self.handle)

    def query(self) -> bool:
        """Whether all work queued so far is done."""
        with self._here():
            return self.handle.done

    def _here(self) -> Any:
        # The default streams of all devices have one pointer: that of the current device is meant.
        return nullcontext() if self.cuda_stream > 2 else layer("runtime").on(self._index)

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one if none is given, after the work queued so far."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let work queued from now on wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let work queued from now on wait for what is queued in another stream."""
        self.wait_event(stream.record_event())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.cuda_stream, self._index) == (other.cuda_stream, other._index)

    def __hash__(self) -> int:
        return hash((self.cuda_stream, self._index))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"

    def __enter__(self) -> Stream:
        self._context = stream(self)
        self._context.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._context.__exit__(*exception)


class ExternalStream(Stream):
    """A stream of another library, by the runtime's pointer; that library keeps it alive."""

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        index = index_of(device)
        super().__init__(index, handle=layer("runtime").external_stream(stream_ptr, index))


class Event:
    """A point in a stream's work, to wait for or to measure between, as ``torch.cuda.Event``."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self._options = blocking, enable_timing, interprocess
        self._handle: Any = None  # made on the device where it is first recorded

    def record(self, stream: Stream | None = None) -> None:
        """Record the event after what is queued in the stream (by default the current one)."""
        stream = current_stream() if stream is None else stream
        if self._handle is None:
            self._handle = layer("runtime").new_event(stream._index, *self._options)
        with stream._here():
            layer("runtime").record(self._handle, stream.handle)

    def wait(self, stream: Stream | None = None) -> None:
        """Let the stream's later work wait for the event; nothing if it was never recorded."""
        if self._handle is not None:
            stream = current_stream() if stream is None else stream
            with stream._here():
                stream.handle.wait_event(self._handle)

    def query(self) -> bool:
        """Whether the event has happened; True when it was never recorded."""
        return self._handle is None or self._handle.done

    def synchronize(self) -> None:
        """Wait until the event has happened."""
        if self._handle is not None:
            layer("runtime").wait(self._handle)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another; both need ``enable_timing=True``."""
        if not (self._options[1] and end_event._options[1]):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._handle is None or end_event._handle is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return layer("runtime").elapsed_time(self._handle, end_event._handle)

    def __repr__(self) -> str:
        return "<torch.cuda.Event uninitialized>" if self._handle is None else "<torch.cuda.Event>"


def current_stream(device: Any = None) -> Stream:
    """The stream that work on a device goes to."""
    index = index_of(device)
    return Stream(index, handle=layer("runtime").current_stream(index))


def default_stream(device: Any = None) -> Stream:
    """The stream that work goes to unless another was chosen."""
    return Stream(index_of(device), handle=layer("runtime").default_stream())


def set_stream(stream: Stream) -> None:
    """Let work of its device, which becomes the current one, go to a stream from now on."""
    if stream is not None:
        layer("runtime").use_stream(stream.handle, stream._index)


class stream:
    """Context in which work goes to a stream, whose device is current; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            runtime = layer("runtime")
            self._device = runtime.current_device()
            runtime.enter_stream(self.stream.handle, self.stream._index)

    def __exit__(self, *exception: object) -> None:
        if self.stream is not None:
            runtime = layer("runtime")
            try:
                runtime.leave_stream(self.stream.handle, self.stream._index, *exception)
            finally:
                runtime.set_device(self._device)


StreamContext = stream

"""Objects between two processes, large arrays through shared memory instead of the pipe.

Pickle's protocol 5 hands out the contents of arrays as buffers beside the pickled bytes. A large
message's buffers are written to anonymous memory (`memfd_create`, Linux), whose descriptor travels
over the socket; the receiver maps it, so the arrays it gets are that memory. It has no name and
belongs to whoever maps it: nothing can leak, however a process ends. Elsewhere, and for small
messages, the buffers follow through the pipe.
"""

from __future__ import annotations

import mmap
import os
import pickle
import socket
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

# Mapping memory costs some 50 us in all; copying less than this through the pipe is as fast.
SHARED_BYTES = 1 << 17
ALIGNMENT = 64
HAS_SHARED_MEMORY = hasattr(os, "memfd_create") and hasattr(socket, "send_fds")


class Parcel(NamedTuple):
    """An object ready to be sent: its pickle, and its buffers (in memory of `descriptor`)."""

    body: bytes
    sizes: list[int]
    buffers: bytes
    descriptor: int | None


def padded(size: int) -> int:
    """`size` rounded up to ALIGNMENT."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def pack(value: Any) -> Parcel:
    """Copies an object into a parcel: later changes to the object do not matter."""
    found: list[pickle.PickleBuffer] = []
    body = pickle.dumps(value, protocol=5, buffer_callback=found.append)
    views = [buffer.raw() for buffer in found]
    sizes = [view.nbytes for view in views]
    total = sum(map(padded, sizes))
    if not HAS_SHARED_MEMORY or total < SHARED_BYTES:
        parts = [bytes(view).ljust(padded(view.nbytes), b"\0") for view in views]
        return Parcel(body, sizes, b"".join(parts), None)
    descriptor = os.memfd_create("batch", os.MFD_CLOEXEC)
    try:
        os.ftruncate(descriptor, total)
        with mmap.mmap(descriptor, total) as memory:
            start = 0
            for view in views:
                memory[start : start + view.nbytes] = view
                start += padded(view.nbytes)
    except BaseException:
        os.close(descriptor)
        raise
    return Parcel(body, sizes, b"", descriptor)


def unpack(body: bytes, sizes: list[int], memory: Any) -> Any:
    """The object of a parcel; its arrays are views of `memory`."""
    whole = memoryview(memory)
    views = []
    start = 0
    for size in sizes:
        views.append(whole[start : start + size])
        start += padded(size)
    return pickle.loads(body, buffers=views)


class Channel:
    """One end of a two-way connection between a loader and a worker."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.socket: Any = None
        if HAS_SHARED_MEMORY:
            self.socket = socket.socket(fileno=os.dup(connection.fileno()))
            # A default timeout set by the program would make the shared descriptor non-blocking.
            self.socket.setblocking(True)

    def send(self, value: Any) -> None:
        """Sends an object; raises OSError when the other end is closed."""
        self.deliver(pack(value))

    def deliver(self, parcel: Parcel) -> None:
        """Sends a packed object; raises OSError when the other end is closed."""
        try:
            self.connection.send((parcel.body, parcel.sizes, parcel.descriptor is not None))
            if parcel.descriptor is not None:
                socket.send_fds(self.socket, [b"."], [parcel.descriptor])
            elif parcel.sizes:
                self.connection.send_bytes(parcel.buffers)
        finally:
            if parcel.descriptor is not None:
                os.close(parcel.descriptor)

    def receive(self) -> Any:
        """Waits for an object; raises EOFError or OSError when the other end is closed."""
        return unpack(*self.take())

    def take(self) -> tuple[bytes, list[int], Any]:
        """Waits for the parts of an object: what `unpack` takes."""
        body, sizes, shared = self.connection.recv()
        memory: Any = b""
        if shared:
            _, descriptors, _, _ = socket.recv_fds(self.socket, 1, 1)
            if not descriptors:
                raise EOFError
            try:
                memory = mmap.mmap(descriptors[0], 0)
            finally:
                os.close(descriptors[0])
        elif sizes:
            # Arrays made of it can be written to, unlike those made of bytes.
            memory = bytearray(self.connection.recv_bytes())
        return body, sizes, memory

    def close(self) -> None:
        """Closes this end; the other end sees the end of the stream."""
        self.connection.close()
        if self.socket is not None:
            self.socket.close()

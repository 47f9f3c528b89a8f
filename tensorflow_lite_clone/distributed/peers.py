"""Connections between all processes of a group within one host, over Unix sockets."""

from __future__ import annotations

import selectors
import shutil
import socket
import struct
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from tensorflow_lite_clone.distributed.communicator import Communicator
from tensorflow_lite_clone.distributed.store import Store

# A message: its kind, two numbers, the length of what follows, and whether a file comes with it.
_HEAD = struct.Struct("<cqqI?")


class Peers:
    """The connections to all other ranks, and what has come from them.

    A thread reads them all. Who waits for a message names its kind and numbers.
    """

    def __init__(self, sockets: dict[int, socket.socket], ranks: Sequence[int]) -> None:
        self._sockets = sockets
        self._ranks = ranks
        self._inboxes: dict[int, dict[tuple, tuple[bytes, int | None]]] = defaultdict(dict)
        self._lost: set[int] = set()
        self._changed = threading.Condition()
        self._sending = {peer: threading.Lock() for peer in sockets}
        self._awake, self._wake = socket.socketpair()
        threading.Thread(target=self._read, name="tlc-peers", daemon=True).start()

    def send(
        self, peer: int, kind: bytes, a: int, b: int, text: bytes = b"", file: int = -1
    ) -> None:
        """Send a message; what a rank that has ended would have got is lost."""
        data = _HEAD.pack(kind, a, b, len(text), file >= 0) + text
        try:
            with self._sending[peer]:
                if file >= 0:
                    sent = socket.send_fds(self._sockets[peer], [data], [file])
                    data = data[sent:]
                self._sockets[peer].sendall(data)
        except OSError:
            self._lose(peer)

    def receive(
        self, peer: int, key: tuple, deadline: float, what: str
    ) -> tuple[bytes, int | None]:
        """Wait for a message. Raises RuntimeError when the rank has ended or time is up."""
        return self.receive_all([peer], key, deadline, what)[peer]

    def receive_all(
        self, peers: Sequence[int], key: tuple, deadline: float, what: str
    ) -> dict[int, tuple[bytes, int | None]]:
        """Wait for a message of each of some ranks; the error names all that are missing."""
        with self._changed:
            while True:
                missing = [peer for peer in peers if key not in self._inboxes[peer]]
                if not missing:
                    return {peer: self._inboxes[peer].pop(key) for peer in peers}
                if lost := [peer for peer in missing if peer in self._lost]:
                    raise RuntimeError(
                        f"{what}: connection closed by peer: {self._names(lost)} has ended"
                    )
                left = deadline - time.monotonic()
                if left <= 0:
                    raise RuntimeError(
                        f"{what} timed out: nothing came from {self._names(missing)}"
                    )
                self._changed.wait(left)

    def arrived(self, peer: int, key: tuple) -> bool:
        """Whether a message is there, or never will be."""
        with self._changed:
            return key in self._inboxes[peer] or peer in self._lost

    def first(self, keys: dict[int, tuple], deadline: float, what: str) -> int:
        """Wait until one of several ranks has sent the message named for it; which one."""
        with self._changed:
            while True:
                for peer, key in keys.items():
                    if key in self._inboxes[peer]:
                        return peer
                left = deadline - time.monotonic()
                if left <= 0 or len(self._lost) == len(keys):
                    raise RuntimeError(f"{what} timed out: no rank has sent")
                self._changed.wait(left)

    def close(self) -> None:
        """End the thread and the connections."""
        self._wake.close()

    def _names(self, peers: Sequence[int]) -> str:
        numbers = [str(self._ranks[peer]) for peer in peers]
        return f"rank {numbers[0]}" if len(numbers) == 1 else f"ranks {', '.join(numbers)}"

    def _lose(self, peer: int) -> None:
        with self._changed:
            self._lost.add(peer)
            self._changed.notify_all()

    def _read(self) -> None:
        chooser = selectors.DefaultSelector()
        chooser.register(self._awake, selectors.EVENT_READ, None)
        for peer, connection in self._sockets.items():
            chooser.register(connection, selectors.EVENT_READ, peer)
        while True:
            for chosen, _ in chooser.select():
                peer = chosen.data
                if peer is None:
                    chooser.close()
                    for connection in self._sockets.values():
                        connection.close()
                    self._awake.close()
                    return
                try:
                    key, message = _read_message(self._sockets[peer])
                except OSError:
                    chooser.unregister(self._sockets[peer])
                    self._lose(peer)
                    continue
                with self._changed:
                    self._inboxes[peer][key] = message
                    self._changed.notify_all()


def _read_message(connection: socket.socket) -> tuple[tuple, tuple[bytes, int | None]]:
    """One message: its key, and its text and file. ConnectionError at the end."""
    files: list[int] = []

    def exactly(count: int) -> bytes:
        data = b""
        while len(data) < count:
            chunk, found, _, _ = socket.recv_fds(connection, count - len(data), 1)
            files.extend(found)
            if not chunk:
                raise ConnectionError
            data += chunk
        return data

    kind, a, b, length, has_file = _HEAD.unpack(exactly(_HEAD.size))
    text = exactly(length)
    return (kind, a, b), (text, files[0] if has_file else None)


def _machine() -> str:
    """What is the same for the processes of one running system, and for no others."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()} {boot.read_text().strip() if boot.exists() else ''}"


def connect(own: Communicator, store: Store, name: str) -> dict[int, socket.socket]:
    """Connect to all other ranks: each listens to those after it."""
    folder = tempfile.mkdtemp(prefix="tlc-")
    deadline = time.monotonic() + own.timeout
    found: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as listener:
        address = str(Path(folder) / "s")
        listener.bind(address)
        listener.listen(own.size)
        try:
            store.set(f"{name}/{own.rank}", f"{_machine()}\n{address}")
            for peer in range(own.rank):
                machine, peer_address = store.get(f"{name}/{peer}").decode().split("\n")
                if machine != _machine():
                    raise RuntimeError(
                        f"rank {own.ranks[peer]} runs on {machine.split()[0]}, rank "
                        f"{own.ranks[own.rank]} on {socket.gethostname()}: processes of several "
                        "machines need MPI (start them by mpirun) or NCCL"
                    )
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(peer_address)
                connection.sendall(struct.pack("<q", own.rank))
                found[peer] = connection
            while len(found) < own.size - 1:
                listener.settimeout(max(deadline - time.monotonic(), 0.001))
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    missing = [own.ranks[r] for r in range(own.size) if r not in (*found, own.rank)]
                    raise RuntimeError(f"ranks {missing} did not come to group {name}") from None
                connection.settimeout(None)
                (peer,) = struct.unpack("<q", connection.recv(8, socket.MSG_WAITALL))
                found[peer] = connection
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return found

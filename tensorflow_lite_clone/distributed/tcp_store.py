"""`TCPStore`: a store that one process serves to others over sockets.

What is sent is a message: a list of byte strings, each after its length, after the length of all.
The server holds a `HashStore`, and a thread for every connection, in which a request waits for the
keys that it asks for. A connection begins with `HELLO`; one that breaks a rule is closed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tensorflow_lite_clone.distributed.errors import DistNetworkError, DistStoreError
from tensorflow_lite_clone.distributed.store import HashStore, Store, encoded, text

HELLO = b"tlc store 1\n"
#: A message may have so many bytes, and so many parts.
LARGEST, MOST = 1 << 28, 1 << 16

_LENGTH = struct.Struct("<I")
_MILLISECOND = timedelta(milliseconds=1)
#: What a server that is alive may take to answer, beyond what it was asked to wait.
_GRACE = 30.0

_default_timeout = timedelta(seconds=300)


class TCPStore(Store):
    """The store of the programs that meet at a port.

    Threads may share it: each request has a connection to itself.

    Args:
        host_name: Where the server is. The master listens at this address alone: at
            ``127.0.0.1`` for processes of this machine, at ``0.0.0.0`` for everybody.
        port: Its port; with 0 the master takes a free one, which `port` tells.
        world_size: How many processes there are, the master among them; None where not known.
        is_master: Whether this process is the server.
        timeout: How long to wait for the server, for the other processes, and for a key.
        wait_for_workers: Whether the master waits for `world_size` processes to connect.
        multi_tenant: Whether a server that this process has at the port is used again.
        master_listen_fd: A socket that listens already, for the master.
        use_libuv: Ignored.

    Raises:
        DistNetworkError: The master cannot listen, or there was no connection in time.
        DistStoreError: The other processes did not come in time.
    """

    def __init__(
        self,
        host_name: str,
        port: int = 29500,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = _default_timeout,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__(timeout)
        if not 0 <= port < 1 << 16:
            raise TypeError(f"TCPStore: a port is a number from 0 to 65535, not {port}")
        self.host, self.port = host_name, port
        self._server: _Server | None = None
        if is_master:
            self._server = _server(host_name, port, multi_tenant, master_listen_fd)
            self.port = self._server.port
        self._idle: list[socket.socket] = []
        self._pid = os.getpid()
        weakref.finalize(self, _close, self._idle)
        self._idle.append(self._connect(timeout))
        self.add("init/", 1)
        if self._server is not None and wait_for_workers and world_size is not None:
            self._server.expect(world_size, timeout)

    def __repr__(self) -> str:
        role = "server" if self._server is not None else "client"
        return f"TCPStore({role} of {self.host}:{self.port})"

    def _connect(self, patience: timedelta = timedelta()) -> socket.socket:
        """A new connection; the server may take a while to begin, but then it is there."""
        end, pause = time.monotonic() + patience.total_seconds(), 0.01
        while True:
            left = max(end - time.monotonic(), 1.0)
            try:
                made = socket.create_connection((self.host, self.port), left)
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                made.sendall(HELLO)
                return made
            except OSError as error:
                if time.monotonic() >= end:
                    raise DistNetworkError(
                        f"The client socket has timed out after {patience // _MILLISECOND}ms "
                        f"while trying to connect to ({self.host}, {self.port}): {error}"
                    ) from error
            time.sleep(min(pause, max(end - time.monotonic(), 0)))
            pause = min(2 * pause, 0.5)

    def _connection(self) -> socket.socket:
        """A connection that no thread uses, and no process that this one was forked from."""
        if os.getpid() != self._pid:
            self._pid = os.getpid()
            _close(self._idle)
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _ask(self, *request: bytes, waits: timedelta = timedelta()) -> list[bytes]:
        """The server's answer. `waits` is how long the server may wait before it gives one."""
        message = _message(request)
        connection = self._connection()
        connection.settimeout(waits.total_seconds() + _GRACE)
        try:
            connection.sendall(message)
            answer = _receive(connection)
        except (OSError, ValueError) as error:
            connection.close()
            raise DistNetworkError(
                f"the store at {self.host}:{self.port} does not answer: {error}"
            ) from error
        except BaseException:  # an answer is on its way that nobody will read
            connection.close()
            raise
        self._idle.append(connection)
        if answer[0]:
            raise DistStoreError(answer[0].decode())
        return answer[1:]

    def set(self, key: str, value: str | bytes) -> None:
        self.multi_set([key], [value])

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        if len(keys) != len(values):
            raise DistStoreError(f"multi_set: {len(keys)} keys with {len(values)} values")
        self._ask(b"set", *_encoded(keys), *map(encoded, values))

    def add(self, key: str, amount: int) -> int:
        return int(self._ask(b"add", *_encoded([key]), b"%d" % amount)[0])

    def append(self, key: str, value: str | bytes) -> None:
        self._ask(b"append", *_encoded([key]), encoded(value))

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        return self._ask(b"compare_set", *_encoded([key]), encoded(expected), encoded(desired))[0]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        timeout = self.timeout if timeout is None else timeout
        self._ask(b"wait", b"%d" % (timeout // _MILLISECOND), *_encoded(keys), waits=timeout)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        limit = b"%d" % (self.timeout // _MILLISECOND)
        return self._ask(b"get", limit, *_encoded(keys), waits=self.timeout)

    def check(self, keys: Sequence[str]) -> bool:
        return self._ask(b"check", *_encoded(keys)) == [b"1"]

    def delete_key(self, key: str) -> bool:
        return self._ask(b"delete_key", *_encoded([key])) == [b"1"]

    def list_keys(self) -> list[str]:
        """All keys, but for the one that counts who has connected."""
        return [key.decode() for key in self._ask(b"list_keys") if key != b"init/"]

    def num_keys(self) -> int:
        """How many keys there are, with the one that counts who has connected."""
        return len(self._ask(b"list_keys"))


def _close(connections: list[socket.socket]) -> None:
    while connections:
        connections.pop().close()


class _Server:
    """Serves a `HashStore`, until nobody holds this object."""

    def __init__(self, listener: socket.socket) -> None:
        self.port: int = listener.getsockname()[1]
        self._values = HashStore()
        self._connections: set[socket.socket] = set()
        arguments = listener, self._values, self._connections
        threading.Thread(target=_listen, args=arguments, name="store", daemon=True).start()
        weakref.finalize(self, _stop, listener, self._connections, os.getpid())

    def expect(self, world_size: int, timeout: timedelta) -> None:
        """Wait for all processes. Raises DistStoreError if some do not come."""

        def joined(values: dict[str, bytes]) -> int:
            return int(values.get("init/", b"0"))

        if not self._values.wait_until(lambda values: joined(values) >= world_size, timeout):
            raise DistStoreError(
                f"Timed out after {timeout.total_seconds():g} seconds waiting for clients. "
                f"{self._values.add('init/', 0)}/{world_size} clients joined."
            )


#: The servers of this process, for the stores that share one.
_servers: weakref.WeakValueDictionary[tuple[str, int], _Server] = weakref.WeakValueDictionary()


def _server(host: str, port: int, shared: bool, descriptor: int | None) -> _Server:
    server = _servers.get((host, port)) if shared else None
    if server is None:
        if descriptor is not None:
            listener = socket.socket(fileno=descriptor)
        else:
            listener = _bound(host, port)
        server = _Server(listener)
        _servers[host, server.port] = server
    return server


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens at an address of this machine, and at no other."""
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for family, kind, _, _, address in places[:-1]:
            try:
                return _listener(family, kind, address)
            except OSError as error:  # a name may have an address that this machine lacks
                if error.errno == errno.EADDRINUSE:
                    raise
        family, kind, _, _, address = places[-1]
        return _listener(family, kind, address)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "no address")
        raise DistNetworkError(
            f"The server socket has failed to listen on {host}. port: {port}, "
            f"code: -{abs(error.errno or 0)}, name: {name}, message: "
            f"{(error.strerror or str(error)).lower()}"
        ) from error


def _listener(family: int, kind: int, address: Any) -> socket.socket:
    listener = socket.socket(family, kind)
    try:
        # A port whose last connections are fading away is free.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except BaseException:
        listener.close()
        raise
    return listener


def _listen(listener: socket.socket, values: HashStore, connections: set[socket.socket]) -> None:
    while listener.fileno() >= 0:  # the end of the server closes it
        try:
            connection, _ = listener.accept()
        except OSError:  # that end, or a client that left already, or too many open files
            time.sleep(0.01)
            continue
        connections.add(connection)
        arguments = connection, values, connections
        threading.Thread(target=_serve, args=arguments, name="store", daemon=True).start()


def _stop(listener: socket.socket, connections: set[socket.socket], pid: int) -> None:
    for one in (listener, *connections):
        # A process that was forked has copies of the sockets, and must not end the original ones.
        if os.getpid() == pid:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it
        one.close()


def _serve(connection: socket.socket, values: HashStore, connections: set[socket.socket]) -> None:
    """Answer the requests of one client, for as long as it sends what it should."""
    try:
        connection.settimeout(_GRACE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if _exactly(connection, len(HELLO)) == HELLO:
            connection.settimeout(None)
            while True:
                connection.sendall(_message(_answer(values, _receive(connection))))
    except (OSError, ValueError, LookupError, TypeError):
        pass  # a client that left, or a stranger
    finally:
        connections.discard(connection)
        connection.close()


def _answer(values: HashStore, request: list[bytes]) -> list[bytes]:
    name, *arguments = request
    try:
        return [b"", *_OPERATIONS[name](values, *arguments)]
    except (DistStoreError, ValueError) as error:
        return [str(error).encode()]


def _set(values: HashStore, *given: bytes) -> list[bytes]:
    half = len(given) // 2
    values.multi_set(_decoded(given[:half]), given[half:])
    return []


def _get(values: HashStore, limit: bytes, *keys: bytes) -> list[bytes]:
    return values.values_of(_decoded(keys), int(limit) * _MILLISECOND)


def _wait(values: HashStore, limit: bytes, *keys: bytes) -> list[bytes]:
    _get(values, limit, *keys)
    return []


def _append(values: HashStore, key: bytes, value: bytes) -> list[bytes]:
    values.append(key.decode(), value)
    return []


_OPERATIONS: dict[bytes, Callable[..., list[bytes]]] = {
    b"set": _set,
    b"get": _get,
    b"wait": _wait,
    b"append": _append,
    b"add": lambda values, key, amount: [b"%d" % values.add(key.decode(), int(amount))],
    b"compare_set": lambda values, key, *two: [values.compare_set(key.decode(), *two)],
    b"check": lambda values, *keys: [b"%d" % values.check(_decoded(keys))],
    b"delete_key": lambda values, key: [b"%d" % values.delete_key(key.decode())],
    b"list_keys": lambda values: _encoded(values.list_keys()),
}


def _encoded(keys: Sequence[str]) -> list[bytes]:
    return [text(key).encode() for key in keys]


def _decoded(keys: Sequence[bytes]) -> list[str]:
    return [key.decode() for key in keys]


def _message(parts: Sequence[bytes]) -> bytes:
    body = b"".join([_LENGTH.pack(len(part)) + part for part in parts])
    if len(body) > LARGEST or len(parts) > MOST:
        raise ValueError(f"{len(parts)} parts of {len(body)} bytes are too much for a store")
    return _LENGTH.pack(len(body)) + body


def _receive(connection: socket.socket) -> list[bytes]:
    """A message. Raises ValueError for what is none, OSError at the end of the connection."""
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    if not 0 < length <= LARGEST:
        raise ValueError(f"a message of {length} bytes")
    body = memoryview(_exactly(connection, length))
    parts: list[bytes] = []
    while body:
        if len(body) < _LENGTH.size or len(parts) == MOST:
            raise ValueError("a message that is cut off, or has too many parts")
        (length,) = _LENGTH.unpack_from(body)
        body = body[_LENGTH.size :]
        if length > len(body):
            raise ValueError(f"a part of {length} bytes where {len(body)} are left")
        parts.append(bytes(body[:length]))
        body = body[length:]
    return parts


def _exactly(connection: socket.socket, length: int) -> bytes:
    """So many bytes; memory is taken as they come, not as they are announced."""
    chunks = []
    while length:
        chunk = connection.recv(min(length, 1 << 20))
        if not chunk:
            raise ConnectionResetError("the connection was closed")
        chunks.append(chunk)
        length -= len(chunk)
    return b"".join(chunks)

"""Stores: keys and values that processes share, in memory or in a file.

`TCPStore`, over sockets, is in `tcp_store`.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta

from tensorflow_lite_clone.distributed.constants import default_pg_timeout
from tensorflow_lite_clone.distributed.errors import DistStoreError

_MILLISECOND = timedelta(milliseconds=1)


class Store:
    """Keys that are text with values that are bytes, shared by processes.

    `get` and `wait` block until other processes have set what they ask for, at most for `timeout`,
    and then raise DistStoreError, which names the keys that are missing.
    """

    def __init__(self, timeout: timedelta = default_pg_timeout) -> None:
        self._timeout = timeout

    @property
    def timeout(self) -> timedelta:
        """How long to wait for a key."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long to wait for a key. Raises TypeError for what is no timedelta."""
        if not isinstance(timeout, timedelta):
            raise TypeError(f"set_timeout: expected a timedelta, not {timeout!r}")
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Set a value."""
        raise NotImplementedError(f"{type(self).__name__}.set")

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which is 0 at first; the sum."""
        raise NotImplementedError(f"{type(self).__name__}.add")

    def append(self, key: str, value: str | bytes) -> None:
        """Add bytes at the end of a value, which is empty at first."""
        raise NotImplementedError(f"{type(self).__name__}.append")

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        """Set a value if it is `expected`, or if it is missing and `expected` is empty.

        Returns:
            The value from then on; `expected` where there is none.
        """
        raise NotImplementedError(f"{type(self).__name__}.compare_set")

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys have values. Raises DistStoreError after `timeout`."""
        raise NotImplementedError(f"{type(self).__name__}.wait")

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys have values."""
        raise NotImplementedError(f"{type(self).__name__}.check")

    def delete_key(self, key: str) -> bool:
        """Forget a key; whether it was there."""
        raise NotImplementedError(f"{type(self).__name__}.delete_key")

    def list_keys(self) -> list[str]:
        """All keys."""
        raise NotImplementedError(f"{type(self).__name__}.list_keys")

    def num_keys(self) -> int:
        """How many keys there are."""
        return len(self.list_keys())

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys, as `get`."""
        raise NotImplementedError(f"{type(self).__name__}.multi_get")

    def get(self, key: str) -> bytes:
        """A value, once it is there. Raises DistStoreError after `timeout`."""
        return self.multi_get([key])[0]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several values. Raises DistStoreError where keys and values are not as many."""
        if len(keys) != len(values):
            raise DistStoreError(f"multi_set: {len(keys)} keys with {len(values)} values")
        for key, value in zip(keys, values):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Whether there are `append`, `multi_get` and `multi_set`: in all stores here."""
        return True

    def clone(self) -> Store:
        """A store over the same keys, for another thread: this one, which threads may share."""
        return self


class _Locked(Store):
    """A store that one process or thread at a time reads and changes as a mapping."""

    def _locked(self) -> AbstractContextManager[MutableMapping[str, bytes]]:
        """The mapping, for as long as nobody else has it."""
        raise NotImplementedError

    def set(self, key: str, value: str | bytes) -> None:
        with self._locked() as values:
            values[text(key)] = encoded(value)

    def add(self, key: str, amount: int) -> int:
        with self._locked() as values:
            total = int(values.get(text(key), b"0")) + amount
            values[key] = str(total).encode()
            return total

    def append(self, key: str, value: str | bytes) -> None:
        with self._locked() as values:
            values[text(key)] = values.get(key, b"") + encoded(value)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        with self._locked() as values:
            have, expected, desired = values.get(text(key)), encoded(expected), encoded(desired)
            if have == expected or (have is None and not expected):
                values[key] = desired
            return values.get(key, expected)

    def check(self, keys: Sequence[str]) -> bool:
        with self._locked() as values:
            return all(text(key) in values for key in keys)

    def delete_key(self, key: str) -> bool:
        with self._locked() as values:
            return values.pop(text(key), None) is not None

    def list_keys(self) -> list[str]:
        with self._locked() as values:
            return list(values)


class HashStore(_Locked):
    """A store within one process, for its threads."""

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[str, bytes] = {}
        self._changed = threading.Condition()

    @contextmanager
    def _locked(self) -> Iterator[dict[str, bytes]]:
        with self._changed:
            yield self._values
            self._changed.notify_all()

    def wait_until(self, predicate: Callable[[dict[str, bytes]], bool], limit: timedelta) -> bool:
        """Wait until the values are as `predicate` wants them; whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: predicate(self._values), limit.total_seconds())

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        self.values_of(keys, self.timeout if timeout is None else timeout)

    def values_of(self, keys: Sequence[str], timeout: timedelta) -> list[bytes]:
        """`multi_get` with a timeout of its own."""
        missing = [text(key) for key in keys]

        def are_there() -> bool:
            while missing and missing[-1] in self._values:  # it looks at each key once, mostly
                missing.pop()
            return not missing and self.check(keys)

        with self._changed:
            if not self._changed.wait_for(are_there, timeout.total_seconds()):
                raise late([key for key in keys if key not in self._values], timeout)
            return [self._values[key] for key in keys]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self.values_of(keys, self.timeout)

    def check(self, keys: Sequence[str]) -> bool:  # waiters do, who would wake each other
        return all(text(key) in self._values for key in keys)


class FileStore(_Locked):
    """A store of the processes that share a file, which exists from now on.

    The file is a log of what was set and deleted, which every operation reads on from where it
    stopped, under an exclusive lock (`flock`; a file system over the network must have it). The
    last of `world_size` processes that ends removes the file.

    Args:
        file_name: Where the file is. One that an earlier program left spoils the meeting.
        world_size: How many processes share it; -1 where that is not known.
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path = os.fspath(file_name)
        self._values: dict[str, bytes] = {}
        self._read = 0
        self._lock = threading.Lock()
        with self._locked():
            pass
        if world_size > 0:
            weakref.finalize(self, _leave, self.path, world_size, os.getpid())

    @contextmanager
    def _locked(self) -> Iterator[_Log]:
        """The locked file, all of which has been read."""
        with self._lock, open(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", 0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            log = _Log(file.fileno(), self._values, self._read)
            try:
                yield log
            finally:
                self._read = log.end

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        self.wait(keys)
        with self._locked():
            return [self._values[key] for key in keys]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        timeout = self.timeout if timeout is None else timeout
        end, pause = time.monotonic() + timeout.total_seconds(), 0.001
        while not self.check(keys):  # a file tells nobody that it grows
            if time.monotonic() > end:
                raise late([key for key in keys if key not in self._values], timeout)
            time.sleep(pause)
            pause = min(2 * pause, 0.05)


class _Log(MutableMapping[str, bytes]):
    """The values to which the records of a locked file lead up; what is changed is written there.

    A record is the lengths of the key and of the value, and these; the value of a deleted key has
    the length `DELETED`.
    """

    HEAD = struct.Struct("<II")
    DELETED = 2**32 - 1

    def __init__(self, file: int, values: dict[str, bytes], start: int) -> None:
        self.file, self._values, self.end = file, values, start
        read = memoryview(self._tail())
        at = 0
        while at + self.HEAD.size <= len(read):
            key_length, value_length = self.HEAD.unpack_from(read, at)
            key_end = at + self.HEAD.size + key_length
            end = key_end if value_length == self.DELETED else key_end + value_length
            if end > len(read):
                break
            key = str(read[at + self.HEAD.size : key_end], "utf-8")
            if value_length == self.DELETED:
                values.pop(key, None)
            else:
                values[key] = bytes(read[key_end:end])
            at = end
        self.end += at
        if at < len(read):  # a process was killed while it wrote: nobody has seen this record
            os.ftruncate(file, self.end)

    def _tail(self) -> bytes:
        size = os.fstat(self.file).st_size
        return os.pread(self.file, max(size - self.end, 0), self.end)

    def __getitem__(self, key: str) -> bytes:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __setitem__(self, key: str, value: bytes) -> None:
        self._values[key] = value
        self._write(key, len(value), value)

    def __delitem__(self, key: str) -> None:
        del self._values[key]
        self._write(key, self.DELETED, b"")

    def _write(self, key: str, length: int, value: bytes) -> None:
        name = key.encode()
        record = self.HEAD.pack(len(name), length) + name + value
        os.pwrite(self.file, record, self.end)
        self.end += len(record)


def _leave(path: str, world_size: int, pid: int) -> None:
    """Remove the file of a store if all others have left; a forked process is no user of it."""
    if os.getpid() != pid or not os.path.exists(path):
        return
    if FileStore(path).add("/left", 1) >= world_size:
        os.unlink(path)


class PrefixStore(Store):
    """A store whose keys are those of another that begin with ``prefix/``."""

    def __init__(self, prefix: str, store: Store) -> None:
        self.prefix = prefix
        self.underlying_store = store

    @property
    def timeout(self) -> timedelta:
        return self.underlying_store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self.underlying_store.set_timeout(timeout)

    def _full(self, key: str) -> str:
        return f"{self.prefix}/{text(key)}"

    def set(self, key: str, value: str | bytes) -> None:
        self.underlying_store.set(self._full(key), value)

    def add(self, key: str, amount: int) -> int:
        return self.underlying_store.add(self._full(key), amount)

    def append(self, key: str, value: str | bytes) -> None:
        self.underlying_store.append(self._full(key), value)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        return self.underlying_store.compare_set(self._full(key), expected, desired)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        limit = self.timeout if timeout is None else timeout
        self.underlying_store.wait([self._full(key) for key in keys], limit)

    def check(self, keys: Sequence[str]) -> bool:
        return self.underlying_store.check([self._full(key) for key in keys])

    def delete_key(self, key: str) -> bool:
        return self.underlying_store.delete_key(self._full(key))

    def list_keys(self) -> list[str]:
        start = f"{self.prefix}/"
        found = [key for key in self.underlying_store.list_keys() if key.startswith(start)]
        return [key.removeprefix(start) for key in found]

    def num_keys(self) -> int:
        """How many keys the store below has, as in PyTorch: those without the prefix, too."""
        return self.underlying_store.num_keys()

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self.underlying_store.multi_get([self._full(key) for key in keys])

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        self.underlying_store.multi_set([self._full(key) for key in keys], values)


def text(key: str) -> str:
    """A key. Raises TypeError for what is no text."""
    if not isinstance(key, str):
        raise TypeError(f"the key of a store is text, not {key!r}")
    return key


def encoded(value: str | bytes) -> bytes:
    """A value as bytes. Raises TypeError for what is neither text nor bytes."""
    if not isinstance(value, str | bytes | bytearray):
        raise TypeError(f"the value in a store is text or bytes, not {value!r}")
    return value.encode() if isinstance(value, str) else bytes(value)


def late(keys: Sequence[str], timeout: timedelta) -> DistStoreError:
    """What a store raises whose keys did not come in time."""
    return DistStoreError(
        f"wait timeout after {timeout // _MILLISECOND}ms, keys: {', '.join(keys)}"
    )

"""Stores: keys and values that processes share; in a program of one process, a dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tensorflow_lite_clone.distributed.constants import default_pg_timeout

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]


class Store:
    """Keys that are text with values that are bytes."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self.timeout = default_pg_timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Set a value."""
        self._values[key] = value.encode() if isinstance(value, str) else bytes(value)

    def get(self, key: str) -> bytes:
        """A value. Raises RuntimeError for a key that nobody will set: there is one process."""
        self.wait([key])
        return self._values[key]

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which is 0 at first."""
        total = int(self._values.get(key, b"0")) + amount
        self.set(key, str(total))
        return total

    def append(self, key: str, value: str | bytes) -> None:
        """Add bytes at the end of a value."""
        value = value.encode() if isinstance(value, str) else value
        self.set(key, self._values.get(key, b"") + value)

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        """Set a value if it is `expected`, or if it is missing and `expected` is empty."""
        have = self._values.get(key)
        if have == expected.encode() or (have is None and not expected):
            self.set(key, desired)
        return self._values.get(key, expected.encode())

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys have values. Raises RuntimeError if one has none."""
        for key in keys:
            if key not in self._values:
                raise RuntimeError(f"wait timeout: no process can set the key {key!r}")

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys have values."""
        return all(key in self._values for key in keys)

    def delete_key(self, key: str) -> bool:
        """Forget a key; whether it was there."""
        return self._values.pop(key, None) is not None

    def num_keys(self) -> int:
        """How many keys there are."""
        return len(self._values)

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long to wait for a key."""
        self.timeout = timeout


class HashStore(Store):
    """A store of one process."""


class TCPStore(Store):
    """The store of the programs that meet at a port; of one process, so far."""

    def __init__(
        self,
        host_name: str,
        port: int = 29500,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = default_pg_timeout,
        wait_for_workers: bool = True,
        **options: Any,
    ) -> None:
        super().__init__()
        _expect_one(world_size)
        self.host, self.port, self.timeout = host_name, port, timeout


class FileStore(Store):
    """The store of the programs that know a file; of one process, so far."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        _expect_one(world_size)
        self.path = file_name


class PrefixStore(Store):
    """A store whose keys are another's that begin with ``prefix/``."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self.underlying_store = store
        self._prefix = prefix
        self._values = _Prefixed(store._values, f"{prefix}/")


class _Prefixed(dict):
    """A view of the entries of a dictionary whose keys begin with a prefix."""

    def __init__(self, values: dict[str, bytes], prefix: str) -> None:
        self._all, self._prefix = values, prefix

    def __getitem__(self, key: str) -> bytes:
        return self._all[self._prefix + key]

    def __setitem__(self, key: str, value: bytes) -> None:
        self._all[self._prefix + key] = value

    def __contains__(self, key: object) -> bool:
        return f"{self._prefix}{key}" in self._all

    def __len__(self) -> int:
        return len(self._all)

    def get(self, key: str, default: Any = None) -> Any:
        return self._all.get(self._prefix + key, default)

    def pop(self, key: str, *default: Any) -> Any:
        return self._all.pop(self._prefix + key, *default)


def _expect_one(world_size: int | None) -> None:
    if world_size is not None and world_size > 1:
        raise NotImplementedError(
            f"a store of {world_size} processes (planned: several devices and processes)"
        )

"""Settings of saving and loading: byte order, memory maps, checksums, data left out."""

from __future__ import annotations

import mmap
import threading
from enum import Enum
from typing import Any


class LoadEndianness(Enum):
    """The byte order that is assumed of files that do not tell theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Skipping(threading.local):
    """How many blocks of `skip_data` this thread has open."""

    depth = 0


_skipping = _Skipping()


class _Options:
    endianness: LoadEndianness | None = None
    mmap_flags = getattr(mmap, "MAP_PRIVATE", None)
    checks_crc32 = True

    @property
    def skips_data(self) -> bool:
        """Whether this thread leaves out the tensors' bytes."""
        return _skipping.depth > 0

    @property
    def shares_mapping(self) -> bool:
        """Whether writing into a mapped tensor writes the file."""
        return self.mmap_flags is not None and self.mmap_flags == mmap.MAP_SHARED


options = _Options()


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order assumed of files that do not tell theirs; None: little."""
    return options.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order that is assumed of files that do not tell theirs."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    options.endianness = endianness


def get_crc32_options() -> bool:
    """Whether `load` compares the checksums of records."""
    return options.checks_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Say whether `load` compares the checksums of records; `save` always writes them."""
    options.checks_crc32 = bool(compute_crc32)


def get_default_mmap_options() -> int | None:
    """How ``load(mmap=True)`` maps files: ``mmap.MAP_PRIVATE`` or ``mmap.MAP_SHARED``."""
    return options.mmap_flags


class set_default_mmap_options:  # noqa: N801  (PyTorch's name)
    """Map files with these flags from now on, or, as a context manager, in a block.

    With ``mmap.MAP_SHARED`` writing into a tensor writes the file, with ``mmap.MAP_PRIVATE`` it
    does not.
    """

    def __init__(self, flags: int) -> None:
        self.prev = options.mmap_flags
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE "
                f"or mmap.MAP_SHARED, but got {flags}"
            )
        options.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        options.mmap_flags = self.prev


class skip_data:  # noqa: N801  (PyTorch's name)
    """A block in which `save` leaves out the tensors' bytes and `load` does not read them.

    That is so in the thread that opens it. Files have the room for the bytes; loaded tensors are
    zeros.
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        _skipping.depth += 1

    def __exit__(self, *exception: Any) -> None:
        _skipping.depth -= 1

"""The format before zip archives: pickles one behind the other, then the storages' bytes."""

from __future__ import annotations

import struct
import sys
from typing import Any

import numpy as np

from tensorflow_lite_clone.serialization._archive import end_of, read_into
from tensorflow_lite_clone.serialization._locations import Restorer
from tensorflow_lite_clone.serialization._storages import Loaded, swapped

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
#: What such files say of the machine that wrote them.
SYSTEM = {
    "protocol_version": PROTOCOL_VERSION,
    "little_endian": sys.byteorder == "little",
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}


def load_legacy(file: Any, unpickle: Any, restore: Restorer) -> Any:
    """Read such a file; ``unpickle(file, persistent_load)`` reads the next pickle."""
    magic = unpickle(file, None)
    if type(magic) is not int or magic != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = unpickle(file, None)
    if type(version) is not int or version != PROTOCOL_VERSION:
        raise RuntimeError("Invalid protocol version: it should be 1001")
    system = unpickle(file, None)
    little = system.get("little_endian", True) if isinstance(system, dict) else True
    # The bytes come behind the pickle that refers to them, so tensors are made over memory that
    # is filled afterwards.
    room = _size(file)

    def reserve(key: str, nbytes: int) -> Any:
        nonlocal room
        room -= nbytes
        if room < 0:
            raise RuntimeError("the storages are larger than the file")
        return np.zeros(nbytes, np.uint8)

    loaded = Loaded(reserve, restore, filled=False)
    result = unpickle(file, loaded.persistent_load)
    unpickle.foreign.expect_none(result)
    keys = unpickle(file, None)
    known = type(keys) is list and all([type(key) is str for key in keys])
    if not known or sorted(keys) != sorted(loaded.parts):
        raise RuntimeError("the storages of the file are not those that it refers to")
    for key in keys:
        part = loaded.parts[key]
        header = file.read(8)
        if len(header) < 8:
            raise EOFError("Ran out of input")
        (count,) = struct.unpack("<q" if little else ">q", header)
        nbytes = part.data.size
        if count * part.kind.itemsize != nbytes:
            raise RuntimeError(
                f"storage has wrong byte size: expected {nbytes} got {count * part.kind.itemsize}"
            )
        read_into(file, part.data)
        if little != (sys.byteorder == "little") and part.kind.dtype is not None:
            part.data[:] = swapped(part.data, part.kind.dtype)
        if part.array is not part.data:
            part.backend.write(part.array, part.backend.from_host(part.data))
    for settle in loaded.late:
        settle()
    return result


def _size(file: Any) -> int:
    position = file.tell()
    end = end_of(file)
    file.seek(position)
    return end

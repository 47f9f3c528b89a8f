"""Pickles and archives put together by hand."""

from __future__ import annotations

import io
import struct

from tensorflow_lite_clone.serialization._archive import ArchiveWriter


def archive(pickled: bytes, **storages: bytes) -> io.BytesIO:
    """An archive around a pickle; storages by key, with an underscore before it."""
    stream = io.BytesIO()
    with ArchiveWriter(stream, "archive") as writer:
        writer.write("data.pkl", pickled)
        writer.write("byteorder", b"little")
        for key, data in storages.items():
            writer.write(f"data/{key[1:]}", data)
    stream.seek(0)
    return stream


def text(value: str) -> bytes:
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def integer(value: int) -> bytes:
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


STORAGE = b"ctorch._utils\n_rebuild_tensor_v2\n((%sctorch\nFloatStorage\n%s%sK\x04tQ"


def tensor(offset: int, size: tuple, stride: tuple, key: str = "0") -> bytes:
    """A pickle of a tensor over a storage of four floats."""
    geometry = b"".join(
        [b"(" + b"".join([integer(n) for n in numbers]) + b"t" for numbers in (size, stride)]
    )
    head = STORAGE % (text("storage"), text(key), text("cpu"))
    return b"\x80\x02" + head + integer(offset) + geometry + b"\x89}tR."

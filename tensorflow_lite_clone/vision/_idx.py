"""Reading idx files, the format of MNIST and its relatives, plain or gzipped.

A header of four bytes (0, 0, the code of the element type, the number of dimensions), the
dimensions as big-endian 32-bit numbers, then the elements in row-major order.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import numpy as np

UNSIGNED_BYTE = 0x08
MAGIC_BYTES = 4
SIZE_BYTES = 4


def read_bytes(path: Path) -> bytes:
    """A file's contents, unpacked if its name ends in .gz; RuntimeError if that fails."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RuntimeError(f"{path} cannot be read: {error}") from error
    if path.suffix != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise RuntimeError(
            f"{path} ({len(content)} bytes) is no complete gzip file: {error}. Remove it and get "
            "it again."
        ) from error


def read_idx(path: Path, ndim: int) -> Any:
    """The uint8 array of `ndim` dimensions in an idx file.

    Raises RuntimeError, which names the file, what was found and what was expected, if it is not
    such a file, or is shorter or longer than its header says.
    """
    content = read_bytes(path)
    expected = bytes([0, 0, UNSIGNED_BYTE, ndim])
    if content[:MAGIC_BYTES] != expected:
        raise RuntimeError(
            f"{path} does not start like an idx file of unsigned bytes in {ndim} dimension(s): "
            f"expected 0x{expected.hex()}, found 0x{content[:MAGIC_BYTES].hex()}"
        )
    start = MAGIC_BYTES + SIZE_BYTES * ndim
    if len(content) < start:
        raise RuntimeError(
            f"{path} ends inside its header: expected at least {start} bytes, found {len(content)}"
        )
    shape = tuple(np.frombuffer(content, ">u4", ndim, MAGIC_BYTES).tolist())
    size = int(np.prod(shape, dtype=object))
    if len(content) != start + size:
        raise RuntimeError(
            f"{path} has a header for shape {shape}: expected {start + size} bytes, found "
            f"{len(content)}"
        )
    # A copy, since an array made of bytes cannot be written to.
    return np.frombuffer(content, np.uint8, size, start).reshape(shape).copy()

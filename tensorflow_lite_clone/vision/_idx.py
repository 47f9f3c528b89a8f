"""Reading idx files, the format of MNIST and its relatives, plain or gzipped.

A header of four bytes (0, 0, the code of the element type, the number of dimensions), the
dimensions as big-endian 32-bit numbers, then the elements in row-major order.
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np

UNSIGNED_BYTE = 0x08
MAGIC_BYTES = 4
SIZE_BYTES = 4


PIECE = 1 << 20  # bytes that are read at once


def read_idx(path: Path, ndim: int) -> Any:
    """The uint8 array of `ndim` dimensions in an idx file, gzipped if its name ends in .gz.

    No more is unpacked than the header says. Raises RuntimeError, which names the file, what was
    found and what was expected, if it is not such a file, or is shorter or longer than that.
    """
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as file:
            return _array(path, file, ndim)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise RuntimeError(
            f"{path} ({path.stat().st_size} bytes) is no complete gzip file: {error}. Remove it "
            "and get it again."
        ) from error
    except OSError as error:
        raise RuntimeError(f"{path} cannot be read: {error}") from error


def _array(path: Path, file: Any, ndim: int) -> Any:
    start = MAGIC_BYTES + SIZE_BYTES * ndim
    header = file.read(start)
    expected = bytes([0, 0, UNSIGNED_BYTE, ndim])
    if header[:MAGIC_BYTES] != expected:
        raise RuntimeError(
            f"{path} does not start like an idx file of unsigned bytes in {ndim} dimension(s): "
            f"expected 0x{expected.hex()}, found 0x{header[:MAGIC_BYTES].hex()}"
        )
    if len(header) < start:
        raise RuntimeError(
            f"{path} ends inside its header: expected at least {start} bytes, found {len(header)}"
        )
    shape = tuple(np.frombuffer(header, ">u4", ndim, MAGIC_BYTES).tolist())
    size = math.prod(shape)
    content = bytearray()
    while chunk := file.read(min(PIECE, size - len(content))):
        content += chunk
    if len(content) < size or file.read(1):
        found = "more" if len(content) == size else start + len(content)
        raise RuntimeError(
            f"{path} has a header for shape {shape}: expected {start + size} bytes, found {found}"
        )
    return np.frombuffer(content, np.uint8).reshape(shape)  # it can be written to

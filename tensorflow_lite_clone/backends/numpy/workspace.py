"""Memory in which blocks of large arrays are worked on, kept for the next call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

_MAX_BYTES = 1 << 25  # bytes of a piece that is kept at most


class _Pool(threading.local):
    """Pieces that nobody in this thread uses."""

    def __init__(self) -> None:
        self.free: list[np.ndarray] = []


_pool = _Pool()


@contextmanager
def workspace(size: int, dtype: np.dtype) -> Iterator[np.ndarray]:
    """`size` elements of any value, this thread's until the ``with`` block ends."""
    needed = size * dtype.itemsize
    buffer = _pool.free.pop() if _pool.free else None
    if buffer is None or buffer.nbytes < needed:
        buffer = np.empty(needed, np.uint8)
    try:
        yield buffer[:needed].view(dtype)
    finally:
        if buffer.nbytes <= _MAX_BYTES:
            _pool.free.append(buffer)

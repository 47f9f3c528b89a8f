"""Memory of arrays that were let go of stays with the process, for the arrays that come next.

The C library of Linux (glibc) hands large blocks back to the system when they are freed, and takes
them anew, page by page, when the next array of that size is made: each page costs about as much as
to write it several times over. Kept, a training step finds the memory of the step before.
"""

from __future__ import annotations

import ctypes
import math
import os
from typing import Any

from numpy._core import _exceptions

from tensorflow_lite_clone.core.errors import OutOfMemoryError

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of mallopt(3)
_LARGEST = 32 << 20  # bytes of a block that is kept at most: the most that glibc allows
_KEPT = 256 << 20  # free bytes at the end of the heap
_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def translate_errors() -> None:
    """Let what NumPy raises where there is no room for an array be PyTorch's exception, too.

    The class gets one more base, and PyTorch's words before NumPy's. It stays a MemoryError. So an
    op, a gradient, a write and a draw raise what programs catch, and no call is watched for it.
    """
    kind: Any = _exceptions._ArrayMemoryError
    if issubclass(kind, OutOfMemoryError):
        return
    own_words = kind.__str__

    def words(error: Any) -> str:
        number = error.dtype.itemsize * math.prod(error.shape)
        return (
            f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {number} bytes. "
            f"NumPy: {own_words(error)}"
        )

    kind.__bases__ = (MemoryError, OutOfMemoryError)
    kind.__str__ = words


def configure_malloc() -> bool:
    """Tell the C library; whether it listens. What the environment says of it stays as it is."""
    if any(name in os.environ for name in _SETTINGS):
        return False
    try:
        tell = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return False
    return bool(tell(_MMAP_THRESHOLD, _LARGEST) and tell(_TRIM_THRESHOLD, _KEPT))

"""Memory of arrays that were let go of stays with the process, for the arrays that come next.

The C library of Linux (glibc) hands large blocks back to the system when they are freed, and takes
them anew, page by page, when the next array of that size is made: each page costs about as much as
to write it several times over. Kept, a training step finds the memory of the step before.
"""

from __future__ import annotations

import ctypes
import os

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of mallopt(3)
_LARGEST = 32 << 20  # bytes of a block that is kept at most: the most that glibc allows
_KEPT = 256 << 20  # free bytes at the end of the heap
_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_what_is_freed() -> bool:
    """Tell the C library; whether it listens. What the environment says of it stays as it is."""
    if any(name in os.environ for name in _SETTINGS):
        return False
    try:
        tell = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return False
    return bool(tell(_MMAP_THRESHOLD, _LARGEST) and tell(_TRIM_THRESHOLD, _KEPT))

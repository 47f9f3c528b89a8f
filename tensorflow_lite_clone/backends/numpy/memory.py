"""Freed memory stays with the process, so that the next step finds it as it left it.

glibc gives large arrays pages of their own, and returns what lies free at the end of its heap.
Every step of a training would ask the system for the same pages again, which fills them with zeros:
that takes longer than to add the numbers that are written there.
"""

from __future__ import annotations

import ctypes
import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
_MOST = 1 << 30  # bytes: beyond, the system has its pages back


def keep_freed_memory() -> None:
    """Let the C library hold on to freed memory, unless the environment gives it other orders."""
    told = any([name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ])
    if told or not sys.platform.startswith("linux"):
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "gnu_get_libc_version"):
        library.mallopt(_MMAP_THRESHOLD, _MOST)
        library.mallopt(_TRIM_THRESHOLD, _MOST)

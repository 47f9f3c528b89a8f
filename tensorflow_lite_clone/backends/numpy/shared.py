"""Arrays in memory that several processes see, and how they travel between them.

The memory is a file without a name (`memfd_create`, elsewhere a deleted temporary file), mapped
by every process that uses it. A forked process has the mapping; to others `multiprocessing` sends
the file's descriptor. Nothing can be left behind, however a process ends.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from multiprocessing import reduction
from typing import Any

import numpy as np


class SharedMemory(mmap.mmap):
    """A mapped nameless file, which keeps the descriptor that stands for it."""

    descriptor: int

    @classmethod
    def of(cls, descriptor: int) -> SharedMemory:
        """Map the file of a descriptor, which belongs to the mapping from now on."""
        made = cls(descriptor, 0)
        made.descriptor = descriptor
        weakref.finalize(made, os.close, descriptor)
        return made


def _nameless_file(size: int) -> int:
    """The descriptor of a new file of `size` bytes."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("tensor", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


def memory_of(array: Any) -> SharedMemory | None:
    """The shared memory that an array is a view of, None if it lies elsewhere."""
    while array is not None and not isinstance(array, SharedMemory):
        array = getattr(array, "base", None)
    return array


def moved(root: np.ndarray, view: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A copy of `root` in shared memory, and the view of it that `view` was of `root`."""
    steps = [(n - 1) * stride for n, stride in zip(root.shape, root.strides)]
    size = sum(steps) + root.itemsize if root.size else 1
    memory = SharedMemory.of(_nameless_file(size))
    made = np.ndarray(root.shape, root.dtype, memory, strides=root.strides)
    made[...] = root
    offset = view.ctypes.data - root.ctypes.data
    return made, np.ndarray(view.shape, view.dtype, memory, offset, view.strides)


def _rebuild(handle: Any, shape: tuple, dtype: np.dtype, offset: int, strides: tuple) -> np.ndarray:
    return np.ndarray(shape, dtype, SharedMemory.of(handle.detach()), offset, strides)


def _reduce(array: np.ndarray) -> Any:
    """How `multiprocessing` sends an array: where it lies if that is shared, else its values."""
    memory = memory_of(array)
    if memory is None:
        return array.__reduce__()
    start = np.frombuffer(memory, np.uint8).ctypes.data
    offset = array.ctypes.data - start
    handle = reduction.DupFd(memory.descriptor)
    return _rebuild, (handle, array.shape, array.dtype, offset, array.strides)


reduction.register(np.ndarray, _reduce)

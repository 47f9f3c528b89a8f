"""What memory is taken and given back while a profile is made, and by which lines.

A GPU's pool tells of every allocation, temporary ones too. On a host there is no pool: what counts
are the arrays of tensors, from when an op, a gradient or a function gave them until they die.
"""

from __future__ import annotations

import gc
import weakref
from contextlib import ExitStack
from functools import partial
from threading import get_ident
from time import perf_counter_ns as clock
from typing import Any, NamedTuple, Self

from tensorflow_lite_clone import backends, cuda, storage
from tensorflow_lite_clone.profiler import frames
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.trace import Observer


class MemoryEvent(NamedTuple):
    """Memory that was taken (`delta_bytes` positive) or given back (negative)."""

    time_us: float  # since the profile began
    device: str
    delta_bytes: int
    total_bytes: int  # in use on the device after it
    where: str  # ``file:line`` that took the memory, or what it was before the profile


class Change(NamedTuple):
    """A `MemoryEvent` as it is heard of."""

    time: int  # by the clock
    thread: int
    device: str
    size: int
    key: int  # tells memory that is in use apart
    line: Any


class MemoryRecorder(Observer):
    """Context manager that notes allocations and releases inside."""

    def __init__(self) -> None:
        self.heard: list[Change] = []
        self.before: dict[str, int] = {}  # bytes in use at the beginning, by device
        self._alive: dict[int, Any] = {}
        self._pools: set[Any] = set()  # backends that tell by themselves
        self._ends = ExitStack()

    def __enter__(self) -> Self:
        """Begin, with what is alive now."""
        for backend in backends.loaded():
            name = str(backend.device)
            end = backend.watch_memory(partial(self._told, name))
            if end is not None:
                self.before[name] = cuda.memory_allocated(name)
                self._pools.add(backend)
                self._ends.callback(end)
        # by type: `isinstance` asks objects for their class, and proxies answer as they like
        before = [
            x
            for x in gc.get_objects()
            if type(x) in (Storage, storage.LazyStorage, storage.ReleasableStorage)
        ]
        before = [x for x in before if type(x.physical) is not storage.FreedArray]
        for made in before:
            self._note(made.backend, made.physical, None, 0)
        for change in self.heard:
            self.before[change.device] = self.before.get(change.device, 0) + change.size
        self.heard.clear()
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._ends.close()
        self._alive.clear()

    def took(self, backend: Any, result: Any, when: int) -> None:
        """Note the arrays that an op gave at the time `when`."""
        if backend in self._pools:
            return
        line = frames.innermost()
        for array in result if type(result) in (tuple, list) else (result,):
            self._note(backend, array, line, when)

    def on_storage(self, made: Storage) -> None:
        """Note the array of a storage that was made outside of ops."""
        if made.backend not in self._pools:
            self._note(made.backend, made.physical, frames.innermost(), clock())

    def _note(self, backend: Any, array: Any, line: Any, when: int) -> None:
        if backend in self._pools or type(array) is not backend.array_type:
            return
        if not backend.has_values:  # nor memory
            return
        while type(base := getattr(array, "base", None)) is type(array):
            array = base
        key = id(array)
        if key in self._alive:
            return
        name, size = str(backend.device), array.size * array.dtype.itemsize
        try:
            self._alive[key] = weakref.ref(array, partial(self._died, key, name, size))
        except TypeError:
            return
        self.heard.append(Change(when, get_ident(), name, size, key, line))

    def _died(self, key: int, name: str, size: int, reference: Any) -> None:
        if self._alive.pop(key, None) is not None:
            self.heard.append(Change(clock(), get_ident(), name, -size, key, None))

    def _told(self, name: str, size: int, address: int) -> None:
        line = frames.innermost() if size > 0 else None
        self.heard.append(Change(clock(), get_ident(), name, size, address, line))

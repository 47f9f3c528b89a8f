"""Work on large arrays in parts, one for each thread: NumPy lets go of the interpreter's lock.

To hand a part to another thread and to wait for it takes 30 to 60 us, which is what adding 500,000
numbers takes, so that small work stays where it is.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager, nullcontext, suppress
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.loading import blas_threads
from tensorflow_lite_clone.core.flags import flags

_busy = threading.Lock()  # held while work is shared: what it shares again stays in its thread
_workers: list[_Worker] = []
_blas_affinities: list[_Affinity] = []
_blas_lock = threading.Lock()
_single_threaded = 0  # how many there are for whom BLAS has one thread
_blas_counts: list[tuple[Any, int]] = []  # of threads that BLAS had


class _Affinity:
    """The processors that a thread may run on, by the number that the system has for it."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._processors: set[int] = set()

    def pin(self, processors: set[int]) -> None:
        if processors != self._processors:
            os.sched_setaffinity(self._number, processors)
            self._processors = processors


class _Worker:
    """A thread that does one part of some work after another."""

    def __init__(self) -> None:
        self.parts: SimpleQueue = SimpleQueue()
        thread = threading.Thread(target=self._serve, name="tlc", daemon=True)
        thread.start()
        self.affinity = _Affinity(thread.native_id or 0)

    def _serve(self) -> None:
        # Infinities and NaNs are no reason for a warning, see the backend; each thread has its own
        # say.
        np.seterr(all="ignore")
        while True:
            work, start, stop, latch = self.parts.get()
            try:
                work(start, stop)
            except BaseException as error:
                latch.set(error)
            else:
                latch.set(None)
            del work, latch  # nothing is kept alive while there is nothing to do


class _Latch:
    """Counts the parts of some work that have ended, and keeps what they raised."""

    def __init__(self) -> None:
        self._errors: list[BaseException | None] = []
        self._arrivals: SimpleQueue = SimpleQueue()

    def set(self, error: BaseException | None) -> None:
        self._errors.append(error)
        self._arrivals.put(None)

    def wait(self, parts: int) -> None:
        """Return, or raise what one raised, once all have ended: an interrupt waits for them too.

        Until then they write to memory that the caller would hand to others.
        """
        interrupt = None
        while len(self._errors) < parts:
            try:
                self._arrivals.get(timeout=1)
            except Empty:  # an interrupt may have come between a word and its notice
                continue
            except KeyboardInterrupt as error:
                interrupt = error
        for error in (interrupt, *self._errors):
            if error is not None:
                raise error


def parallel_for(
    work: Callable[[int, int], object], size: int, least: int, *, products: bool = False
) -> None:
    """Call ``work(start, stop)`` for parts that cover ``range(size)``, beside each other.

    There are at most `flags.threads` parts, of about `least` or more; a single one is done here.
    With `products` the parts have matrix products, for which BLAS has one thread meanwhile.
    Exceptions reach the caller once all parts have ended.
    """
    parts = min(flags.threads, size // max(least, 1))
    if parts < 2 or not _busy.acquire(blocking=False):
        work(0, size)
        return
    try:
        ahead = least // 8  # what this thread has done when the others begin
        ends = [ahead + (size - ahead) * (i + 1) // parts for i in range(parts)]
        while len(_workers) < parts - 1:
            _workers.append(_Worker())
        workers = _workers[: parts - 1]
        latch, given = _Latch(), 0
        # Threads that BLAS may start have the processors that this thread has then: all of them.
        with blas_single_threaded() if products else nullcontext(), _pinned(workers):
            try:
                for worker, start, stop in zip(workers, ends, ends[1:]):
                    worker.parts.put((work, start, stop, latch))
                    given += 1
                work(0, ends[0])
            finally:
                latch.wait(given)
    finally:
        _busy.release()


def _find_processor() -> Callable[[], int] | None:
    """What tells the processor that the calling thread runs on, where threads can be kept there."""
    try:
        return ctypes.PyDLL(None).sched_getcpu if hasattr(os, "sched_setaffinity") else None
    except (AttributeError, OSError, TypeError):  # another C library
        return None


_processor = _find_processor()


@contextmanager
def _pinned(workers: list[_Worker]) -> Iterator[None]:
    """Let this thread stay on its processor meanwhile, and each worker have others for itself.

    Threads wake each other for work and when it is done, and systems like to put the one woken
    beside the one that wakes it. In a virtual machine, whose idle processors may count as taken,
    both stay there for hundreds of calls, one of them waiting. So do threads of BLAS, and there the
    one that has woken them does not even sleep: products took 10 ms instead of 0.4. They have the
    other processors for longer, as this thread seldom leaves its own.
    """
    allowed = os.sched_getaffinity(0) if _processor is not None else set()
    try:
        if _processor is not None:
            _pin_workers(workers, allowed, _processor())
        yield
    finally:
        if allowed:
            with suppress(OSError):
                os.sched_setaffinity(0, allowed)


def _pin_workers(workers: list[_Worker], allowed: set[int], here: int) -> None:
    """Give threads their processors, of those that are `allowed`, if there are enough."""
    others = sorted(allowed - {here})
    if here not in allowed or len(others) < len(workers):
        return
    with suppress(OSError):  # a process may be kept from choosing
        for i, worker in enumerate(workers):
            worker.affinity.pin(set(others[i :: len(workers)]))
        for thread in _blas_affinities:
            thread.pin(set(others))
        os.sched_setaffinity(0, {here})


class blas_single_threaded(ContextDecorator):
    """BLAS has one thread meanwhile; afterwards as many as when the first that asks for it came.

    It takes 3 us.
    """

    def __enter__(self) -> None:
        global _single_threaded
        with _blas_lock:
            if not _blas_counts:
                for library in _blas():
                    _blas_counts.append((library, library.num_threads))
                    library.set_num_threads(1)
            _single_threaded += 1

    def __exit__(self, *error: object) -> None:
        global _single_threaded
        with _blas_lock:
            _single_threaded -= 1
            while _blas_counts and not _single_threaded:
                library, number = _blas_counts.pop()
                library.set_num_threads(number)


@cache
def _blas() -> list[Any]:
    """NumPy's BLAS; of a program that has loaded several, those that came with NumPy."""
    import threadpoolctl

    found = threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers
    folder = os.path.dirname(os.path.dirname(np.__file__))
    own = [library for library in found if library.filepath.startswith(folder + "/numpy")]
    return own or found


def _forget() -> None:
    """A new process has none of its parent's threads."""
    global _busy, _blas_lock, _single_threaded
    _busy, _blas_lock, _single_threaded = threading.Lock(), threading.Lock(), 0
    _workers.clear()
    _blas_affinities.clear()


_blas_affinities += map(_Affinity, blas_threads)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

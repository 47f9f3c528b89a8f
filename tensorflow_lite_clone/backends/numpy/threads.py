"""Work on large arrays in parts, one for each thread: NumPy lets go of the interpreter's lock.

To hand a part to another thread and to wait for it takes 50 to 100 us, which is what adding 500,000
numbers takes, so that small work stays where it is.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from tensorflow_lite_clone.core.flags import flags

_busy = threading.Lock()  # held while work is shared: what it shares again stays in its thread


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    # Infinities and NaNs are no reason for a warning, see the backend; each thread has its own say.
    return ThreadPoolExecutor(workers, "tlc", initializer=np.seterr, initargs=("ignore",))


def share(
    work: Callable[[int, int], object], size: int, least: int, *, products: bool = False
) -> None:
    """Call ``work(start, stop)`` for parts that cover ``range(size)``, beside each other.

    There are at most `flags.threads` parts, of `least` or more; a single one is done in place.
    With `products` the parts have matrix products, for which BLAS has one thread meanwhile.
    Exceptions reach the caller once all parts have ended.
    """
    parts = min(flags.threads, size // max(least, 1))
    if parts < 2 or not _busy.acquire(blocking=False):
        work(0, size)
        return
    try:
        ends = [size * (i + 1) // parts for i in range(parts)]
        with one_thread_each() if products else _nothing():
            pool = _pool(parts - 1)
            others = [pool.submit(work, *part) for part in zip(ends, ends[1:])]
            try:
                work(0, ends[0])
            finally:
                wait(others)
            for other in others:
                other.result()
    finally:
        _busy.release()


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def one_thread_each() -> Iterator[None]:
    """BLAS has one thread: others would turn in circles for 0.1 s after a product, see `share`."""
    libraries = _blas()
    before = [library.num_threads for library in libraries]
    for library in libraries:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, number in zip(libraries, before):
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
    global _busy
    _busy = threading.Lock()
    _pool.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

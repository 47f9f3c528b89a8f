"""NumPy is imported, the first time, such that threads of its BLAS do not stay in the way.

Those of OpenBLAS, the BLAS of NumPy's wheels, wait for the next product by looking for it for 2^26
ticks of the processor's clock, 20 ms and more, in which they take a processor from the threads that
share our work: on two of them, a step of a small convolutional network took a quarter longer. After
2^20 ticks here, long enough for products that follow each other, they sleep. OpenBLAS reads this
from the environment when it is loaded: if NumPy was imported before, nothing changes.
"""

from __future__ import annotations

import os
from importlib import import_module

_WAITING = "OPENBLAS_THREAD_TIMEOUT"  # the binary logarithm of ticks
_OTHER_NAMES = ("GOTO_THREAD_TIMEOUT",)


def _threads() -> set[int]:
    """The numbers by which Linux knows the threads of this process."""
    folder = "/proc/self/task"
    return set(map(int, os.listdir(folder))) if os.path.isdir(folder) else set()


_before = _threads()
if any(name in os.environ for name in (_WAITING, *_OTHER_NAMES)):  # the user's choice
    import_module("numpy")
else:
    os.environ[_WAITING] = "20"
    try:
        import_module("numpy")
    finally:
        del os.environ[_WAITING]  # other programs that this one starts are none of our business

#: Threads that NumPy's BLAS has started, those of them that are known.
blas_threads = sorted(_threads() - _before)

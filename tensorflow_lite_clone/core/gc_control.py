"""The garbage collector, which importing the package puts off."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def disable_gc() -> Iterator[None]:
    """Collect no garbage in a block, whose objects count as old ones afterwards.

    They would be looked through soon after, all at once. Freezing gives them to the oldest
    generation without that, unless a program has frozen objects of its own.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if enabled:
            gc.enable()

"""Locks that a forked process finds free.

The threads that held them when the process forked, such as a loader's worker does, are not there.
"""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakSet

_locks: WeakSet[Any] = WeakSet()


def lock() -> Any:
    """A `threading.Lock`, free in a forked process."""
    return _registered(threading.Lock())


def reentrant_lock() -> Any:
    """A `threading.RLock`, free in a forked process."""
    return _registered(threading.RLock())


def _registered(new: Any) -> Any:
    _locks.add(new)
    return new


def _free() -> None:
    for held in _locks:
        held._at_fork_reinit()  # as `threading` does with its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free)

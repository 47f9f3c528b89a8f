"""When a compiled kernel serves a call, and how it is started.

Kernels are compiled when first called, a second or so each, and Numba keeps the machine code on
disk: in ``__pycache__`` beside the source, where that cannot be written in the user's own cache
(``~/.cache/numba``), and where neither can be every process compiles anew.

They run on the threads of Numba's layer: the first that is there of TBB, OpenMP and Numba's own.
The last cannot be entered by two threads at once, for which there is a lock. OpenMP's threads do
not survive a fork: a process that was forked from one that has used them leaves all to NumPy.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.dispatch.table import override

_f32 = np.dtype(np.float32)
#: The elements of its first array from which on an op is served.
LEAST: dict[str, int] = {}


class _State:
    started = False  # whether threads were started
    lost = False  # whether they stayed behind in the parent process
    guard: AbstractContextManager = threading.RLock()


def compiled(name: str, *, least: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register ``function(*arrays, **parameters)`` as the compiled form of an op.

    It is asked where the first array is float32, row-major and of `least` elements or more, and
    may decline as any override.
    """
    LEAST[name] = least

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        @override(name, backend="numba")
        def call(F: Any, x: Any, *arrays: Any, **parameters: Any) -> Any:
            if (
                x.size < LEAST[name]
                or x.dtype != _f32
                or not x.flags.c_contiguous
                or not usable()
            ):
                return NotImplemented
            return function(x, *arrays, **parameters)

        return function

    return register


def row_major(*arrays: Any) -> bool:
    """Whether all are float32 in row-major order, or None."""
    return all([a is None or (a.dtype == _f32 and a.flags.c_contiguous) for a in arrays])


def usable() -> bool:
    """Whether kernels can run in this process."""
    return not _State.lost and _numba() is not None


@cache
def _numba() -> Any:
    try:
        return import_module("numba")
    except ImportError as error:
        warnings.warn(f"Numba is installed, but of no use: {error}", stacklevel=2)
        return None


class Kernels:
    """The kernels of a module in `kernels/`, which is imported when the first is named."""

    def __init__(self, module: str) -> None:
        self._module = f"{__package__}.kernels.{module}"

    def __getattr__(self, name: str) -> Callable[..., None]:
        kernel = getattr(import_module(self._module), name)

        def launch(*arguments: Any) -> None:
            _launch(kernel, arguments)

        setattr(self, name, launch)
        return launch


def _launch(kernel: Callable[..., None], arguments: tuple) -> None:
    """Run a kernel on `flags.threads` threads."""
    numba = _numba()
    before = numba.get_num_threads()
    wanted = min(flags.threads, numba.config.NUMBA_NUM_THREADS)
    with _State.guard:
        if before != wanted:
            numba.set_num_threads(wanted)
        try:
            kernel(*arguments)
        finally:
            if before != wanted:
                numba.set_num_threads(before)
        if not _State.started:
            _State.started = True
            if numba.threading_layer() != "workqueue":
                _State.guard = nullcontext()


def _forked() -> None:
    _State.lost = _State.started
    _State.guard = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

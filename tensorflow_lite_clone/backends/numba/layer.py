"""When a compiled kernel serves a call, and how it is started.

To compile a kernel takes 0.2 to 4 s, so that the first step of a small network would wait for 3 to
20 s. NumPy serves an op until its calls have amounted to what compiling costs (`Compilation`). That
is a matter of counts alone, not of time nor of what is on disk, so a program's results are the same
bits each time. Numba keeps the machine code on disk: in ``__pycache__`` beside the source, where
that cannot be written in the user's own cache (``~/.cache/numba``), and where neither can be every
process compiles anew.

Kernels let go of the interpreter's lock, and large work is shared between the same threads that
NumPy's overrides use (see `threads`). Numba has threads of its own, but those of OpenMP wait for
work in a way that holds BLAS up: a product of matrices after a kernel took 8 ms instead of 0.2.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.threads import parallel_for
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.dispatch.table import override

_f32 = np.dtype(np.float32)


class Compilation:
    """Whether it is worth while to compile what serves an op, or some that do the same job.

    Who waits until the time lost has reached the price never pays more than twice the least that
    was possible, whatever comes (the ski rental problem; Karlin, Manasse, Rudolph and Sleator,
    "Competitive snoopy caching", 1988).
    """

    def __init__(self) -> None:
        self._work = 0

    def count(self, elements: int) -> bool:
        """Add a call of so many elements, and tell whether a kernel is to serve it."""
        if self._work >= tuning.compiled_after:
            return is_there()
        self._work += elements + tuning.compiled_call
        return self.pays()

    def pays(self) -> bool:
        """Whether kernels are to serve calls; with deterministic algorithms they serve all."""
        return (self._work >= tuning.compiled_after or flags.deterministic) and is_there()


def compiled(
    name: str, *, least: int, compilation: Compilation | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register ``function(*arrays, **parameters)`` as the compiled form of an op.

    It is asked where the first array is float32, row-major and of `least` elements or more, once
    the `compilation`, its own if none is given, pays; and may decline as any override.
    """
    worth = Compilation() if compilation is None else compilation

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        @override(name, backend="numba", least=least)
        def call(F: Any, x: Any, *arrays: Any, **parameters: Any) -> Any:
            if x.dtype != _f32 or not x.flags.c_contiguous or not worth.count(x.size):
                return NotImplemented
            return function(x, *arrays, **parameters)

        return function

    return register


def row_major(*arrays: Any) -> bool:
    """Whether all are float32 in row-major order, or None."""
    return all([a is None or (a.dtype == _f32 and a.flags.c_contiguous) for a in arrays])


@cache
def is_there() -> bool:
    """Whether Numba can be imported, which happens here."""
    try:
        import_module("numba")
    except ImportError as error:
        warnings.warn(f"Numba is installed, but of no use: {error}", stacklevel=level_outside())
        return False
    return True


class Kernels:
    """The kernels of a module in `kernels/`, which is imported when the first is named."""

    def __init__(self, module: str) -> None:
        self._module = f"{__package__}.kernels.{module}"

    def __getattr__(self, name: str) -> Any:
        kernel = getattr(import_module(self._module), name)
        setattr(self, name, kernel)
        return kernel


def run(kernel: Callable[..., None], size: int, each: int, *arguments: Any) -> None:
    """Call ``kernel(start, stop, *arguments)`` for parts of ``range(size)``, large ones shared.

    One of the range stands for `each` elements.
    """
    least = tuning.compiled_per_thread
    if size * each < 2 * least:
        kernel(0, size, *arguments)
    else:
        minimum = max(least // each, 1)
        parallel_for(lambda start, stop: kernel(start, stop, *arguments), size, minimum)

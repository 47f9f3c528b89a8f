"""How kernels are compiled.

Numba's cache knows a kernel by the text of the file that it stands in: after a change of a function
that kernels of other files call, what is kept of them must be deleted (``__pycache__/*.nb?``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numba

# Sums may be taken in parts, which vectorises them. Infinities and NaNs are what they are.
_FREE = {"reassoc", "contract", "arcp", "nsz"}
#: A formula for one element, whose operations stay in the order in which they are written.
formula = numba.njit(error_model="numpy", fastmath={"contract"}, forceinline=True)
#: A loop that a kernel calls; its sums are taken in parts.
loop = numba.njit(error_model="numpy", fastmath=_FREE, forceinline=True)


def kernel(function: Callable[..., None]) -> Any:
    """Compile ``function(start, stop, *arrays)``; its machine code is kept on disk."""
    made = numba.njit(error_model="numpy", fastmath=_FREE, nogil=True)(function)
    with contextlib.suppress(RuntimeError):  # no folder can be written
        made.enable_caching()
    return made

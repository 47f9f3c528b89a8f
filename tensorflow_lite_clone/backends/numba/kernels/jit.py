"""How kernels are compiled.

Numba's cache knows a kernel by the text of the file that it stands in; here by that of all files
of kernels, since some call functions of others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
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
    made: Any = numba.njit(error_model="numpy", fastmath=_FREE, nogil=True)(function)
    with contextlib.suppress(RuntimeError):  # no folder can be written
        made.enable_caching()
        file = made._cache._cache_file
        file._source_stamp = file._source_stamp, _texts()
    return made


@cache
def _texts() -> str:
    """What stands for the texts of all kernels."""
    folder = Path(__file__).parent
    return sha256(b"".join([path.read_bytes() for path in sorted(folder.glob("*.py"))])).hexdigest()

"""How kernels are compiled.

Numba's cache knows a kernel by the file that it stands in: after a change of a function that
kernels of other files call, their files must be touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

# Sums may be taken in parts, which vectorises them. Infinities and NaNs are what they are.
_FREE = {"reassoc", "contract", "arcp", "nsz"}
#: Only what `kernel` wants of Numba's parallel transformations: loops over `prange`.
_PARALLEL = {
    "comprehension": False,
    "fusion": False,
    "inplace_binop": False,
    "numpy": False,
    "prange": True,
    "reduction": False,
    "setitem": False,
    "stencil": False,
}

#: A formula for one element, whose operations stay in the order in which they are written.
formula = numba.njit(fastmath={"contract"}, error_model="numpy")
#: A loop that a kernel calls; its sums are taken in parts.
loop = numba.njit(fastmath=_FREE, error_model="numpy")


def kernel(function: Callable[..., None]) -> Any:
    """Compile a function that has loops over `prange`; its machine code is kept on disk."""
    compile = numba.njit(
        cache=False, error_model="numpy", fastmath=_FREE, nogil=True, parallel=_PARALLEL
    )(function)
    try:
        compile.enable_caching()
    except RuntimeError:  # no folder can be written
        pass
    return compile

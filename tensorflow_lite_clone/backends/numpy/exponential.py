"""Exponentials of large arrays for which the last two digits do not matter."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np


@cache
def _to_base_2(sign: int) -> np.ndarray | None:
    """What float32 exponents are multiplied by, if NumPy has exp2 in vectors where exp is slower.

    It has both on processors with AVX-512, and exp alone on others.
    """
    try:
        from numpy.lib import introspect
    except ImportError:
        return None
    found = introspect.opt_func_info("^exp2$", "float32").get("exp2", {})
    if any([not loop["current"].startswith("baseline") for loop in found.values()]):
        return np.array(sign * math.log2(math.e), np.float32)
    return None


def near_exp(x: Any, out: Any, sign: int = 1) -> None:
    """Write exp(x), or exp(-x), into `out`, off by what rounding x once more would change."""
    factor = _to_base_2(sign) if out.dtype.char == "f" else None
    if factor is not None:
        np.multiply(x, factor, out)
        np.exp2(out, out)
    elif sign < 0:
        np.negative(x, out)
        np.exp(out, out)
    else:
        np.exp(x, out)

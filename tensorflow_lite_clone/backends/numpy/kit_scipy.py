"""Words that SciPy serves where it is installed (the extra `scipy`); it is imported on first use.

In the table stand the functions that `scipy.special` computes at least twice as fast as the
kit's own formulas without losing digits anywhere: not erfc, lgamma and the Bessel functions, whose
errors there are 5e-14 in erfc's tail, 7e-9 beside lgamma's zeros, and grow with large x. Measured
against 40-digit values, with SciPy 1.17, 2026-11-22.
"""

from __future__ import annotations

import functools
from typing import Any

#: word of the kit -> function of two or one float64 arrays in scipy.special
UFUNCS = {
    "digamma": "psi",
    "erf": "erf",
    "erfcx": "erfcx",
    "erfinv": "erfinv",
    "igamma": "gammainc",
    "igammac": "gammaincc",
    "log_ndtr": "log_ndtr",
    "ndtri": "ndtri",
}


@functools.cache
def ufunc(word: str) -> Any:
    """SciPy's function for a word; None where the kit's own formula is to be used."""
    if word not in UFUNCS:
        return None
    try:
        from scipy import special
    except ImportError:
        return None
    return getattr(special, UFUNCS[word])

"""Words that SciPy serves where it is installed (the extra `scipy`); it is imported on first use.

In the table stand the functions that `scipy.special` computes faster than the kit's own formulas
without losing digits anywhere. Not erfc and lgamma, whose errors are 5e-14 in the tail and 7e-9
beside the zeros; not the Bessel functions, whose errors grow with x; nor igamma, which is good to
6e-7 where a is 7e5.

Nanoseconds per element without and with SciPy 1.17, float64 (x = default_rng(0).uniform(0.01,
0.99, 200_000), a = 300 x; best of nine timeit runs of the kit's word, one thread of an AMD EPYC,
2026-11-22): erf(a / 30) 65, 13; erfcx(a / 30) 60, 23; erfinv(x) 204, 18; ndtri(x) 144, 13;
log_ndtr(a / 30 - 5) 93, 28; digamma(a) 31, 9.
"""

from __future__ import annotations

import functools
from typing import Any

#: word of the kit -> function of a float64 array in scipy.special
UFUNCS = {
    "digamma": "psi",
    "erf": "erf",
    "erfcx": "erfcx",
    "erfinv": "erfinv",
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


@functools.cache
def routine(name: str, dtype: Any) -> Any:
    """LAPACK's or BLAS' routine of this name, without the letter of the dtype, in SciPy.

    None for dtypes that LAPACK does not know, without SciPy, and where SciPy is too old for it.
    """
    letter = {"f": "s", "d": "d", "F": "c", "D": "z"}.get(dtype.char)
    if letter is None:
        return None
    try:
        from scipy import linalg
    except ImportError:
        return None
    library = linalg.blas if name == "trsm" else linalg.lapack
    return getattr(library, letter + name, None)

"""Words that SciPy serves where it is installed (the extra `scipy`); it is imported on first use.

In the tables stand the functions that `scipy.special` computes faster than the formulas beside it
without losing digits of the dtype anywhere; `routine` finds LAPACK for `lapack`.

Largest relative errors without and with SciPy 1.17, against 40-digit values at 250 points each:
erf 2e-16, 2e-16; erfcx 1e-15, 2e-15; erfinv 3e-16, 3e-16; ndtri 4e-16, 5e-16; log_ndtr 7e-15,
7e-15; digamma beside its root at 1.46 5e-10, 2e-16, elsewhere 9e-15, 1e-13. For float32 alone:
erfc 6e-16, 5e-14 in the tail; lgamma 3e-15, 4e-8 for numbers 1e-8 beside 1, but 3e-9 for float32
numbers. For 1e-4 < a < 20: igamma 5e-14, 5e-15; igammac 1e-13, 7e-15. (Beyond, up to a = 100,
2e-14 and 1e-13; up to 1e5 4e-13 and 1e-11; of subnormal a SciPy's are wrong.)

Nanoseconds per element without and with SciPy, float64 (x = default_rng(0).uniform(0.01, 0.99,
200_000)[:20_000], a = 300 x, f float32; best of 200 timeit runs of the primitive, one thread of
an AMD EPYC, 2026-11-22): erf(a / 30) 41, 11; erfcx(a / 30) 40, 21; erfinv(x) 193, 12; ndtri(x)
194, 11; log_ndtr(a / 30 - 5) 94, 20; digamma(a) 30, 9; erfc(f(a / 30)) 43, 11; lgamma(f(a / 10))
52, 11; igamma(19.9 x, 40 x[::-1]) 1877, 164; igammac likewise 1443, 164.

Not in the tables, measured in the same way at a: i0, i0e, i1, i1e, k0, k0e, k1, k1e (15 to 19,
30 to 39), airy_ai(a / 15) (44, 3430), zeta(1.1 + 9 x, a) (100, 169) and polygamma of the orders 1,
2, 5 (80 to 109, 173 to 186), where SciPy is not faster; j0, j1, y0, y1 (53 to 57, 30), whose
errors grow with x.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

#: primitive -> function of a float64 array in scipy.special
UFUNCS = {
    "digamma": "psi",
    "erf": "erf",
    "erfcx": "erfcx",
    "erfinv": "erfinv",
    "log_ndtr": "log_ndtr",
    "ndtri": "ndtri",
}
#: likewise, where no more than float32's digits are wanted of the float64 numbers
NARROW = {
    "erfc": "erfc",
    "lgamma": "gammaln",
}
#: likewise of two arrays, the first one between these bounds
PAIRS = {
    "igamma": "gammainc",
    "igammac": "gammaincc",
}
BETWEEN = (1e-4, 20.0)


@functools.cache
def _part(name: str) -> Any:
    """SciPy's `special` or `linalg`; None without SciPy."""
    before = _blas()
    try:
        if name == "special":
            from scipy import special as part
        else:
            from scipy import linalg as part
    except ImportError:
        return None
    # SciPy brings a BLAS of its own, which knows nothing of `set_num_threads` until now.
    if before:
        for path, pool in _blas().items():
            if path not in before:
                pool.set_num_threads(min([known.num_threads for known in before.values()]))
    return part


def _blas() -> dict[str, Any]:
    """The BLAS libraries in use, by their files."""
    import threadpoolctl

    libraries = threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers
    return {library.filepath: library for library in libraries}


@functools.cache
def ufunc(word: str, narrow: bool = False) -> Any:
    """SciPy's function for a primitive; None where the formula beside it is to be used."""
    name = UFUNCS.get(word) or PAIRS.get(word) or (NARROW.get(word) if narrow else None)
    special = None if name is None else _part("special")
    if special is None:
        return None
    function = getattr(special, name)
    return _log_gamma(function) if word == "lgamma" else function


def _log_gamma(function: Any) -> Any:
    """SciPy has -inf at -inf, PyTorch inf."""
    return lambda x: function(np.where(x == -np.inf, np.inf, x))


@functools.cache
def routine(name: str, dtype: Any) -> Any:
    """LAPACK's or BLAS' routine of this name, without the letter of the dtype, in SciPy.

    None for dtypes that LAPACK does not know, without SciPy, and where SciPy is too old for it.
    """
    letter = {"f": "s", "d": "d", "F": "c", "D": "z"}.get(dtype.char)
    linalg = None if letter is None else _part("linalg")
    if linalg is None:
        return None
    return getattr(linalg.blas if name == "trsm" else linalg.lapack, f"{letter}{name}", None)

"""Special functions: CuPy's, of SciPy's names; two-byte floats go through float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cupyx.scipy import special

_f32 = np.dtype(np.float32)


def _widened(function: Callable[..., Any]) -> Callable[..., Any]:
    def word(x: Any) -> Any:
        if x.itemsize == 2:
            return function(x.astype(_f32)).astype(x.dtype)
        return function(x)

    return word


erf = _widened(special.erf)
erfc = _widened(special.erfc)
erfcx = _widened(special.erfcx)
erfinv = _widened(special.erfinv)
lgamma = _widened(special.gammaln)
digamma = _widened(special.digamma)
ndtri = _widened(special.ndtri)
log_ndtr = _widened(special.log_ndtr)
i0 = _widened(special.i0)
i0e = _widened(special.i0e)
i1 = _widened(special.i1)
i1e = _widened(special.i1e)


def polygamma(x: Any, *, n: int) -> Any:
    wide = x.astype(np.float64)
    return special.polygamma(n, wide).astype(x.dtype)

"""Special functions: CuPy's, of SciPy's names; two-byte floats go through float32."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
from cupyx.scipy import special

_f32 = np.dtype(np.float32)


def _widened(function: Callable[..., Any]) -> Callable[..., Any]:
    def word(x: Any) -> Any:
        if x.itemsize == 2:
            return function(x.astype(_f32)).astype(x.dtype)
        return function(x)

    return word


def _lgamma(x: Any) -> Any:
    return cupy.where(cupy.isinf(x), cupy.abs(x), special.gammaln(x))


def _unbounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """NaN at infinity, where PyTorch's series multiply it by zero."""
    return _widened(lambda x: cupy.where(cupy.isinf(x), x.dtype.type(np.nan), function(x)))


erf = _widened(special.erf)
erfc = _widened(special.erfc)
erfcx = _widened(special.erfcx)
erfinv = _widened(special.erfinv)
lgamma = _widened(_lgamma)
digamma = _widened(special.digamma)
ndtri = _widened(special.ndtri)
log_ndtr = _widened(special.log_ndtr)
i0 = _unbounded(special.i0)
i0e = _widened(special.i0e)
i1 = _unbounded(special.i1)
i1e = _widened(special.i1e)


def polygamma(x: Any, *, n: int) -> Any:
    """(-1)^(n+1) n! zeta(n + 1, x), which is the n-th derivative of digamma for n > 0."""
    if n == 0:
        return digamma(x)
    wide = x.astype(np.float64)
    scale = math.factorial(n) * (-1.0) ** (n + 1)
    return (special.zeta(float(n + 1), wide) * scale).astype(x.dtype)

"""Special functions: CuPy's, of SciPy's names; two-byte floats go through float32.

Bessel functions and what follows are computed in float64: CUDA's float32 ones lose half the digits
beyond 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
from cupyx.scipy import special

from tensorflow_lite_clone.backends.numpy.primitives.airy import PIECES
from tensorflow_lite_clone.backends.numpy.primitives.bessel import K0_TAIL, K1_TAIL
from tensorflow_lite_clone.backends.numpy.primitives.special import ratio

_f32 = np.dtype(np.float32)


def _widened(function: Callable[..., Any]) -> Callable[..., Any]:
    def word(*operands: Any) -> Any:
        dtype = operands[0].dtype
        if dtype.itemsize == 2:
            return function(*[x.astype(_f32) for x in operands]).astype(dtype)
        return function(*operands)

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


def _in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    def word(*operands: Any) -> Any:
        wide = [x.astype(np.float64, copy=False) for x in operands]
        return function(*wide).astype(operands[0].dtype, copy=False)

    return _widened(word)


def _bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """NaN where the last operand is infinite, as PyTorch has it."""
    return _in_double(
        lambda *operands: cupy.where(cupy.isinf(operands[-1]), np.nan, function(*operands))
    )


def _scaled(function: Callable[..., Any], tail: tuple) -> Callable[..., Any]:
    """exp(x) times a modified Bessel function, which underflows; `tail` is NumPy's."""

    def scaled(x: Any) -> Any:
        core = cupy.exp(cupy.minimum(x, 2.0)) * function(x)
        return cupy.where(x > 2.0, ratio(2.0 / x, tail) / cupy.sqrt(x), core)

    return _in_double(scaled)


def _airy_ai(x: Any) -> Any:
    """NumPy's formulas, all of them everywhere: nothing is read back."""
    y = cupy.full_like(x, np.nan)
    start = -np.inf
    for end, function in PIECES:
        y = cupy.where((x > start) & (x <= end), function(x), y)
        start = end
    return y


def _zeta(s: Any, q: Any) -> Any:
    """NaN at infinity, as in PyTorch, but for the poles at q <= 0 and the power of q = 1."""
    lost = (s > 1.0) & (q == np.inf) | (s == np.inf) & (q > 1.0)
    return cupy.where(lost, np.nan, special.zeta(s, q))


j0, j1 = _bounded(special.j0), _bounded(special.j1)
y0, y1 = _bounded(special.y0), _bounded(special.y1)
k0, k1 = _in_double(special.k0), _in_double(special.k1)
k0e, k1e = _scaled(special.k0, K0_TAIL), _scaled(special.k1, K1_TAIL)
airy_ai = _bounded(_airy_ai)
igamma, igammac = _in_double(special.gammainc), _in_double(special.gammaincc)
zeta = _in_double(_zeta)

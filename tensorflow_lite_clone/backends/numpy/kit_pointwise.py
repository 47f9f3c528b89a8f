"""NumPy's element-wise words beyond the standard, and the standard's where NumPy differs."""

from __future__ import annotations

from typing import Any

import numpy as np

exp2 = np.exp2
fmax = np.fmax
fmin = np.fmin
gcd = np.gcd
lcm = np.lcm
logaddexp2 = np.logaddexp2
frexp = np.frexp

_SMALL = 4096  # elements, below which two calls cost less than numpy.clip's one


def _check_divisor(x: Any, y: Any) -> None:
    if x.dtype.kind in "iu" and not np.all(y):
        raise RuntimeError("ZeroDivisionError")


def floor_divide(x: Any, y: Any) -> Any:
    """floor(x / y); RuntimeError when an integer is divided by zero."""
    _check_divisor(x, y)
    return np.floor_divide(x, y)


def remainder(x: Any, y: Any) -> Any:
    """The remainder with y's sign; RuntimeError when an integer is divided by zero."""
    _check_divisor(x, y)
    return np.remainder(x, y)


def fmod(x: Any, y: Any) -> Any:
    """The remainder with x's sign; RuntimeError when an integer is divided by zero."""
    _check_divisor(x, y)
    return np.fmod(x, y)


def pow(x: Any, y: Any) -> Any:
    """x to the power y; integers to negative powers are truncated, as 1 // x**-y would be."""
    if isinstance(y, (int, float, complex)):
        return np.power(x, y)
    if y.dtype.kind == "i" and x.dtype.kind in "iu" and (y < 0).any():
        odd = (y & 1).astype(x.dtype)
        inverse = np.where(x == 1, 1, np.where(x == -1, 1 - 2 * odd, 0)).astype(x.dtype)
        return np.where(y < 0, inverse, np.power(x, np.maximum(y, 0)))
    return np.power(x, y)


def sign(x: Any) -> Any:
    """-1, 0 or 1, where NaN has sign 0; x / abs(x) for complex numbers."""
    if x.dtype.kind in "bu":
        return np.minimum(x, 1) if x.dtype.kind == "u" else x
    y = np.sign(x)
    if x.dtype.kind != "i":
        y = np.where(y == y, y, y.dtype.type(0))
    return y


def clip(x: Any, min: Any = None, max: Any = None) -> Any:
    """x between two bounds, of which one may be None; where they cross it is the upper one."""
    if min is None:
        return np.minimum(x, max)
    if max is None:
        return np.maximum(x, min)
    if x.size > _SMALL:
        return np.clip(x, min, max)
    return np.minimum(np.maximum(x, min), max)


def make_complex(real: Any, imag: Any) -> Any:
    """real + i imag, where infinities and NaNs stay in their part."""
    shape = np.broadcast_shapes(real.shape, imag.shape)
    result = np.empty(shape, np.result_type(real.dtype, np.complex64))
    result.real = real
    result.imag = imag
    return result

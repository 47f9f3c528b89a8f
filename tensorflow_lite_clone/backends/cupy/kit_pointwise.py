"""CuPy's element-wise words beyond the standard, and the standard's where CuPy differs."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

exp2 = cupy.exp2
fmax = cupy.fmax
fmin = cupy.fmin
gcd = cupy.gcd
lcm = cupy.lcm
frexp = cupy.frexp
floor_divide = cupy.floor_divide
remainder = cupy.remainder
fmod = cupy.fmod
logaddexp2 = cupy.logaddexp2


def pow(x: Any, y: Any) -> Any:
    """x to the power y; integers to negative powers are truncated, as 1 // x**-y would be."""
    if isinstance(y, (int, float, complex)):
        return cupy.power(x, y)
    if y.dtype.kind == "i" and x.dtype.kind in "iu":
        odd = (y & 1).astype(x.dtype)
        inverse = cupy.where(x == 1, 1, cupy.where(x == -1, 1 - 2 * odd, 0)).astype(x.dtype)
        return cupy.where(y < 0, inverse, cupy.power(x, cupy.maximum(y, 0)))
    return cupy.power(x, y)


def sign(x: Any) -> Any:
    """-1, 0 or 1, where NaN has sign 0; x / abs(x) for complex numbers."""
    kind = x.dtype.kind
    if kind == "b":
        return x
    if kind == "u":
        return cupy.minimum(x, 1)
    if kind == "c":
        size = cupy.abs(x)
        return cupy.where(size == 0, 0, x / cupy.where(size == 0, 1, size)).astype(x.dtype)
    y = cupy.sign(x)
    return y if kind == "i" else where(y == y, y, 0)


def _operand(value: Any, other: Any) -> Any:
    """A float beside bfloat16 in that dtype: CuPy would widen the result."""
    if type(value) in (int, float) and getattr(other, "dtype", np.dtype(bool)).kind == "V":
        return cupy.full((), value, other.dtype)
    return value


def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y; one of the two may be a number."""
    return cupy.where(condition, _operand(x, y), _operand(y, x))


def clip(x: Any, min: Any = None, max: Any = None) -> Any:
    """x between two bounds, of which one may be None; where they cross it is the upper one."""
    if min is not None:
        x = cupy.maximum(x, _operand(min, x))
    if max is not None:
        x = cupy.minimum(x, _operand(max, x))
    return x


def make_complex(real: Any, imag: Any) -> Any:
    """real + i imag, where infinities and NaNs stay in their part."""
    shape = np.broadcast_shapes(real.shape, imag.shape)
    result = cupy.empty(shape, np.result_type(real.dtype, np.complex64))
    result.real = real
    result.imag = imag
    return result

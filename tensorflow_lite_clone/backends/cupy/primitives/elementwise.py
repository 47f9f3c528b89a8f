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
fmod = cupy.fmod
logaddexp2 = cupy.logaddexp2
_f32 = np.dtype(np.float32)

# NumPy's definitions through fmod, whose results CuPy's do not share for infinities and zeros.
_remainder = cupy.ElementwiseKernel(
    "T x, T y",
    "T z",
    """
    z = fmod(x, y);
    if (z != T(0)) {
      if ((y < T(0)) != (z < T(0))) z += y;
    } else {
      z = copysign(z, y);
    }
    """,
    "tlc_remainder",
)
_floor_divide = cupy.ElementwiseKernel(
    "T x, T y",
    "T z",
    """
    if (y == T(0)) {
      z = x / y;
    } else {
      const T rest = fmod(x, y);
      T quotient = (x - rest) / y;
      if (rest != T(0) && (y < T(0)) != (rest < T(0))) quotient -= T(1);
      if (quotient != T(0)) {
        z = floor(quotient);
        if (quotient - z > T(0.5)) z += T(1);
      } else {
        z = copysign(T(0), x / y);
      }
    }
    """,
    "tlc_floor_divide",
)


def _of_floats(kernel: Any, plain: Any) -> Any:
    """`kernel` for real floats, in float32 for two-byte ones; `plain` for other dtypes."""

    def word(x: Any, y: Any) -> Any:
        dtype = x.dtype if isinstance(x, cupy.ndarray) else y.dtype
        if dtype.kind not in "fV":
            return plain(x, y)
        if dtype.itemsize == 2:
            return kernel(*[_wide(v, dtype) for v in (x, y)]).astype(dtype)
        return kernel(*[v if isinstance(v, cupy.ndarray) else dtype.type(v) for v in (x, y)])

    return word


def _wide(value: Any, dtype: Any) -> Any:
    """An array in float32; a number too, rounded to `dtype`, which needs no copy from the host."""
    if isinstance(value, cupy.ndarray):
        return value.astype(_f32)
    return _f32.type(dtype.type(value))


remainder = _of_floats(_remainder, cupy.remainder)
floor_divide = _of_floats(_floor_divide, cupy.floor_divide)


def round(x: Any) -> Any:
    """To the nearest whole number, ties to even."""
    if x.dtype.kind in "biu":
        return x.copy()
    return cupy.rint(x.astype(_f32)).astype(x.dtype) if x.itemsize == 2 else cupy.rint(x)


def count_nonzero(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    """How many elements are not zero along the axes."""
    return cupy.sum(x != 0, axis=axis, dtype=np.int64, keepdims=keepdims)


def _truth(x: Any) -> Any:
    return x != 0 if x.dtype.kind == "c" else x


def logical_and(x: Any, y: Any) -> Any:
    """Element-wise, for complex numbers as well."""
    return cupy.logical_and(_truth(x), _truth(y))


def logical_or(x: Any, y: Any) -> Any:
    """Element-wise, for complex numbers as well."""
    return cupy.logical_or(_truth(x), _truth(y))


def logical_xor(x: Any, y: Any) -> Any:
    """Element-wise, for complex numbers as well."""
    return cupy.logical_xor(_truth(x), _truth(y))


def logical_not(x: Any) -> Any:
    """Element-wise, for complex numbers as well."""
    return cupy.logical_not(_truth(x))


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
    """-1, 0 or 1; x / abs(x) for complex numbers."""
    kind = x.dtype.kind
    if kind == "u":
        return cupy.minimum(x, 1)
    if kind == "c":
        size = cupy.abs(x)
        size = cupy.where(size == 0, 1, size)
        return make_complex(x.real / size, x.imag / size)
    return cupy.sign(x)


def sgn(x: Any) -> Any:
    """As `sign`, but real NaNs have sign 0; booleans are their own."""
    kind = x.dtype.kind
    if kind == "b":
        return x.copy()
    y = sign(x)
    return y if kind in "iuc" else where(y == y, y, 0)


def _operand(value: Any, other: Any) -> Any:
    """A float beside bfloat16 in that dtype: CuPy would widen the result."""
    if type(value) in (int, float) and getattr(other, "dtype", np.dtype(bool)).kind == "V":
        return cupy.full((), value, other.dtype)
    return value


def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y; one of the two may be a number."""
    x, y = _operand(x, y), _operand(y, x)
    kind = getattr(x, "dtype", None)
    if kind is not None and kind.kind == "V" and kind == getattr(y, "dtype", None):
        # CuPy's has no bfloat16: choose among the bits
        return cupy.where(condition, x.view(np.uint16), y.view(np.uint16)).view(kind)
    return cupy.where(condition, x, y)


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

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

_SMALL = 4096  # elements, below which few calls count for more than fast ones
_BLOCK = 32768  # elements worked on at a time: the intermediate arrays stay in the cache
_BITS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
_BOOL = np.dtype(bool)
_ONE = np.int8(1)


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
    z = np.power(x, y)
    if y.dtype.kind == "f" and (y.shape != x.shape or y.size == 1 or 0 in y.strides):
        # Of one exponent for many numbers NumPy makes a square root: NaN of -inf and -0 of -0.
        half = y == 0.5
        if half.any():
            return np.where(half & ((x == 0) | (x == -np.inf)), np.abs(x), z)
    return z


def sign(x: Any) -> Any:
    """-1, 0 or 1; x / abs(x) for complex numbers, where NumPy looks for infinite parts first."""
    if x.dtype.kind != "c":
        return np.sign(x)
    size = np.abs(x)
    size = np.where(size == 0, size.dtype.type(1), size)
    return make_complex(x.real / size, x.imag / size)


def sgn(x: Any) -> Any:
    """As `sign`, but real NaNs have sign 0; booleans are their own."""
    kind = x.dtype.kind
    if kind in "bu":
        return np.minimum(x, 1) if kind == "u" else x.copy()
    if kind == "c":
        return sign(x)
    y = np.sign(x)
    return y if kind == "i" else np.where(y == y, y, y.dtype.type(0))


def _as_arrays(x: Any, y: Any) -> tuple[Any, Any]:
    """x and y, of which one may be a number, as arrays; NotImplemented if they differ in dtype."""
    values = []
    for value, other in ((x, y), (y, x)):
        if isinstance(value, (int, float)):
            kind = getattr(other, "dtype", _BOOL).kind
            if kind not in "fVc" and (kind not in "iu" or type(value) is not int):
                return NotImplemented, None
            value = np.array(value, other.dtype)
        values.append(value)
    return (values[0], values[1]) if values[0].dtype == values[1].dtype else (NotImplemented, None)


def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y; one of the two may be a number.

    numpy.where branches on every element; where the condition is irregular, choosing by masks of
    bits takes a tenth of the time.
    """
    if condition.size < _SMALL:
        if type(x) is float or type(y) is float:  # which are not weak beside bfloat16
            a, b = _as_arrays(x, y)
            if a is not NotImplemented:
                return np.where(condition, a, b)
        return np.where(condition, x, y)
    a, b = _as_arrays(x, y)
    shape = condition.shape
    if (
        a is NotImplemented
        or a.itemsize > 8
        or condition.dtype != _BOOL
        or (a.ndim and a.shape != shape)
        or (b.ndim and b.shape != shape)
    ):
        return np.where(condition, x, y)
    bits = _BITS[a.itemsize]
    out = np.empty(shape, a.dtype)
    a, b = [
        (np.ascontiguousarray(value).reshape(-1) if value.ndim else value).view(bits)
        for value in (a, b)
    ]
    mask = np.ascontiguousarray(condition).reshape(-1).view(np.int8)
    x_is_zero, y_is_zero = type(x) is int and x == 0, type(y) is int and y == 0
    chosen = out.reshape(-1).view(bits)
    for start in range(0, mask.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        left, right = (a[part] if a.ndim else a), (b[part] if b.ndim else b)
        if x_is_zero:
            np.bitwise_and(right, (mask[part] - _ONE).astype(bits), out=chosen[part])
        elif y_is_zero:
            np.bitwise_and(left, np.negative(mask[part]).astype(bits), out=chosen[part])
        else:
            ones = np.negative(mask[part]).astype(bits)  # all bits set where it holds
            ones &= left ^ right
            np.bitwise_xor(ones, right, out=chosen[part])
    return out


def clip(x: Any, min: Any = None, max: Any = None) -> Any:
    """x between two bounds, of which one may be None; where they cross it is the upper one."""
    if min is None:
        return np.minimum(x, max)
    if max is None:
        return np.maximum(x, min)
    if x.size > _SMALL and x.dtype.kind != "V":  # of bfloat16 it gives float32
        return np.clip(x, min, max)
    return np.minimum(np.maximum(x, min), max)


def make_complex(real: Any, imag: Any) -> Any:
    """real + i imag, where infinities and NaNs stay in their part."""
    shape = np.broadcast_shapes(real.shape, imag.shape)
    result = np.empty(shape, np.result_type(real.dtype, np.complex64))
    result.real = real
    result.imag = imag
    return result

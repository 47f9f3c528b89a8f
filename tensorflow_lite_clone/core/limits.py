"""The numerical limits of dtypes: ``finfo``, ``iinfo``, which numbers they hold."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.dtypes import DType, as_dtype, get_default_dtype

# dtype -> (bits, explicit mantissa bits, largest exponent, decimal digits of precision)
_FORMATS = {
    dtypes.float16: (16, 10, 15, 3),
    dtypes.bfloat16: (16, 7, 127, 2),
    dtypes.float32: (32, 23, 127, 6),
    dtypes.float64: (64, 52, 1023, 15),
    dtypes.float8_e4m3fn: (8, 3, 7, 0),
    dtypes.float8_e5m2: (8, 2, 15, 0),
    dtypes.float8_e4m3fnuz: (8, 3, 8, 0),
    dtypes.float8_e5m2fnuz: (8, 3, 16, 0),  # as PyTorch has it, though the mantissa has 2
    dtypes.float8_e8m0fnu: (8, 0, 128, 0),
}
# They have no infinity, and numbers where others have it.
_LARGEST = {
    dtypes.float8_e4m3fn: 448.0,
    dtypes.float8_e4m3fnuz: 240.0,
    dtypes.float8_e5m2fnuz: 57344.0,
    dtypes.float8_e8m0fnu: 2.0**127,
}


def _checked(name: str, value: Any) -> DType:
    try:
        return as_dtype(value)
    except TypeError:
        raise TypeError(
            f"{name}(): argument 'type' (position 1) must be torch.dtype, not "
            f"{type(value).__name__}"
        ) from None


class _Limits:
    """Base of the two: equal for equal dtypes."""

    dtype: str

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((type(self), self.dtype))


class finfo(_Limits):
    """Limits of a floating-point dtype: ``eps``, ``max``, ``min``, ``tiny``, ``resolution``."""

    def __init__(self, type: DType | None = None) -> None:
        dtype = _checked("finfo", get_default_dtype() if type is None else type).to_real()
        if dtype not in _FORMATS:
            raise TypeError(
                f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                f"'{dtype!r}'"
            )
        self.bits, mantissa, exponent, digits = _FORMATS[dtype]
        self.dtype = dtype.name
        self.eps = 2.0**-mantissa
        self.max = _LARGEST.get(dtype, (2.0 - self.eps) * 2.0**exponent)
        self.tiny = self.smallest_normal = 2.0 ** (1 - exponent)
        self.min = -self.max if dtype.is_signed else self.tiny
        self.resolution = 10.0**-digits

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo(_Limits):
    """Limits of an integer dtype: ``max``, ``min``, ``bits``."""

    def __init__(self, type: DType) -> None:
        type = _checked("iinfo", type)
        if type.kind == "b":
            raise TypeError(f"{type!r} is not supported by torch.iinfo")
        if type.kind not in "iu":
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                f"'{type!r}'"
            )
        self.bits = type.itemsize * 8
        self.dtype = type.name
        signed = type.kind == "i"
        self.max = 2 ** (self.bits - signed) - 1
        self.min = -(2 ** (self.bits - 1)) if signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


#: The C++ types that torch's messages speak of.
_C_NAMES = {
    "float32": "float",
    "float64": "double",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    **{dtype.name: f"c10::{dtype.short_name}" for dtype in dtypes.FLOAT8},
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}
_LARGEST_FLOAT = 3.4028234663852886e38


def range_of(dtype: DType) -> tuple[float, float] | None:
    """The numbers from which torch refuses to convert to `dtype`; None if it takes all.

    Negative integers wrap around in unsigned dtypes, and 16-bit floats are made from float32.
    """
    if dtype.kind in "iu":
        high = 1 << (8 * dtype.itemsize - (dtype.kind == "i"))
        return (1 - high if dtype.kind == "u" else -high), high - 1
    wide = dtype.kind == "b" or dtype.to_real() is dtypes.float64
    return None if wide else (-_LARGEST_FLOAT, _LARGEST_FLOAT)


def as_int64(number: int) -> int:
    """The int64 with the bits of a larger number: sums of uint64 wrap around in the same way.

    OverflowError for more than 64 bits, which PyTorch's numbers do not have.
    """
    if not -(1 << 63) <= number < 1 << 64:
        raise OverflowError(f"int too big to convert: {number} has more than 64 bits")
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def overflow(dtype: DType) -> RuntimeError:
    """torch's error for a number that `dtype` does not hold."""
    name = _C_NAMES.get(dtype.name, dtype.name)
    return RuntimeError(f"value cannot be converted to type {name} without overflow")


def _stored(value: float, dtype: DType) -> float:
    """A finite number that becomes of `dtype` what PyTorch makes of it."""
    largest = finfo(dtype).max
    if abs(value) > largest:
        raise overflow(dtype)
    return max(abs(value), 2.0**-127) if dtype is dtypes.float8_e8m0fnu else value


def fitting_number(value: Any, dtype: DType) -> Any:
    """A Python number that `dtype` holds; RuntimeError when it does not.

    OverflowError for an int of more than 64 bits, whatever the dtype.
    """
    kind = dtype.kind
    if isinstance(value, int):
        as_int64(value)
    if kind == "b":
        return bool(value)
    if isinstance(value, complex):
        if kind != "c" and value.imag:
            raise overflow(dtype)
        if kind == "c":
            fitting_number(value.real, dtype)
            fitting_number(value.imag, dtype)
            return value
        value = value.real
    if not math.isfinite(value):
        if kind in "iu":
            raise overflow(dtype)
        return value
    if dtype in dtypes.FLOAT8:
        return _stored(value, dtype)
    bounds = range_of(dtype)
    if bounds is not None and not bounds[0] <= value <= bounds[1]:
        raise overflow(dtype)
    if kind == "u":
        if value < 0 and isinstance(value, float):
            raise overflow(dtype)
        return int(value) % (1 << 8 * dtype.itemsize)
    return int(value) if kind == "i" else value

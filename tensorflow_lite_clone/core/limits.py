"""``finfo`` and ``iinfo``: the numerical limits of dtypes."""

from __future__ import annotations

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.dtypes import DType, get_default_dtype

# dtype -> (bits, explicit mantissa bits, largest exponent, decimal digits of precision)
_FORMATS = {
    dtypes.float16: (16, 10, 15, 3),
    dtypes.bfloat16: (16, 7, 127, 2),
    dtypes.float32: (32, 23, 127, 6),
    dtypes.float64: (64, 52, 1023, 15),
}


class finfo:
    """Limits of a floating-point dtype: ``eps``, ``max``, ``min``, ``tiny``, ``resolution``."""

    def __init__(self, type: DType | None = None) -> None:
        dtype = (type or get_default_dtype()).to_real()
        if dtype not in _FORMATS:
            raise TypeError(
                f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                f"'{dtype!r}'"
            )
        self.bits, mantissa, exponent, digits = _FORMATS[dtype]
        self.dtype = dtype.name
        self.eps = 2.0**-mantissa
        self.max = (2.0 - self.eps) * 2.0**exponent
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - exponent)
        self.resolution = 10.0**-digits

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype: ``max``, ``min``, ``bits``."""

    def __init__(self, type: DType) -> None:
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
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

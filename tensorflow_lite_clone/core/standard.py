"""The array API standard's promotion, where unsigned integers take part unlike in PyTorch.

Source: https://data-apis.org/array-api/2025.12/API_specification/type_promotion.html.
"""

from __future__ import annotations

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.dtypes import DType, dtype_of_scalar

_SIGNED = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


def promoted(a: DType, b: DType) -> DType:
    """The smallest dtype that holds both; TypeError for uint64 with signed integers.

    What the standard leaves open, such as an integer with a float, is PyTorch's way.
    """
    if a.kind == "b" or b.kind == "b":
        return b if a.kind == "b" else a
    if {a.kind, b.kind} == {"u"}:
        return a if a.itemsize >= b.itemsize else b
    if {a.kind, b.kind} == {"i", "u"}:
        signed, unsigned = (a, b) if a.kind == "i" else (b, a)
        size = max(signed.itemsize, 2 * unsigned.itemsize)
        if size > 8:
            raise TypeError(f"no integer dtype holds both {a.name} and {b.name}")
        return _SIGNED[size]
    return dtypes.promote_types(a, b)


def beside(dtype: DType, number: complex) -> DType:
    """The dtype of an array of `dtype` with a Python number: its own if the number's kind fits."""
    own = dtype_of_scalar(number)
    if own.category <= dtype.category:
        return dtype
    return dtype.to_complex() if own.kind == "c" and dtype.kind == "f" else own


def fits(value: DType, target: DType) -> bool:
    """Whether promotion leads from `value` to `target`."""
    try:
        return promoted(value, target) is target
    except TypeError:
        return False

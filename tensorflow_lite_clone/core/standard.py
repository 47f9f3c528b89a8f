"""The array API standard's promotion, where unsigned integers take part unlike in PyTorch.

Source: https://data-apis.org/array-api/2025.12/API_specification/type_promotion.html.
"""

from __future__ import annotations

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.dtypes import DType, dtype_of_scalar


def promoted(a: DType, b: DType) -> DType:
    """The smallest dtype that holds both; TypeError for uint64 with signed integers.

    What the standard leaves open, such as an integer with a float, is PyTorch's way.
    """
    if dtypes.uint64 in (a, b) and "i" in a.kind + b.kind:
        raise TypeError(f"no integer dtype holds both {a.name} and {b.name}")
    return dtypes.promote_peers(a, b)


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

"""The standard's type promotion, and PyTorch's where the standard leaves it open.

Zero-dimensional arrays count like any other here, and unsigned integers promote with each other
and with signed ones. Source: https://data-apis.org/array-api/2025.12/, "Type Promotion Rules".
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.dtypes import DType, dtype_of_scalar
from tensorflow_lite_clone.ops._operands import as_number, as_operands, cast
from tensorflow_lite_clone.tensor import Tensor

_SIGNED = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


def promoted(a: DType, b: DType) -> DType:
    """The smallest dtype that holds both; TypeError for uint64 with signed integers."""
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


def common_dtype(*values: Any) -> DType:
    """The dtype in which arrays and numbers meet; TypeError unless there is an array."""
    arrays = [value.dtype for value in values if isinstance(value, Tensor)]
    if not arrays:
        raise TypeError("at least one argument must be an array")
    dtype = reduce(promoted, arrays)
    for value in values:
        if not isinstance(value, Tensor):
            dtype = beside(dtype, value)
    return dtype


def together(*values: Any) -> list[Tensor]:
    """Arrays and numbers as arrays of one dtype; numbers have no dimensions."""
    numbers = tuple([value if isinstance(value, Tensor) else _number(value) for value in values])
    return as_operands(numbers, common_dtype(*numbers))


def alike(arrays: Any) -> list[Tensor]:
    """Arrays, each cast to their common dtype."""
    arrays = list(arrays)
    dtype = common_dtype(*arrays)
    return [cast(x, dtype) for x in arrays]


def _number(value: Any) -> complex:
    number = as_number(value)
    if number is None:
        raise TypeError(f"expected an array or a number, got {type(value).__name__}")
    return number

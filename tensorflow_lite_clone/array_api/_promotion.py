"""Arrays and numbers in the dtype in which the standard lets them meet; see `core.standard`.

Zero-dimensional arrays count like any other here.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.standard import beside, promoted
from tensorflow_lite_clone.ops.pointwise._operands import as_number, as_operands, cast
from tensorflow_lite_clone.tensor import Tensor


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


def promoted_pair(x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    """Two arrays, each cast to their common dtype."""
    if x1._storage.physical.dtype is x2._storage.physical.dtype:
        return x1, x2
    dtype = promoted(x1.dtype, x2.dtype)
    return cast(x1, dtype), cast(x2, dtype)


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

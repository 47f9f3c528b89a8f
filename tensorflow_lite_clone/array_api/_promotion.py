"""The standard's promotion of dtypes, where PyTorch's operators promote otherwise.

For the standard an array without dimensions is an array like others, and unsigned integers of
every size are promoted with other integers.
"""

from __future__ import annotations

from functools import cache

from tensorflow_lite_clone.core.dtypes import NAMES, DType, promote_types
from tensorflow_lite_clone.ops._operands import cast
from tensorflow_lite_clone.tensor import Tensor


@cache
def promoted_dtype(a: DType, b: DType) -> DType | None:
    """The dtype in which two arrays are combined; None where the standard leaves it open."""
    if a is b:
        return a
    if a.kind in "fc" and b.kind in "fc":
        return promote_types(a, b)
    if a.kind not in "iu" or b.kind not in "iu":
        return None
    if a.kind == b.kind:
        return a if a.itemsize > b.itemsize else b
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    return NAMES.get(f"int{8 * max(signed.itemsize, 2 * unsigned.itemsize)}")


def promoted_pair(x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    """Two arrays in one dtype, which is PyTorch's where the standard leaves it open."""
    if x1._storage.array.dtype is x2._storage.array.dtype:
        return x1, x2
    dtype = promoted_dtype(x1.dtype, x2.dtype) or promote_types(x1.dtype, x2.dtype)
    return cast(x1, dtype), cast(x2, dtype)


def promoted(x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    """Two arrays in their common dtype; as they are where the standard leaves it open."""
    dtype = promoted_dtype(x1.dtype, x2.dtype)
    return (x1, x2) if dtype is None else (cast(x1, dtype), cast(x2, dtype))

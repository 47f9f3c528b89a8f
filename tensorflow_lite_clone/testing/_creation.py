"""`make_tensor`: random tensors of any dtype for tests."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tensorflow_lite_clone.core.dtypes import DType, bool_, uint8
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.limits import finfo, iinfo
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.ops.create.constructors import empty, full
from tensorflow_lite_clone.ops.pointwise.complex_numbers import view_as_complex
from tensorflow_lite_clone.ops.random.sampling import randint
from tensorflow_lite_clone.tensor import Tensor


def make_tensor(
    *shape: Any,
    dtype: DType,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of uniform values in [low, high), limited to what the dtype has.

    Without bounds: [-9, 9) for floating and complex numbers (both parts), [-9, 10) for integers,
    [0, 10) for uint8, [0, 2) for bool. `noncontiguous` leaves gaps between the elements;
    `exclude_zero` puts the smallest positive normal number, or 1, in the place of zeros. Raises
    ValueError for bounds that contain nothing, and for contradictions.
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous} and memory_format={memory_format}"
        )
    if requires_grad and dtype.kind in "bui":
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"dtype={dtype}"
        )
    gaps = noncontiguous and math.prod(sizes) > 1
    size = Size((*sizes[:-1], 2 * sizes[-1])) if gaps else Size(sizes)
    if dtype.kind in "bui":
        result = _integers(size, dtype, device, low, high)
    else:
        result = _floats(size, dtype, device, low, high)
    if gaps:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = finfo(dtype).tiny if dtype.kind in "fc" else 1
    return result.requires_grad_() if requires_grad else result


def _bounds(low: Any, high: Any, default: tuple, least: Any, end: Any, dtype: DType) -> tuple:
    """`low` and `high`, or the defaults, cut to [least, end)."""
    low, high = default[0] if low is None else low, default[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and dtype.kind in "fc":
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is "
            "deprecated since 2.1 and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=level_outside(),
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < least or low >= end:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} "
            f"only supports [{least}, {end})"
        )
    return max(low, least), min(high, end)


def _integers(sizes: Size, dtype: DType, device: Any, low: Any, high: Any) -> Tensor:
    default = (0, 2) if dtype is bool_ else (0, 10) if dtype is uint8 else (-9, 10)
    least, end = (0, 2) if dtype is bool_ else (iinfo(dtype).min, iinfo(dtype).max + 1)
    low, high = _bounds(low, high, default, least, end, dtype)
    return randint(math.ceil(low), math.ceil(high), sizes, dtype=dtype, device=device)


def _floats(sizes: Size, dtype: DType, device: Any, low: Any, high: Any) -> Tensor:
    real = dtype.to_real()
    low, high = _bounds(low, high, (-9, 9), finfo(real).min, finfo(real).max, dtype)
    parts = Size((*sizes, 2)) if dtype.kind == "c" else sizes
    if low == high:
        result = full(parts, low, dtype=real, device=device)
    else:
        result = empty(parts, dtype=real, device=device).uniform_(low, high)
    return view_as_complex(result) if dtype.kind == "c" else result

"""The standard's element-wise functions, and `astype`."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.array_api._register import word
from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.autograd.namespaces import standard_words
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.ops import (
    arithmetic,
    choice,
    compare,
    complex_numbers,
    logical,
    memory,
    multivariate,
    pointwise,
    power,
)
from tensorflow_lite_clone.ops._operands import cast
from tensorflow_lite_clone.ops.convert import to_device
from tensorflow_lite_clone.ops.memory import Clone
from tensorflow_lite_clone.tensor import Tensor

# Functions that have the standard's meaning under the same or another name. The standard lets
# numbers stand beside arrays everywhere.
for _module, _names in (
    (
        arithmetic,
        "add subtract=sub multiply=mul divide=div floor_divide remainder negative=neg",
    ),
    (power, "pow sqrt square reciprocal"),
    (
        compare,
        "equal=eq not_equal=ne less=lt less_equal=le greater=gt greater_equal=ge maximum minimum",
    ),
    (complex_numbers, "abs=absolute sign=sgn imag"),
    (multivariate, "atan2 copysign hypot logaddexp nextafter"),
    (
        logical,
        "logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor "
        "bitwise_left_shift bitwise_right_shift bitwise_invert=bitwise_not",
    ),
    (
        pointwise,
        "acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log "
        "log10 log1p log2 round signbit sin sinh tan tanh trunc",
    ),
):
    for _entry in _names.split():
        _word, _, _name = _entry.partition("=")
        _found = getattr(_module, _name or _word)
        standard_words[_word] = getattr(_found, "with_numbers", _found)


@word
def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """`x` between two bounds, of which either or both may be left out."""
    if min is None and max is None:
        return positive(x)
    if isinstance(min, Tensor) is isinstance(max, Tensor) or min is None or max is None:
        return choice.clamp(x, min, max)
    return choice.clamp(choice.clamp(x, min), None, max)


@word
def positive(x: Tensor, /) -> Tensor:
    """A copy of `x`."""
    return apply(memory.Clone, x)


@word
def conj(x: Tensor, /) -> Tensor:
    """The complex conjugate."""
    return complex_numbers.conj(x)


@word
def real(x: Tensor, /) -> Tensor:
    """The real parts."""
    return complex_numbers.real(x)


@word
def astype(x: Tensor, dtype: DType, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """`x` in another dtype; a copy unless `copy` is off and nothing changes.

    Raises TypeError for complex numbers as real ones: `real` and `imag` say which part is meant.
    """
    if x.dtype.kind == "c" and dtype.kind not in "bc":
        raise TypeError(f"astype: {x.dtype.name} holds no {dtype.name}; take the real part first")
    if device is not None:
        x = to_device(x, device)
    return apply(Clone, x) if copy and x.dtype is dtype else cast(x, dtype)

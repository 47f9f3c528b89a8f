"""The standard's element-wise functions, and `astype`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.array_api._promotion import promoted_pair
from tensorflow_lite_clone.array_api._register import word
from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.ops import (
    arithmetic,
    choice,
    compare,
    complex_numbers,
    convert,
    logical,
    memory,
    multivariate,
    pointwise,
    power,
    standard_forms,
)
from tensorflow_lite_clone.ops._elementwise import wrong_operands
from tensorflow_lite_clone.ops._operands import cast
from tensorflow_lite_clone.tensor import Tensor

_DOCUMENTS = {
    "add": "x1 plus x2.",
    "subtract": "x1 minus x2.",
    "divide": "x1 over x2; integers give the default dtype.",
}


def _unary(name: str, function: Callable[..., Any]) -> None:
    def unary(x, /):
        return function(x)

    _enter(unary, name, function, "x")


def _binary(name: str, function: Callable[..., Any]) -> None:
    call = getattr(function, "with_numbers", function)

    def binary(x1, x2, /):
        if isinstance(x1, Tensor) and isinstance(x2, Tensor):
            x1, x2 = promoted_pair(x1, x2)
        result = call(x1, x2)
        if result is NotImplemented:
            raise wrong_operands(name, x1, x2)
        return result

    _enter(binary, name, function, "x1")


def _enter(made: Any, name: str, function: Any, first: str) -> None:
    made.__name__ = made.__qualname__ = name
    text = function.__doc__ or _DOCUMENTS.get(name, "")
    made.__doc__ = re.sub(r"\bother\b", "x2", re.sub(r"\binput\b", first, text))
    word(made)


# Functions that have the standard's meaning under the same or another name.
for _make, _rows in (
    (
        _unary,
        (
            (arithmetic, "negative=neg"),
            (power, "sqrt square reciprocal"),
            (complex_numbers, "abs=absolute conj real imag"),
            (logical, "logical_not bitwise_invert=bitwise_not"),
            (
                pointwise,
                "acos acosh asin asinh atan atanh ceil cos cosh exp floor isfinite isinf isnan log "
                "log10 log1p log2 signbit sin sinh tan tanh trunc",
            ),
            (standard_forms, "expm1 round sign"),
        ),
    ),
    (
        _binary,
        (
            (arithmetic, "add=_add subtract=_sub multiply=mul divide=_divide remainder"),
            (
                compare,
                "equal=eq not_equal=ne less=lt less_equal=le greater=gt greater_equal=ge maximum "
                "minimum",
            ),
            (multivariate, "atan2 copysign hypot logaddexp nextafter"),
            (
                logical,
                "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor "
                "bitwise_left_shift bitwise_right_shift",
            ),
            (standard_forms, "floor_divide"),
        ),
    ),
):
    for _module, _names in _rows:
        for _entry in _names.split():
            _word, _, _name = _entry.partition("=")
            _make(_word, getattr(_module, _name or _word))


def _pow(x1: Any, x2: Any) -> Tensor:
    """x1 to the power x2; roots are powers, so that they are +0 or inf for -0 and -inf."""
    if type(x2) is float and abs(x2) == 0.5:
        return power._pow.with_numbers(x1, x2)
    return power.pow(x1, x2)


_binary("pow", _pow)


@word
def positive(x: Tensor, /) -> Tensor:
    """A copy of `x`."""
    return apply(memory.Clone, x)


@word
def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """`x` between two bounds, of which either or both may be left out."""
    if min is None and max is None:
        return positive(x)
    if isinstance(min, Tensor) is isinstance(max, Tensor) or min is None or max is None:
        return choice.clamp(x, min, max)
    return choice.clamp(choice.clamp(x, min), None, max)


@word


@word
def astype(x: Tensor, dtype: DType, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """`x` in another dtype; a copy unless `copy` is off and nothing changes.

    Raises TypeError for complex numbers as real ones: `real` and `imag` say which part is meant.
    """
    if x.dtype.kind == "c" and dtype.kind not in "bc":
        raise TypeError(f"astype: {x.dtype.name} holds no {dtype.name}; take the real part first")
    if device is not None:
        x = convert.to_device(x, device)
    return positive(x) if copy and x.dtype is dtype else cast(x, dtype)

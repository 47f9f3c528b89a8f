"""Which numbers the element-wise functions take, and which dtypes meet."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from hypothesis import strategies as st

import tensorflow_lite_clone as tlc
from tests.array_api.judge import (
    ALL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMERIC,
    ONE_ROUNDING,
    same,
    strict,
    theirs,
)
from tests.array_api.strategies import xp, xps

BOOL = ("bool",)
FLOATING = FLOATS + COMPLEX

#: The dtypes for which the standard defines each function.
UNARY = {
    **dict.fromkeys(
        "abs conj negative positive isfinite isinf isnan round sign square".split(), NUMERIC
    ),
    **dict.fromkeys("ceil floor trunc".split(), INTEGERS + FLOATS),
    **dict.fromkeys(
        "acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 reciprocal sin "
        "sinh sqrt tan tanh".split(), FLOATING
    ),
    "bitwise_invert": BOOL + INTEGERS, "imag": COMPLEX, "logical_not": BOOL, "real": NUMERIC,
    "signbit": FLOATS,
}  # fmt: skip
BINARY = {
    **dict.fromkeys("add subtract multiply pow".split(), NUMERIC),
    **dict.fromkeys("floor_divide remainder maximum minimum".split(), INTEGERS + FLOATS),
    **dict.fromkeys("atan2 copysign hypot logaddexp nextafter".split(), FLOATS),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor".split(), BOOL + INTEGERS),
    **dict.fromkeys("bitwise_left_shift bitwise_right_shift".split(), INTEGERS),
    **dict.fromkeys("equal not_equal".split(), ALL),
    **dict.fromkeys("greater greater_equal less less_equal".split(), INTEGERS + FLOATS),
    **dict.fromkeys("logical_and logical_or logical_xor".split(), BOOL),
    "divide": FLOATING,
}  # fmt: skip
SHIFTS = ("bitwise_left_shift", "bitwise_right_shift")
#: Where array-api-strict, which is NumPy, has other special cases than the standard prefers.
FINITE = ("floor_divide", "expm1", "sign", "pow", "reciprocal", "divide", "multiply", "square")


#: Asserts that an array is array-api-strict's, but for one rounding.
nearly = functools.partial(same, tolerance=ONE_ROUNDING)


def strictly(x: Any) -> Any:
    """The same numbers in array-api-strict."""
    return theirs(np.asarray(x)) if isinstance(x, tlc.Tensor) else x


def numbers(dtype: str, name: str, second: bool = False) -> st.SearchStrategy[Any]:
    """Numbers of a dtype for which `name` is defined, and without large rounding errors."""
    anything = name not in FINITE
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        low, high = max(info.min, -(2**40)), min(info.max, 2**40)
        if name == "pow":
            low, high = 0, 5 if second else 9
        elif name in SHIFTS and second:
            low, high = 0, 7
        elif name in ("floor_divide", "remainder") and second:
            low = 1
        return st.integers(low, high)
    if dtype in FLOATS:
        width = 32 if dtype == "float32" else 64
        if anything:
            return st.floats(width=width)
        bound = 4.0 if name == "pow" else 2.0**20
        return st.floats(0.0 if name == "pow" and not second else -bound, bound, width=width)
    if dtype in COMPLEX:
        return st.complex_numbers(
            width=64 if dtype == "complex64" else 128,
            min_magnitude=0.5,
            max_magnitude=None if anything else 4.0,
            **({} if anything else {"allow_nan": False, "allow_infinity": False}),
        )
    return st.booleans()


def arrays(dtype: str, name: str, shape: Any, second: bool = False) -> st.SearchStrategy[Any]:
    return xps.arrays(getattr(xp, dtype), shape, elements=numbers(dtype, name, second))


SHAPES = xps.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


def promotable(a: str, b: str) -> bool:
    try:
        strict.result_type(getattr(strict, a), getattr(strict, b))
    except TypeError:
        return False
    return True


PAIRS = [(a, b) for a in ALL for b in ALL if promotable(a, b)]

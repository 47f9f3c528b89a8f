"""Element-wise words that keep the memory layout of their operand, such as channels last.

CuPy's own return row-major arrays for any operand that is neither row- nor column-major. Here such
an operand is seen with its axes in the order of memory, and the result the other way round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy

from tensorflow_lite_clone.backends.cupy.arrays import inverse, memory_order

_UNARY = """
    abs acos acosh asin asinh atan atanh ceil conj cos cosh exp expm1 floor isfinite isinf isnan log
    log1p log2 log10 negative reciprocal signbit sin sinh sqrt square tan tanh trunc
"""
_BINARY = """
    add atan2 copysign divide equal greater greater_equal hypot less less_equal logaddexp maximum
    minimum multiply not_equal subtract
"""


def _unary(function: Callable[..., Any]) -> Callable[..., Any]:
    def word(x: Any) -> Any:
        if x.ndim > 2 and (order := memory_order(x)) is not None:
            return function(x.transpose(order)).transpose(inverse(order))
        return function(x)

    return word


def _binary(function: Callable[..., Any]) -> Callable[..., Any]:
    def word(x: Any, y: Any) -> Any:
        ndim = getattr(x, "ndim", 0)
        if ndim > 2 and (order := memory_order(x)) is not None:
            other = getattr(y, "ndim", 0)
            if other == ndim:
                y = y.transpose(order)
            elif other:
                return function(x, y)
            return function(x.transpose(order), y).transpose(inverse(order))
        return function(x, y)

    return word


WORDS = {
    **{name: _unary(getattr(cupy, name)) for name in _UNARY.split()},
    **{name: _binary(getattr(cupy, name)) for name in _BINARY.split()},
}

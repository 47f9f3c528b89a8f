"""Elementwise functions that keep the memory layout of their operand, such as channels last.

CuPy's own return row-major arrays for any operand that is neither row- nor column-major. Here such
an operand is seen with its axes in the order of memory, and the result the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import cupy

from tensorflow_lite_clone.backends.cupy.arrays import inverse, memory_order
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES


def _unary(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        if x.ndim > 2 and (order := memory_order(x)) is not None:
            return function(x.transpose(order)).transpose(inverse(order))
        return function(x)

    return call


def _binary(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, y: Any) -> Any:
        ndim = getattr(x, "ndim", 0)
        if ndim > 2 and (order := memory_order(x)) is not None:
            other = getattr(y, "ndim", 0)
            if other == ndim:
                y = y.transpose(order)
            elif other:
                return function(x, y)
            return function(x.transpose(order), y).transpose(inverse(order))
        return function(x, y)

    return call


def keeping(own: Container[str]) -> dict[str, Callable[..., Any]]:
    """Such forms of CuPy's elementwise functions, of one or two operands, that nobody has `own`."""
    makers = {1: _unary, 2: _binary}
    return {
        name: makers[record.arity](getattr(cupy, name))
        for name, record in PRIMITIVES.items()
        if record.standard and record.arity in makers and name not in own
    }

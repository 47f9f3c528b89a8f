"""Words that several forwards and gradients share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tensorflow_lite_clone.core.dtypes import float32


def conj(F: Any, x: Any) -> Any:
    """The complex conjugate; real values as they are, without a copy."""
    return F.conj(x) if x.dtype.kind == "c" else x


def wide(F: Any, x: Any) -> Any:
    """`x` in float32 if it is of half precision; None stays None."""
    return F.astype(x, float32) if x is not None and x.dtype.itemsize == 2 else x


def scaled(F: Any, x: Any, number: Any) -> Any:
    """`x` times a number, which two-byte floats are not rounded before, but after."""
    if x.dtype.itemsize == 2 and x.dtype.kind not in "iu":
        return F.astype(F.astype(x, float32) * number, x.dtype)
    return x * number


def zeros(F: Any, g: Any) -> Any:
    """The gradient of a function that is constant in pieces."""
    return F.zeros_like(g)


def no_gradient(name: str) -> Callable[..., Any]:
    """The gradient of a function that has none in PyTorch either: it says so when asked."""

    def refuse(F: Any, g: Any) -> Any:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return refuse


def widened(forward: Callable[..., Any]) -> Callable[..., Any]:
    """A forward of inputs x, y, z that computes two-byte floats in float32.

    A formula would round them at every step; and NumPy does not take Python's floats for weak
    beside bfloat16, which is not its own.
    """
    count = forward.__code__.co_argcount
    if count == 2:

        def in_float32(F: Any, x: Any, **parameters: Any) -> Any:
            dtype = x.dtype
            if dtype.itemsize != 2 or dtype.kind in "iu":
                return forward(F, x, **parameters)
            return F.astype(forward(F, F.astype(x, float32), **parameters), dtype)

    elif count == 3:

        def in_float32(F: Any, x: Any, y: Any, **parameters: Any) -> Any:  # type: ignore[misc]
            dtype = x.dtype
            if dtype.itemsize != 2 or dtype.kind in "iu":
                return forward(F, x, y, **parameters)
            a, b = F.astype(x, float32), F.astype(y, float32)
            return F.astype(forward(F, a, b, **parameters), dtype)

    else:

        def in_float32(F: Any, x: Any, y: Any, z: Any, **parameters: Any) -> Any:  # type: ignore[misc]
            dtype = x.dtype
            if dtype.itemsize != 2 or dtype.kind in "iu":
                return forward(F, x, y, z, **parameters)
            a, b, c = [wide(F, value) for value in (x, y, z)]
            return F.astype(forward(F, a, b, c, **parameters), dtype)

    return wraps(forward)(in_float32)

"""Arithmetic and comparison: ``+ - * / < <= > >= == !=`` and their named forms."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops._formulas import conj
from tensorflow_lite_clone.ops._pointwise import binary, unary
from tensorflow_lite_clone.tensor import Tensor

_add = binary(
    "add",
    x=lambda F, g: g,
    y=lambda F, g: g,
    operators=("__add__", "__radd__", "__iadd__"),
    places=(),
)
_sub = binary(
    "sub",
    "subtract",
    x=lambda F, g: g,
    y=lambda F, g: -g,
    operators=("__sub__", "__rsub__", "__isub__"),
    places=(),
)
mul = binary(
    "mul",
    "multiply",
    x=lambda F, g, y: g * conj(F, y),
    y=lambda F, g, x: g * conj(F, x),
    operators=("__mul__", "__rmul__", "__imul__"),
    alias=("multiply",),
    document="`input` times `other`, elementwise with broadcasting.",
)
_divide = binary(
    "div",
    "divide",
    x=lambda F, g, y: g / conj(F, y),
    y=lambda F, g, x, y: -g * conj(F, x / (y * y)),
    floating=True,
    operators=("__truediv__", "__rtruediv__", "__itruediv__"),
    places=(),
)
neg = unary("neg", "negative", x=lambda F, g: -g, alias=("negative",))

eq = binary("eq", "equal", operators=("__eq__", None, None))
ne = binary("ne", "not_equal", operators=("__ne__", None, None), alias=("not_equal",))
lt = binary("lt", "less", operators=("__lt__", None, None), alias=("less",))
le = binary("le", "less_equal", operators=("__le__", None, None), alias=("less_equal",))
gt = binary("gt", "greater", operators=("__gt__", None, None), alias=("greater",))
ge = binary("ge", "greater_equal", operators=("__ge__", None, None), alias=("greater_equal",))


def _scaled(other: Any, alpha: Any) -> Any:
    return other if alpha == 1 else mul(other, alpha) if isinstance(other, Tensor) else other * alpha


@public("torch", "method")
def add(input: Tensor, other: Any, *, alpha: complex = 1, out: Tensor | None = None) -> Tensor:
    """``input + alpha * other``, elementwise with broadcasting."""
    return _add(input, _scaled(other, alpha), out=out)


@public("method")
def add_(input: Tensor, other: Any, *, alpha: complex = 1) -> Tensor:
    """In-place form of `add`."""
    return _add.inplace(input, _scaled(other, alpha))


@public("torch", "method")
@public("torch", "method", names=("subtract",))
def sub(input: Tensor, other: Any, *, alpha: complex = 1, out: Tensor | None = None) -> Tensor:
    """``input - alpha * other``, elementwise with broadcasting."""
    return _sub(input, _scaled(other, alpha), out=out)


@public("method", names=("sub_", "subtract_"))
def sub_(input: Tensor, other: Any, *, alpha: complex = 1) -> Tensor:
    """In-place form of `sub`."""
    return _sub.inplace(input, _scaled(other, alpha))

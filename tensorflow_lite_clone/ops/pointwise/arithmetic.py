"""Arithmetic: ``+ - * / // %`` and their named forms."""

from __future__ import annotations

import operator
from typing import Any

from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.core.older_orders import in_present_order
from tensorflow_lite_clone.core.public import EXPORTS, export, public
from tensorflow_lite_clone.core.signature import is_number
from tensorflow_lite_clone.dispatch.op import composite
from tensorflow_lite_clone.ops._formulas import conj, no_gradient, zeros
from tensorflow_lite_clone.ops.decorators.autocast import autocasts
from tensorflow_lite_clone.ops.pointwise._elementwise import Pointwise, pointwise, wrong_operands
from tensorflow_lite_clone.ops.pointwise._operands import (
    HALVES,
    as_operands,
    cast,
    half_number,
    operand_dtype,
)
from tensorflow_lite_clone.ops.pointwise._pointwise import binary, unary
from tensorflow_lite_clone.ops.reduce._arguments import override_or_raise
from tensorflow_lite_clone.tensor import Tensor

_HINT = "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."


def _is_bool(value: Any) -> bool:
    return value.dtype.kind == "b" if isinstance(value, Tensor) else isinstance(value, bool)


def _no_bool_difference(values: tuple) -> None:
    seen = [_is_bool(value) for value in values]
    if all(seen):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` "
            "or `logical_xor()` operator instead."
        )
    if any(seen):
        raise RuntimeError(
            f"Subtraction, the `-` operator, with a bool tensor is not supported. {_HINT}"
        )


def _no_bool_negation(values: tuple) -> None:
    if _is_bool(values[0]):
        raise RuntimeError(
            f"Negation, the `-` operator, on a bool tensor is not supported. {_HINT}"
        )


_add = binary(
    "add",
    x=lambda F, g: g,
    y=lambda F, g: g,
    numbers_alone=True,
    assign=operator.iadd,
    operators=("__add__", "__radd__", "__iadd__"),
    places=(),
)
_sub = binary(
    "sub",
    "subtract",
    x=lambda F, g: g,
    y=lambda F, g: -g,
    check=_no_bool_difference,
    numbers_alone=True,
    assign=operator.isub,
    operators=("__sub__", "__rsub__", "__isub__"),
    places=(),
)
mul = binary(
    "mul",
    "multiply",
    x=lambda F, g, y: g * conj(F, y),
    y=lambda F, g, x: g * conj(F, x),
    numbers_alone=True,
    scales=(0, 1),
    assign=operator.imul,
    operators=("__mul__", "__rmul__", "__imul__"),
    alias=("multiply",),
    document="`input` times `other`, elementwise with broadcasting.",
)
_divide = binary(
    "div",
    "divide",
    x=lambda F, g, y: g / conj(F, y),
    y=lambda F, g, x, y: -g * conj(F, (x / y) / y),
    floating=True,
    numbers_alone=True,
    scales=(1,),
    assign=operator.itruediv,
    operators=("__truediv__", None, "__itruediv__"),
    places=(),
)
neg = unary(
    "neg",
    "negative",
    x=lambda F, g: -g,
    check=_no_bool_negation,
    alias=("negative",),
    document="``-input``.",
)
export(neg, "method", name="__neg__")

floor_divide = binary(
    "floor_divide",
    x=no_gradient("floor_divide"),
    y=no_gradient("floor_divide"),
    refuses="bc",
    numbers_alone=True,
    scales=(1,),
    operators=("__floordiv__", "__rfloordiv__", "__ifloordiv__"),
    document="The floor of ``input / other``; its gradient is an error, unlike that of `div`.",
)
remainder = binary(
    "remainder",
    x=lambda F, g: g,
    y=lambda F, g, x, y: -g * F.div_floor(x, y),
    refuses="bc",
    operators=("__mod__", "__rmod__", "__imod__"),
    self_named=True,
    document="The remainder of ``input / other`` with the sign of `other`.",
)
fmod = binary(
    "fmod",
    number_first=False,
    x=lambda F, g: g,
    y=lambda F, g, x, y: -g * F.div_trunc(x, y),
    refuses="bc",
    document="The remainder of ``input / other`` with the sign of `input`.",
)


class DivFloor(Pointwise):
    """The floor of a quotient."""

    primitive = "floor_divide"
    label = "Div"
    refuses = "bc"
    numbers_alone = True
    scales = (1,)

    def forward(F, x, y):
        return F.floor_divide(x, y)

    backward_x = backward_y = zeros


class DivTrunc(Pointwise):
    """A quotient without its fraction."""

    label = "Div"
    refuses = "bc"
    numbers_alone = True
    scales = (1,)

    def forward(F, x, y):
        return F.truncate_divide(x, y)

    backward_x = backward_y = zeros


@composite
def truncate_divide(F, x, y):
    """x / y rounded towards zero."""
    if x.dtype.kind not in "iu":
        return F.trunc(x / y)
    quotient = F.floor_divide(x, y)
    rounded_down = (quotient < 0) & (quotient * y != x)
    return quotient + F.astype(rounded_down, x.dtype)


_ROUNDED = {"floor": DivFloor, "trunc": DivTrunc}


def _rounded(rounding_mode: Any) -> type[Pointwise]:
    try:
        return _ROUNDED[rounding_mode]
    except KeyError:
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'"
        ) from None


@public("torch", "method", names=("div", "divide"), flat=True)
def div(
    input: Tensor, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None
) -> Tensor:
    """``input / other``, elementwise with broadcasting; integers give the default dtype.

    `rounding_mode` "floor" or "trunc" rounds the quotient, and keeps integers.
    """
    if rounding_mode is None:
        try:
            return _divide(input, other, out=out)
        except TypeError as error:
            return override_or_raise(error, div, input, other)
    return pointwise(_rounded(rounding_mode), input, other, out=out)


@public("method", names=("div_", "divide_"), flat=True)
def div_(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """In-place form of `div`."""
    if rounding_mode is None:
        return _divide.inplace(input, other)
    return pointwise(_rounded(rounding_mode), input, other, inplace=True)


@public("method", names=("__rtruediv__", "__rdiv__"))
@autocasts("reciprocal")
def __rtruediv__(self: Tensor, other: Any) -> Any:
    """``other / self``."""
    if self._storage.physical.dtype.itemsize == 2:
        return self.reciprocal() * other  # as in PyTorch the reciprocal has two bytes
    quotient = _divide.reflected(self, other)
    if quotient is NotImplemented and hasattr(type(other), "__array__"):
        return self.reciprocal() * other  # which NumPy answers, and we wrap
    return quotient


export(EXPORTS["method"]["__truediv__"], "method", name="__div__")


@public("torch", "method", flat=True)
def true_divide(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """``input / other``, elementwise with broadcasting; integers give the default dtype."""
    try:
        return _divide(input, other, out=out)
    except TypeError as error:
        return override_or_raise(error, true_divide, input, other)


export(_divide.inplace, "method", name="true_divide_")


def _sum(op: Any, input: Any, other: Any, alpha: Any, out: Any = None) -> Any:
    """``op(input, alpha * other)``."""
    if type(alpha) is int and alpha == 1:
        return op(input, other, out=out)
    result = op(input, _scaled(input, other, alpha), out=out)
    return cast(result, operand_dtype(input, other)) if out is None else out


def _scaled(input: Any, other: Any, alpha: Any) -> Any:
    """``alpha * other`` in the dtype of the result, after torch's checks of `alpha`.

    For half floats in float32: their sum is what PyTorch rounds.
    """
    if type(alpha) is int and alpha == 1:
        return other
    dtype = operand_dtype(input, other)
    if isinstance(alpha, bool) and dtype.kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and dtype.kind in "biu":
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )
    if isinstance(alpha, complex) and dtype.kind != "c":
        raise RuntimeError(
            "For non-complex input tensors, argument alpha must not be a complex number."
        )
    if dtype.kind == "b":
        alpha = bool(alpha)
    if dtype in HALVES and isinstance(input, Tensor) and not input._storage.backend.rounds_numbers:
        other = as_operands((input, other), dtype)[1]
        alpha = half_number(alpha, other)
        other = cast(other if other.ndim or not input.ndim else other.reshape(1), float32)
        return mul(other, alpha)
    if not isinstance(other, Tensor) or other.is_sparse:
        return other * alpha
    if other.ndim or (isinstance(input, Tensor) and not input.ndim):
        other = cast(other, dtype)
    return mul(other, alpha)


def _is_operand(parameter: str, value: Any) -> bool:
    return is_number(value) if parameter == "alpha" else isinstance(value, Tensor)


def _other_and_alpha(name: str, alpha: Any, input: Tensor, *values: Any) -> tuple[Any, Any]:
    """What a sum's further arguments by position mean: numbers ``other, alpha``, or the earlier
    order ``alpha, other``."""
    if len(values) == 2 and all(map(is_number, values)) and alpha == 1:
        other, alpha = values
    else:
        keywords = {} if alpha == 1 else {"alpha": alpha}
        named = in_present_order(name, _is_operand, (input, *values), keywords)
        if named is None:
            raise wrong_operands(name, input, *values)
        other, alpha = named["other"], named["alpha"]
    return other, alpha.item() if isinstance(alpha, Tensor) else alpha


@public("torch", "method", flat=True)
def add(
    input: Tensor, other: Any, *more: Any, alpha: complex = 1, out: Tensor | None = None
) -> Tensor:
    """``input + alpha * other``, elementwise with broadcasting."""
    if more:
        other, alpha = _other_and_alpha("add", alpha, input, other, *more)
    try:
        return _sum(_add, input, other, alpha, out)
    except TypeError as error:
        return override_or_raise(error, add, input, other)


@public("method", flat=True)
def add_(input: Tensor, other: Any, *more: Any, alpha: complex = 1) -> Tensor:
    """In-place form of `add`."""
    if more:
        other, alpha = _other_and_alpha("add_", alpha, input, other, *more)
    try:
        return _add.inplace(input, _scaled(input, other, alpha))
    except TypeError as error:
        return override_or_raise(error, add_, input, other)


@public("torch", "method", names=("sub", "subtract"), flat=True)
def sub(
    input: Tensor, other: Any, *more: Any, alpha: complex = 1, out: Tensor | None = None
) -> Tensor:
    """``input - alpha * other``, elementwise with broadcasting."""
    if more:
        other, alpha = _other_and_alpha("sub", alpha, input, other, *more)
    if alpha != 1:
        _no_bool_difference((input, other))
    try:
        return _sum(_sub, input, other, alpha, out)
    except TypeError as error:
        return override_or_raise(error, sub, input, other)


@public("method", names=("sub_", "subtract_"), flat=True)
def sub_(input: Tensor, other: Any, *more: Any, alpha: complex = 1) -> Tensor:
    """In-place form of `sub`."""
    if more:
        other, alpha = _other_and_alpha("sub_", alpha, input, other, *more)
    try:
        return _sub.inplace(input, _scaled(input, other, alpha))
    except TypeError as error:
        return override_or_raise(error, sub_, input, other)


@public("torch")
def rsub(input: Tensor, other: Any, *more: Any, alpha: complex = 1) -> Tensor:
    """``other - alpha * input``."""
    if len(more) == 1 and is_number(other) and is_number(more[0]):
        (alpha,) = more
    elif more or not isinstance(input, Tensor):
        raise wrong_operands("rsub", input, other)
    _no_bool_difference((other, input))
    return _sum(_sub, other, input, alpha)


@public("torch", "method")
def positive(input: Tensor) -> Tensor:
    """`input` itself; RuntimeError for booleans."""
    if _is_bool(input):
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


export(positive, "method", name="__pos__")

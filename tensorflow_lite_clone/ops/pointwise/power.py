"""Powers: ``**``, `pow`, `float_power`, and the roots and squares that have names."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.dtypes import complex128, float64, int64, uncastable
from tensorflow_lite_clone.core.errors import NotStrided
from tensorflow_lite_clone.core.interception import try_overrides
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.signature import also_self
from tensorflow_lite_clone.ops._formulas import conj, scaled, widened
from tensorflow_lite_clone.ops.decorators.autocast import active as autocast
from tensorflow_lite_clone.ops.decorators.autocast import (
    autocasts,
    calls_cast_operands,
    cast_operands,
)
from tensorflow_lite_clone.ops.decorators.out import write_out
from tensorflow_lite_clone.ops.pointwise._elementwise import (
    Pointwise,
    pointwise,
    write_pointwise,
    wrong_operands,
)
from tensorflow_lite_clone.ops.pointwise._operands import (
    as_number,
    cast,
    half_number,
    operand_dtype,
)
from tensorflow_lite_clone.ops.pointwise._pointwise import binary, unary
from tensorflow_lite_clone.ops.reduce._arguments import override_or_raise
from tensorflow_lite_clone.tensor import Tensor


def power(F: Any, x: Any, n: Any) -> Any:
    """x to the power of a number; the usual ones without logarithms."""
    if n == 2:
        return x * x
    if n == 1:
        return x
    if n == 3:
        return x * x * x
    if n == 0.5:
        return F.sqrt(x)
    if n == -1:
        return 1 / x
    if n == -0.5:
        return 1 / F.sqrt(x)
    if n == -2:
        return 1 / (x * x)
    return F.pow(x, n)


class PowScalar(Pointwise):
    """x to the power of a number."""

    label = "Pow"

    def forward(F, x, *, exponent):
        if exponent == 1:
            return F.copy(x)
        if exponent == 0:
            return F.ones_like(x)
        if x.dtype.itemsize != 2 or x.dtype.kind in "iu" or exponent == 2:
            return power(F, x, exponent)
        # PyTorch rounds the exponent, and the square where it goes on with one.
        if exponent == -2:
            x, exponent = x * x, -1
        elif exponent == 3 and x.dtype.kind == "V":
            return x * x * x
        exact = F.astype(x, F.float32)
        return F.astype(power(F, exact, float(x.dtype.type(exponent))), x.dtype)

    def backward_x(F, g, x, *, exponent):
        if exponent == 0:
            return F.zeros_like(g)
        if exponent == 2:
            return g * conj(F, 2 * x)
        return g * conj(F, scaled(F, F.pow_scalar(x, exponent=exponent - 1), exponent))


def _base_gradient(F, g, x, y):
    return F.where(y == 0, 0, g * conj(F, y * F.pow(x, y - 1)))


def _exponent_gradient(F, g, x, y, out):
    kept = F.real(y) if y.dtype.kind == "c" else y
    return F.where((x == 0) & (kept >= 0), 0, g * conj(F, out * F.log(x)))


_pow = binary("pow", x=_base_gradient, y=_exponent_gradient, label="Pow", refuses="b", places=())


def _static_exponent(input: Tensor, exponent: Any) -> Tensor:
    """`input` as the base of a power with a Python number as its exponent."""
    dtype = operand_dtype(input, exponent)
    if dtype.kind in "iu":
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        if exponent >= 1 << (8 * dtype.itemsize - (dtype.kind == "i")):
            raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")
    base = cast(input, dtype)
    half_number(exponent, base)  # which may refuse it
    return base


@calls_cast_operands("pow")
def _power(input: Tensor, exponent: Any) -> Any:
    if autocast:
        input, exponent = cast_operands(_power, input, exponent)
    kind = type(exponent)
    if (kind is float or kind is int) and input._storage.physical.dtype.char in "fd":
        return pointwise(PowScalar, input, exponent=exponent)
    if isinstance(exponent, Tensor):
        return _pow(input, exponent)
    number = as_number(exponent)
    if number is None:
        return try_overrides(_power, input, exponent)
    return pointwise(PowScalar, _static_exponent(input, number), exponent=number)


def _write_power(input: Tensor, exponent: Any) -> Any:
    if isinstance(exponent, Tensor):
        return _pow.inplace(input, exponent)
    number = as_number(exponent)
    if number is None:
        return try_overrides(_write_power, input, exponent)
    dtype = _static_exponent(input, number).dtype
    if dtype is not input.dtype:
        raise uncastable(dtype, input.dtype)
    return write_pointwise(PowScalar, input, (), {"exponent": number})


def __rpow__(self: Tensor, base: Any) -> Any:
    if isinstance(base, Tensor):
        return _pow(base, self)
    number = as_number(base)
    if number is None:
        return try_overrides(__rpow__, self, base)
    return _pow(number, self).contiguous()


export(_power, "method", name="__pow__")
export(__rpow__, "method", name="__rpow__")
export(_write_power, "method", name="__ipow__")


@public("method", flat=True)
def pow(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """``input ** exponent``, either of them a number or a tensor.

    Integers to negative powers raise RuntimeError for a number as exponent.
    """
    if isinstance(input, Tensor):
        try:
            result = _power(input, exponent)
        except NotStrided as reason:
            return reason.answer("pow", input, exponent)
        if result is NotImplemented:
            return override_or_raise(wrong_operands("pow", input, exponent), pow, input, exponent)
    else:
        try:
            result = _pow(input, exponent).contiguous()  # as PyTorch's function for it
        except TypeError as error:
            return override_or_raise(error, pow, input, exponent)
    return (
        result
        if out is None
        else write_out("pow", out, result, (input, exponent), elementwise=True)
    )


export(also_self(pow), "torch", name="pow")


@public("method", flat=True)
def pow_(input: Tensor, exponent: Any) -> Tensor:
    """In-place form of `pow`."""
    result = _write_power(input, exponent)
    if result is NotImplemented:
        raise wrong_operands("pow_", input, exponent)
    return result


def _in_double(input: Any, exponent: Any) -> tuple[Any, Any]:
    complex_ = any(
        [
            value.dtype.kind == "c" if isinstance(value, Tensor) else isinstance(value, complex)
            for value in (input, exponent)
        ]
    )
    dtype = complex128 if complex_ else float64
    return tuple(  # type: ignore[return-value]
        [cast(value, dtype) if isinstance(value, Tensor) else value for value in (input, exponent)]
    )


@public("torch", "method")
def float_power(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """``input ** exponent`` in float64, or complex128 for complex operands."""
    result = pow(*_in_double(input, exponent))
    return (
        result
        if out is None
        else write_out("float_power", out, result, (input, exponent), elementwise=True)
    )


@public("method")
def float_power_(input: Tensor, exponent: Any) -> Tensor:
    """In-place form of `float_power`; `input` has to have the result's dtype."""
    base, exponent = _in_double(input, exponent)
    if base is not input:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {input.dtype.short_name} but the "
            f"operation's result requires dtype {base.dtype.short_name}"
        )
    return pow_(input, exponent)


sqrt = unary(
    "sqrt",
    x=lambda F, g, out: g / (2 * conj(F, out)),
    floating=True,
    document="The square root; NaN for negative numbers.",
)
rsqrt = unary(
    "rsqrt",
    widened(lambda F, x: 1 / F.sqrt(x)),
    x=lambda F, g, out: -0.5 * g * conj(F, out * out * out),
    c={"f": "rsqrt({0})"},
    floating=True,
    document="``1 / sqrt(input)``.",
)
reciprocal = unary(
    "reciprocal",
    x=lambda F, g, out: -g * conj(F, out * out),
    floating=True,
    document="``1 / input``.",
)
_square = unary("square", x=lambda F, g, x: g * conj(F, 2 * x), label="Pow", places=())


@public("torch", "method", flat=True)
@autocasts("pow")
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input * input``; booleans give int64."""
    if isinstance(input, Tensor) and input._storage.physical.dtype.kind == "b":
        input = cast(input, int64)
    try:
        return _square(input, out=out)
    except TypeError as error:
        return override_or_raise(error, square, input)


@public("torch", "method")
def square_(input: Tensor) -> Tensor:
    """In-place form of `square`."""
    return _square.inplace(input)

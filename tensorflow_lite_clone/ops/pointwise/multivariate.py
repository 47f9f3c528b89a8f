"""Functions of two or three numbers: angles, distances, interpolation, fused multiply-adds."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import elementwise
from tensorflow_lite_clone.ops._formulas import conj, scaled, widened, zeros
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops.decorators.out import write_out
from tensorflow_lite_clone.ops.pointwise._elementwise import Pointwise, pointwise
from tensorflow_lite_clone.ops.pointwise._operands import cast, operand_dtype, refuse
from tensorflow_lite_clone.ops.pointwise._pointwise import binary
from tensorflow_lite_clone.ops.pointwise.arithmetic import mul
from tensorflow_lite_clone.ops.pointwise.power import pow
from tensorflow_lite_clone.tensor import Tensor


def _pair(name: str, x: Any, y: Any, document: str, refuses: str = "c", **options: Any) -> Any:
    return binary(name, x=x, y=y, refuses=refuses, document=document, **options)


def _over_square(F, x, y, z):
    """z / (x x + y y), 0 in the origin."""
    square = x * x + y * y
    return F.where(square == 0, 0, z / square)


atan2 = _pair(
    "atan2",
    lambda F, g, x, y: g * _over_square(F, x, y, y),
    lambda F, g, x, y: -g * _over_square(F, x, y, x),
    "The angle of the point with ordinate `input` and abscissa `other`.",
    floating=True,
    numbers=False,
    alias=("arctan2",),
)
hypot = _pair(
    "hypot",
    lambda F, g, x, out: g * (x / out),
    lambda F, g, y, out: g * (y / out),
    "``sqrt(input**2 + other**2)`` without overflow.",
    "biuc",
    numbers=False,
)


def _logaddexp(F, x, y):
    if x.dtype.kind != "c":
        return F.logaddexp(x, y)
    left, right = F.real(x), F.real(y)
    first = left >= right
    result = F.where(first, x, y) + F.log1p(F.exp(F.where(first, y - x, x - y)))
    both = (left == right) & F.isinf(left)
    return F.where(both, F.where(left < 0, x, F.log(F.exp(x) + F.exp(y))), result)


logaddexp = binary(
    "logaddexp",
    _logaddexp,
    x=lambda F, g, x, y: g / conj(F, 1 + F.exp(y - x)),
    y=lambda F, g, x, y: g / conj(F, 1 + F.exp(x - y)),
    refuses="biu",
    numbers=False,
    inplace=(),
    document="``log(exp(input) + exp(other))`` without overflow.",
)
logaddexp2 = _pair(
    "logaddexp2",
    lambda F, g, x, y: g / (1 + F.exp2(y - x)),
    lambda F, g, x, y: g / (1 + F.exp2(x - y)),
    "``log2(2**input + 2**other)`` without overflow.",
    "biuc",
    numbers=False,
    inplace=(),
)
copysign = _pair(
    "copysign",
    lambda F, g, x, out: g * F.where(x == 0, 0, out / x),
    zeros,
    "The size of `input` with the sign of `other`.",
    floating=True,
    number_first=False,
)
nextafter = _pair(
    "nextafter",
    lambda F, g, x, y: F.where(x == y, 0, g),
    zeros,
    "The next number towards `other`.",
    "biuc",
    numbers=False,
)
gcd = _pair(
    "gcd", None, None, "The greatest common divisor.", "bfc",
    numbers=False, inplace=("torch", "method"),
)  # fmt: skip
lcm = _pair(
    "lcm", None, None, "The least common multiple.", "bfc",
    numbers=False, inplace=("torch", "method"),
)  # fmt: skip


def _power_of_two(input: Tensor, other: Tensor) -> Tensor:
    """``2**other``, where an integer `other` does not decide the dtype."""
    if input.dtype.kind in "fc":
        if other.dtype.kind == "b" and input.dtype.kind == "f":
            refuse("ldexp", other.dtype)
        if other.dtype.kind in "iu":
            other = cast(other, input.dtype)
    return pow(2.0, other)


@public("torch", "method")
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input * 2**other``."""
    return mul(input, _power_of_two(input, other), out=out)


@public("torch", "method")
def ldexp_(input: Tensor, other: Tensor) -> Tensor:
    """In-place form of `ldexp`."""
    return mul.inplace(input, _power_of_two(input, other))


class Frexp(Op):
    """Mantissa in [0.5, 1) and exponent of a power of two."""

    primitive = "frexp"
    layout = elementwise
    nondifferentiable = (1,)

    def forward(F, x):
        return F.frexp(x)

    def backward_x(F, g, out1):
        return g / F.exp2(F.astype(out1, g.dtype))


_frexp_result = result_type("frexp", "mantissa", "exponent")


@public("torch", "method")
def frexp(input: Tensor, *, out: tuple[Tensor, Tensor] | None = None) -> Any:
    """`mantissa` and `exponent` (int32) with ``input = mantissa * 2**exponent``."""
    if input.dtype.kind != "f":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    results = apply(Frexp, input)
    if out is not None:
        results = [
            write_out("frexp", target, value, (input,), elementwise=True)
            for target, value in zip(out, results)
        ]
    return _frexp_result(results)


class LerpScalar(Pointwise):
    """x + weight (y - x) with a number as weight."""

    cost = costs.with_a_sum
    label = "Lerp"

    @widened
    def forward(F, x, y, *, weight):
        if abs(weight) < 0.5:
            return x + weight * (y - x)
        return y - (y - x) * (1 - weight)

    def backward_x(F, g, *, weight):
        return scaled(F, g, 1 - weight.conjugate())

    def backward_y(F, g, *, weight):
        return scaled(F, g, weight.conjugate())


class Lerp(Pointwise):
    """x + z (y - x), where z is the weight."""

    cost = costs.with_a_sum

    @widened
    def forward(F, x, y, z):
        near = F.abs(z) < 0.5
        return F.where(near, x + z * (y - x), y - (y - x) * (1 - z))

    def backward_x(F, g, z):
        return g * conj(F, 1 - z)

    def backward_y(F, g, z):
        return g * conj(F, z)

    def backward_z(F, g, x, y):
        return g * conj(F, y - x)


def _lerp(input: Tensor, end: Tensor, weight: Any, inplace: bool, out: Any) -> Tensor:
    dtype = input.dtype
    for name, value in (("end", end), ("weight", weight)):
        if not isinstance(value, Tensor):
            if name == "end":
                raise TypeError(f"lerp(): argument 'end' must be Tensor, not {type(end).__name__}")
        elif value.dtype is not dtype:
            if name == "weight" and not value.ndim:
                weight = cast(weight, dtype)
                continue
            raise RuntimeError(
                f"expected dtype {dtype.name} for `{name}` but got dtype {value.dtype.name}"
            )
    if dtype.kind in "biu":
        refuse("lerp", dtype)
    if isinstance(weight, Tensor):
        if isinstance(out, Tensor) and out.dtype is not dtype:
            raise RuntimeError(
                f"Found dtype {out.dtype.short_name} but expected {dtype.short_name}"
            )
        return pointwise(Lerp, input, end, weight, inplace=inplace, out=out)
    return pointwise(LerpScalar, input, end, inplace=inplace, out=out, weight=weight)


@public("torch", "method")
def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Tensor | None = None) -> Tensor:
    """``input + weight * (end - input)``; `weight` is a number or a tensor."""
    return _lerp(input, end, weight, False, out)


@public("method")
def lerp_(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """In-place form of `lerp`."""
    return _lerp(input, end, weight, True, None)


class Addcmul(Pointwise):
    """x + value y z."""

    cost = costs.with_a_sum
    refuses = "b"

    @widened
    def forward(F, x, y, z, *, value):
        return x + (y * z if value == 1 else value * y * z)

    def backward_x(F, g):
        return g

    def backward_y(F, g, z, *, value):
        return g * conj(F, scaled(F, z, value))

    def backward_z(F, g, y, *, value):
        return g * conj(F, scaled(F, y, value))


class Addcdiv(Pointwise):
    """x + value y / z."""

    cost = costs.with_a_sum
    refuses = "biu"

    @widened
    def forward(F, x, y, z, *, value):
        return x + (y if value == 1 else value * y) / z

    def backward_x(F, g):
        return g

    def backward_y(F, g, z, *, value):
        return g * conj(F, scaled(F, F.ones_like(z), value) / z)

    def backward_z(F, g, y, z, *, value):
        return -g * conj(F, scaled(F, y, value) / (z * z))


def _fused(
    op: type[Pointwise], tensors: tuple, value: Any, inplace: bool = False, out: Any = None
) -> Tensor:
    first, second, third = [tensor.dtype for tensor in tensors]
    if first is not second or first is not third or first.kind != "f":
        if op is Addcdiv and operand_dtype(*tensors[1:]).kind in "biu":
            raise RuntimeError(
                "Integer division with addcdiv is no longer supported: convert the tensors to a "
                "floating dtype, or use input + value * torch.trunc(tensor1 / tensor2)"
            )
        first = operand_dtype(*tensors)
    if isinstance(value, complex) and first.kind != "c":
        raise RuntimeError("value cannot be converted to a real type without overflow")
    if first.kind in "iu":
        value = int(value)
    return pointwise(op, *tensors, inplace=inplace, out=out, value=value)


@public("torch", "method")
def addcmul(
    input: Tensor,
    tensor1: Tensor,
    tensor2: Tensor,
    *,
    value: complex = 1,
    out: Tensor | None = None,
) -> Tensor:
    """``input + value * tensor1 * tensor2``."""
    return _fused(Addcmul, (input, tensor1, tensor2), value, out=out)


@public("method")
def addcmul_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: complex = 1) -> Tensor:
    """In-place form of `addcmul`."""
    return _fused(Addcmul, (input, tensor1, tensor2), value, inplace=True)


@public("torch", "method")
def addcdiv(
    input: Tensor,
    tensor1: Tensor,
    tensor2: Tensor,
    *,
    value: complex = 1,
    out: Tensor | None = None,
) -> Tensor:
    """``input + value * tensor1 / tensor2``; RuntimeError for two integer tensors."""
    return _fused(Addcdiv, (input, tensor1, tensor2), value, out=out)


@public("method")
def addcdiv_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: complex = 1) -> Tensor:
    """In-place form of `addcdiv`."""
    return _fused(Addcdiv, (input, tensor1, tensor2), value, inplace=True)

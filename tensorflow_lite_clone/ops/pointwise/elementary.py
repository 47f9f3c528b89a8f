"""Elementary functions: exponentials, trigonometry, rounding, tests of floating-point values."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import composite
from tensorflow_lite_clone.ops._formulas import conj, scaled, widened, zeros
from tensorflow_lite_clone.ops.pointwise._elementwise import Pointwise, pointwise
from tensorflow_lite_clone.ops.pointwise._pointwise import unary
from tensorflow_lite_clone.tensor import Tensor

LN2, LN10 = math.log(2.0), math.log(10.0)


def _function(name: str, word: Any, x: Any, document: str, **options: Any) -> Any:
    """A row of a function of real or complex numbers; integers give the default dtype."""
    return unary(name, word, x=x, floating=True, document=document, **options)


# --- exponentials and logarithms ----------------------------------------------------------------

exp = _function("exp", "exp", lambda F, g, out: g * conj(F, out), "The exponential.")
exp2 = _function(
    "exp2",
    "exp2",
    lambda F, g, out: g * conj(F, out) * LN2,
    "2 to the power `input`.",
    special=("exp2",),
)
expm1 = _function(
    "expm1",
    "expm1",
    lambda F, g, out: g * (conj(F, out) + 1),
    "``exp(input) - 1``, exact near 0.",
    special=("expm1",),
)
log = _function("log", "log", lambda F, g, x: g / conj(F, x), "The natural logarithm.")
log2 = _function(
    "log2", "log2", lambda F, g, x: g / scaled(F, conj(F, x), LN2), "The logarithm to base 2."
)
log10 = _function(
    "log10", "log10", lambda F, g, x: g / scaled(F, conj(F, x), LN10), "The logarithm to base 10."
)
log1p = _function(
    "log1p",
    "log1p",
    lambda F, g, x: g / conj(F, x + 1),
    "``log(1 + input)``, exact near 0.",
    special=("log1p",),
)

# --- trigonometric and hyperbolic functions -----------------------------------------------------

sin = _function("sin", "sin", lambda F, g, x: g * conj(F, F.cos(x)), "The sine.")
cos = _function("cos", "cos", lambda F, g, x: -g * conj(F, F.sin(x)), "The cosine.")
tan = _function("tan", "tan", lambda F, g, out: g * conj(F, 1 + out * out), "The tangent.")
asin = _function(
    "asin",
    "asin",
    lambda F, g, x: g * conj(F, F.rsqrt(1 - x * x)),
    "The inverse sine.",
    alias=("arcsin",),
)
acos = _function(
    "acos",
    "acos",
    lambda F, g, x: -g * conj(F, F.rsqrt(1 - x * x)),
    "The inverse cosine.",
    alias=("arccos",),
)
atan = _function(
    "atan",
    "atan",
    lambda F, g, x: g / conj(F, x * x + 1),
    "The inverse tangent.",
    alias=("arctan",),
)
sinh = _function("sinh", "sinh", lambda F, g, x: g * conj(F, F.cosh(x)), "The hyperbolic sine.")
cosh = _function("cosh", "cosh", lambda F, g, x: g * conj(F, F.sinh(x)), "The hyperbolic cosine.")
asinh = _function(
    "asinh",
    "asinh",
    lambda F, g, x: g * conj(F, F.rsqrt(x * x + 1)),
    "The inverse hyperbolic sine.",
    alias=("arcsinh",),
)


def _acosh_gradient(F, g, x):
    if x.dtype.kind == "c":  # in the left half plane this is not 1 / sqrt(x x - 1)
        return g * conj(F, F.rsqrt(x - 1) * F.rsqrt(x + 1))
    return g * F.rsqrt(x * x - 1)


acosh = _function(
    "acosh",
    "acosh",
    _acosh_gradient,
    "The inverse hyperbolic cosine.",
    alias=("arccosh",),
)
atanh = _function(
    "atanh",
    "atanh",
    lambda F, g, x: g / conj(F, 1 - x * x),
    "The inverse hyperbolic tangent.",
    alias=("arctanh",),
)


@composite
@widened
def tanh_backward(F, g, y):
    """g (1 - y y)"""
    return g * conj(F, 1 - y * y)


@composite
@widened
def sigmoid_backward(F, g, y):
    """g y (1 - y)"""
    return g * conj(F, (1 - y) * y)


tanh = _function(
    "tanh",
    "tanh",
    lambda F, g, out: F.tanh_backward(g, out),
    "The hyperbolic tangent.",
    places=("torch", "method", "functional"),
)
sigmoid = _function(
    "sigmoid",
    widened(lambda F, x: 1 / (1 + F.exp(-x))),
    lambda F, g, out: F.sigmoid_backward(g, out),
    "The logistic function ``1 / (1 + exp(-input))``.",
    places=("torch", "method", "functional"),
    special=("expit",),
)


@widened
def _sinc(F, x):
    z = x * math.pi
    return F.where(x == 0, 1, F.sin(z) / z)


def _sinc_gradient(F, g, x):
    z = x * math.pi
    below = z * x
    return g * conj(F, F.where(below == 0, 0, (z * F.cos(z) - F.sin(z)) / below))


sinc = _function(
    "sinc", _sinc, _sinc_gradient, "``sin(pi input) / (pi input)``, 1 at 0.", special=("sinc",)
)
deg2rad = unary(
    "deg2rad",
    widened(lambda F, x: x * (math.pi / 180)),
    x=lambda F, g: g * (math.pi / 180),
    floating=True,
    refuses="c",
    document="Degrees as radians.",
)
rad2deg = unary(
    "rad2deg",
    widened(lambda F, x: x * (180 / math.pi)),
    x=lambda F, g: g * (180 / math.pi),
    floating=True,
    refuses="c",
    document="Radians as degrees.",
)

# --- rounding -----------------------------------------------------------------------------------


def _rounding(name: str, document: str, alias: tuple[str, ...] = ()) -> Any:
    return unary(name, x=zeros, refuses="bc", alias=alias, document=document)


floor = _rounding("floor", "The largest integer that is not larger.")
ceil = _rounding("ceil", "The smallest integer that is not smaller.")
trunc = _rounding("trunc", "The integer part.", ("fix",))
_round = unary("round", x=zeros, refuses="bc", places=())
frac = unary(
    "frac",
    widened(lambda F, x: x - F.trunc(x)),
    x=lambda F, g: g,
    refuses="biuc",
    document="What `trunc` takes away, with the sign of `input`.",
)


class RoundDecimals(Pointwise):
    """Rounding to a number of decimals; halves to even, in decimal as computed."""

    label = "Round"
    refuses = "biuc"
    backward_x = zeros

    @widened
    def forward(F, x, *, decimals):
        scale = 10.0 ** abs(decimals)
        return F.round(x * scale) / scale if decimals > 0 else F.round(x / scale) * scale


@public("torch", "method", "special")
def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """The nearest integer, or decimal fraction with `decimals`; halves go to the even one."""
    if decimals == 0:
        return _round(input, out=out)
    return pointwise(RoundDecimals, input, decimals=decimals, out=out)


@public("torch", "method")
def round_(input: Tensor, *, decimals: int = 0) -> Tensor:
    """In-place form of `round`."""
    if decimals == 0:
        return _round.inplace(input)
    return pointwise(RoundDecimals, input, decimals=decimals, inplace=True)


# --- tests --------------------------------------------------------------------------------------


def _test(name: str, word: Any, document: str, refuses: str = "") -> Any:
    return unary(name, word, refuses=refuses, inplace=(), document=document)


isnan = _test("isnan", "isnan", "Whether elements are NaN; a bool tensor.")
isinf = _test("isinf", "isinf", "Whether elements are infinite; a bool tensor.")
isfinite = _test(
    "isfinite", "isfinite", "Whether elements are neither NaN nor infinite; a bool tensor."
)
isposinf = _test(
    "isposinf", lambda F, x: x == F.inf, "Whether elements are inf; a bool tensor.", "c"
)
isneginf = _test(
    "isneginf", lambda F, x: x == -F.inf, "Whether elements are -inf; a bool tensor.", "c"
)
signbit = _test(
    "signbit", "signbit", "Whether the sign is negative, also of -0; a bool tensor.", "c"
)

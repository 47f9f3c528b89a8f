"""Arithmetic, comparisons, logic, casts."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.onnx._graph import RULES, Graph, Traced, rule

#: Functions of one number that ONNX has.
_UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh",
    "atan": "Atan", "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh",
    "erf": "Erf", "exp": "Exp", "floor": "Floor", "isinf": "IsInf", "isnan": "IsNaN",
    "log": "Log", "neg": "Neg", "reciprocal": "Reciprocal", "relu": "Relu", "round": "Round",
    "sgn": "Sign", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh",
    "sqrt": "Sqrt", "standard_round": "Round", "standard_sign": "Sign", "tan": "Tan",
    "tanh": "Tanh",
}  # fmt: skip
#: Rounding leaves integers alone.
_ROUNDING = ("ceil", "floor", "round", "standard_round", "trunc")
#: Functions of two numbers: as ONNX has them, and what they are for booleans.
_BINARY = {
    "add": ("Add", "Or"), "sub": ("Sub", None), "mul": ("Mul", "And"), "div": ("Div", None),
    "pow": ("Pow", None), "maximum": ("Max", "Or"), "minimum": ("Min", "And"),
    "bitwise_and": ("BitwiseAnd", "And"), "bitwise_or": ("BitwiseOr", "Or"),
    "bitwise_xor": ("BitwiseXor", "Xor"), "clamp_min": ("Max", "Or"), "clamp_max": ("Min", "And"),
}  # fmt: skip
_COMPARISONS = {"lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
_LOGIC = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}


def _enter_unary(name: str, word: str) -> None:
    def unary(g: Graph, op: Traced) -> Any:
        if name in _ROUNDING and op.values[0].dtype.kind in "biu":
            return op.inputs[0]
        return g.node(word, op.inputs[0])

    RULES[name] = unary


def _enter_binary(name: str, word: str, of_booleans: str | None) -> None:
    def binary(g: Graph, op: Traced) -> Any:
        boolean = of_booleans is not None and op.values[0].dtype.kind == "b"
        return g.node(of_booleans if boolean and of_booleans else word, *op.inputs)

    RULES[name] = binary


def _enter_comparison(name: str, word: str) -> None:
    def compare(g: Graph, op: Traced) -> Any:
        inputs = op.inputs
        if op.values[0].dtype.kind == "b":
            inputs = [g.cast(x, "int32") for x in inputs if x]
        return g.node(word, *inputs)

    RULES[name] = compare


def _enter_logic(name: str, word: str) -> None:
    RULES[name] = lambda g, op: g.node(word, *truths(g, op))


for _name, _word in _UNARY.items():
    _enter_unary(_name, _word)
for _name, (_word, _of_booleans) in _BINARY.items():
    _enter_binary(_name, _word, _of_booleans)
for _name, _word in _COMPARISONS.items():
    _enter_comparison(_name, _word)
for _name, _word in _LOGIC.items():
    _enter_logic(_name, _word)


def truths(g: Graph, op: Traced) -> list[Any]:
    """The inputs as booleans."""
    return [
        x if value.dtype.kind == "b" else g.cast(x, "bool")
        for x, value in zip(op.inputs, op.values)
    ]


@rule("logical_not")
def logical_not(g: Graph, op: Traced) -> Any:
    return g.node("Not", *truths(g, op))


@rule("bitwise_not")
def bitwise_not(g: Graph, op: Traced) -> Any:
    return g.node("Not" if op.values[0].dtype.kind == "b" else "BitwiseNot", op.inputs[0])


@rule("bitwise_left_shift", "bitwise_right_shift")
def shift(g: Graph, op: Traced) -> Any:
    """ONNX shifts unsigned integers, by less than their bits. A negative one is shifted to the
    right as what its bits inverted are, so that ones come in at the left."""
    x, places = [g.cast(name, "int64") for name in op.inputs if name]
    zero, last = g.constant(0, "int64"), g.constant(63, "int64")
    outside = g.node("Or", g.node("Less", places, zero), g.node("Greater", places, last))
    places = g.cast(g.node("Where", outside, last, places), "uint64")
    if op.name == "bitwise_left_shift":
        shifted = g.node("BitShift", g.cast(x, "uint64"), places, direction="LEFT")
        result = g.node("Where", outside, zero, g.cast(shifted, "int64"))
    else:
        negative = g.node("Less", x, zero)
        bits = g.node("Where", negative, g.node("BitwiseNot", x), x)
        shifted = g.node("BitShift", g.cast(bits, "uint64"), places, direction="RIGHT")
        shifted = g.cast(shifted, "int64")
        result = g.node("Where", negative, g.node("BitwiseNot", shifted), shifted)
    return g.cast(result, op.outputs[0].dtype)


@rule("eq")
def eq(g: Graph, op: Traced) -> Any:
    return g.node("Equal", *op.inputs)


@rule("ne")
def ne(g: Graph, op: Traced) -> Any:
    return g.node("Not", g.node("Equal", *op.inputs))


@rule("cast", "cast_to_integers", "cast_weight")
def cast(g: Graph, op: Traced) -> Any:
    return g.cast(op.inputs[0], op.outputs[0].dtype)


@rule("clone", "to_device", "restride", "conj_physical")
def same(g: Graph, op: Traced) -> Any:
    return op.inputs[0]


@rule("rsqrt")
def rsqrt(g: Graph, op: Traced) -> Any:
    return g.node("Reciprocal", g.node("Sqrt", op.inputs[0]))


@rule("square")
def square(g: Graph, op: Traced) -> Any:
    return g.node("Mul", op.inputs[0], op.inputs[0])


@rule("exp2")
def exp2(g: Graph, op: Traced) -> Any:
    return g.node("Pow", g.number(2, op.values[0]), op.inputs[0])


@rule("expm1", "standard_expm1")
def expm1(g: Graph, op: Traced) -> Any:
    return g.node("Sub", g.node("Exp", op.inputs[0]), g.number(1, op.values[0]))


@rule("log1p")
def log1p(g: Graph, op: Traced) -> Any:
    return g.node("Log", g.node("Add", op.inputs[0], g.number(1, op.values[0])))


def _scaled(name: str, word: str | None, factor: float) -> None:
    def scaled(g: Graph, op: Traced) -> Any:
        x = op.inputs[0] if word is None else g.node(word, op.inputs[0])
        return g.node("Mul", x, g.number(factor, op.values[0]))

    RULES[name] = scaled


_scaled("log2", "Log", 1 / math.log(2))
_scaled("log10", "Log", 1 / math.log(10))
_scaled("deg2rad", None, math.pi / 180)
_scaled("rad2deg", None, 180 / math.pi)


@rule("erfc")
def erfc(g: Graph, op: Traced) -> Any:
    return g.node("Sub", g.number(1, op.values[0]), g.node("Erf", op.inputs[0]))


def truncated(g: Graph, x: Any, like: Any) -> str:
    """Numbers without their fraction."""
    negative = g.node("Less", x, g.number(0, like))
    return g.node("Where", negative, g.node("Ceil", x), g.node("Floor", x))


@rule("trunc")
def trunc(g: Graph, op: Traced) -> Any:
    x, value = op.inputs[0], op.values[0]
    return x if value.dtype.kind in "biu" else truncated(g, x, value)


@rule("frac")
def frac(g: Graph, op: Traced) -> Any:
    return g.node("Sub", op.inputs[0], truncated(g, op.inputs[0], op.values[0]))


@rule("isfinite")
def isfinite(g: Graph, op: Traced) -> Any:
    x = op.inputs[0]
    if op.values[0].dtype.kind in "biu":
        return g.node("Equal", x, x)
    return g.node("Not", g.node("Or", g.node("IsInf", x), g.node("IsNaN", x)))


@rule("isposinf")
def isposinf(g: Graph, op: Traced) -> Any:
    return g.node("IsInf", op.inputs[0], detect_negative=0)


@rule("isneginf")
def isneginf(g: Graph, op: Traced) -> Any:
    return g.node("IsInf", op.inputs[0], detect_positive=0)


@rule("div_floor", "floor_divide", "standard_floor_divide")
def div_floor(g: Graph, op: Traced) -> Any:
    x, y = op.inputs
    if op.values[0].dtype.kind == "f":
        return g.node("Floor", g.node("Div", x, y))
    return g.node("Div", g.node("Sub", x, g.node("Mod", x, y)), y)


@rule("div_trunc")
def div_trunc(g: Graph, op: Traced) -> Any:
    quotient = g.node("Div", *op.inputs)
    return truncated(g, quotient, op.values[0]) if op.values[0].dtype.kind == "f" else quotient


@rule("remainder")
def remainder(g: Graph, op: Traced) -> Any:
    x, y = op.inputs
    if op.values[0].dtype.kind != "f":
        return g.node("Mod", x, y)
    return g.node("Sub", x, g.node("Mul", g.node("Floor", g.node("Div", x, y)), y))


@rule("fmod")
def fmod(g: Graph, op: Traced) -> Any:
    return g.node("Mod", *op.inputs, fmod=1)


@rule("pow_scalar")
def pow_scalar(g: Graph, op: Traced) -> Any:
    x, exponent = op.inputs[0], op["exponent"]
    if exponent == 2:
        return g.node("Mul", x, x)
    if exponent == 0.5:
        return g.node("Sqrt", x)
    return g.node("Pow", x, g.number(exponent, op.values[0]))


@rule("logaddexp")
def logaddexp(g: Graph, op: Traced) -> Any:
    one = g.number(1, op.values[0])
    distance = g.node("Abs", g.node("Sub", *op.inputs))
    rest = g.node("Log", g.node("Add", g.node("Exp", g.node("Neg", distance)), one))
    return g.node("Add", g.node("Max", *op.inputs), rest)


@rule("hypot")
def hypot(g: Graph, op: Traced) -> Any:
    x, y = op.inputs
    return g.node("Sqrt", g.node("Add", g.node("Mul", x, x), g.node("Mul", y, y)))


@rule("xlogy")
def xlogy(g: Graph, op: Traced) -> Any:
    x, y = op.inputs
    zero = g.number(0, op.values[0])
    product = g.node("Mul", x, g.node("Log", y))
    nothing = g.node("And", g.node("Equal", x, zero), g.node("Not", g.node("IsNaN", y)))
    return g.node("Where", nothing, zero, product)


@rule("where")
def where(g: Graph, op: Traced) -> Any:
    condition, x, y = op.inputs
    if op.values[0].dtype.kind != "b":
        condition = g.cast(condition, "bool")
    return g.node("Where", condition, x, y)


@rule("clamp")
def clamp(g: Graph, op: Traced) -> Any:
    low, high = [
        None if limit is None else g.scalar(limit, op.values[0])
        for limit in (op.sizes("min"), op.sizes("max"))
    ]
    return g.node("Clip", op.inputs[0], low, high)


@rule("clamp_between")
def clamp_between(g: Graph, op: Traced) -> Any:
    x, low, high = op.inputs
    return g.node("Min", g.node("Max", x, low), high)


@rule("nan_to_num")
def nan_to_num(g: Graph, op: Traced) -> Any:
    x, value = op.inputs[0], op.values[0]
    if value.dtype.kind != "f":
        return x
    y = g.node("Where", g.node("IsNaN", x), g.number(op["nan"], value), x)
    for sign, limit in (("detect_negative", op["posinf"]), ("detect_positive", op["neginf"])):
        y = g.node("Where", g.node("IsInf", x, **{sign: 0}), g.number(limit, value), y)
    return y


def times(g: Graph, x: Any, factor: Any, like: Any) -> Any:
    """A product with a number, which may be 1."""
    return x if factor == 1 else g.node("Mul", x, g.number(factor, like))


@rule("lerp_scalar")
def lerp_scalar(g: Graph, op: Traced) -> Any:
    x, y = op.inputs
    return g.node("Add", x, times(g, g.node("Sub", y, x), op["weight"], op.values[0]))


@rule("lerp")
def lerp(g: Graph, op: Traced) -> Any:
    x, y, weight = op.inputs
    return g.node("Add", x, g.node("Mul", g.node("Sub", y, x), weight))


@rule("addcmul")
def addcmul(g: Graph, op: Traced) -> Any:
    x, y, z = op.inputs
    return g.node("Add", x, times(g, g.node("Mul", y, z), op["value"], op.values[0]))


@rule("addcdiv")
def addcdiv(g: Graph, op: Traced) -> Any:
    x, y, z = op.inputs
    return g.node("Add", x, times(g, g.node("Div", y, z), op["value"], op.values[0]))


@rule("isclose")
def isclose(g: Graph, op: Traced) -> Any:
    x, y = op.inputs
    like = op.values[0]
    limit = times(g, g.node("Abs", y), op["rtol"], like)
    limit = g.node("Add", limit, g.number(op["atol"], like))
    near = g.node("LessOrEqual", g.node("Abs", g.node("Sub", x, y)), limit)
    near = g.node("Or", near, g.node("Equal", x, y))
    if op["equal_nan"]:
        near = g.node("Or", near, g.node("And", g.node("IsNaN", x), g.node("IsNaN", y)))
    return near


@rule("fmax", "fmin")
def without_nan(g: Graph, op: Traced) -> Any:
    """The larger or smaller number; the other one where one is NaN."""
    x, y = op.inputs
    found = g.node("Max" if op.name == "fmax" else "Min", x, y)
    if op.values[0].dtype.kind != "f":
        return found
    found = g.node("Where", g.node("IsNaN", y), x, found)
    return g.node("Where", g.node("IsNaN", x), y, found)


@rule("atan2")
def atan2(g: Graph, op: Traced) -> Any:
    """The angle of (x, y) from the arc tangent of y / x, moved by pi to the left of x = 0."""
    y, x = op.inputs
    like = op.values[0]
    zero, pi = g.number(0, like), g.number(math.pi, like)
    below = g.node("Less", y, zero)
    turn = g.node("Where", below, g.node("Neg", pi), pi)
    angle = g.node("Atan", g.node("Div", y, x))
    angle = g.node("Where", g.node("Less", x, zero), g.node("Add", angle, turn), angle)
    neither = g.node("And", g.node("Equal", x, zero), g.node("Equal", y, zero))
    return g.node("Where", neither, zero, angle)


@rule("logit")
def logit(g: Graph, op: Traced) -> Any:
    x, like, eps = op.inputs[0], op.values[0], op["eps"]
    if eps is not None:
        x = g.node("Clip", x, g.number(eps, like), g.number(1 - eps, like))
    return g.node("Log", g.node("Div", x, g.node("Sub", g.number(1, like), x)))


@rule("signbit")
def signbit(g: Graph, op: Traced) -> Any:
    x, zero = op.inputs[0], g.number(0, op.values[0])
    below = g.node("Less", x, zero)
    if op.values[0].dtype.kind != "f":
        return below
    return g.node("Or", below, g.node("Less", g.node("Reciprocal", x), zero))  # 1 / -0 is -inf


@rule("heaviside")
def heaviside(g: Graph, op: Traced) -> Any:
    x, y = op.inputs
    zero = g.number(0, op.values[0])
    step = g.cast(g.node("Greater", x, zero), op.outputs[0].dtype)
    return g.node("Where", g.node("Equal", x, zero), y, step)

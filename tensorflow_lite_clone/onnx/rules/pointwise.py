"""Arithmetic, comparisons, logic, casts."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.onnx._graph import RULES, Graph, Traced, rule

#: Functions of one tensor that ONNX has.
_UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh",
    "atan": "Atan", "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "det": "Det",
    "erf": "Erf", "exp": "Exp", "floor": "Floor", "hardswish": "HardSwish", "isinf": "IsInf",
    "isnan": "IsNaN", "log": "Log", "mish": "Mish", "neg": "Neg", "reciprocal": "Reciprocal",
    "relu": "Relu", "round": "Round", "sgn": "Sign", "sigmoid": "Sigmoid", "sign": "Sign",
    "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "standard_sign": "Sign", "tan": "Tan",
    "tanh": "Tanh",
}  # fmt: skip
#: Rounding leaves integers alone.
_ROUNDING = ("ceil", "floor", "round")
#: Functions of two tensors: as ONNX has them, and what they are for booleans.
_BINARY = {
    "add": ("Add", "Or"), "sub": ("Sub", None), "mul": ("Mul", "And"), "div": ("Div", None),
    "pow": ("Pow", None), "maximum": ("Max", "Or"), "minimum": ("Min", "And"),
    "bitwise_and": ("BitwiseAnd", "And"), "bitwise_or": ("BitwiseOr", "Or"),
    "bitwise_xor": ("BitwiseXor", "Xor"), "clamp_min": ("Max", "Or"), "clamp_max": ("Min", "And"),
    "eq": ("Equal", None),
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


@rule("ne")
def ne(g: Graph, op: Traced) -> Any:
    return g.node("Not", g.node("Equal", *op.inputs))


@rule("cast", "cast_to_integers", "cast_weight")
def cast(g: Graph, op: Traced) -> Any:
    return g.cast(op.inputs[0], op.outputs[0].dtype)


@rule("clone", "to_device", "restride", "conj_physical")
def same(g: Graph, op: Traced) -> Any:
    return op.inputs[0]


@rule("square")
def square(g: Graph, op: Traced) -> Any:
    return g.node("Mul", op.inputs[0], op.inputs[0])


@rule("exp2")
def exp2(g: Graph, op: Traced) -> Any:
    return g.node("Pow", g.number(2, op.values[0]), op.inputs[0])


@rule("expm1")
def expm1(g: Graph, op: Traced) -> Any:
    return g.node("Sub", g.node("Exp", op.inputs[0]), g.number(1, op.values[0]))


@rule("log1p")
def log1p(g: Graph, op: Traced) -> Any:
    return g.node("Log", g.node("Add", op.inputs[0], g.number(1, op.values[0])))


def _logarithm(name: str, base: float) -> None:
    RULES[name] = lambda g, op: g.node(
        "Mul", g.node("Log", op.inputs[0]), g.number(1 / math.log(base), op.values[0])
    )


_logarithm("log2", 2)
_logarithm("log10", 10)


@rule("erfc")
def erfc(g: Graph, op: Traced) -> Any:
    return g.node("Sub", g.number(1, op.values[0]), g.node("Erf", op.inputs[0]))


@rule("trunc")
def trunc(g: Graph, op: Traced) -> Any:
    x, like = op.inputs[0], op.values[0]
    if like.dtype.kind in "biu":
        return x
    negative = g.node("Less", x, g.number(0, like))
    return g.node("Where", negative, g.node("Ceil", x), g.node("Floor", x))


@rule("isfinite")
def isfinite(g: Graph, op: Traced) -> Any:
    x = op.inputs[0]
    if op.values[0].dtype.kind in "biu":
        return g.node("Equal", x, x)
    return g.node("Not", g.node("Or", g.node("IsInf", x), g.node("IsNaN", x)))


@rule("div_floor", "floor_divide")
def div_floor(g: Graph, op: Traced) -> Any:
    x, y = op.inputs
    if op.values[0].dtype.kind == "f":
        return g.node("Floor", g.node("Div", x, y))
    return g.node("Div", g.node("Sub", x, g.node("Mod", x, y)), y)


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


@rule("logaddexp", "logaddexp2")
def logaddexp(g: Graph, op: Traced) -> Any:
    """The larger one, and the logarithm of 1 + exp(-their distance), to either base."""
    like = op.values[0]
    base = math.log(2) if op.name == "logaddexp2" else 1
    distance = g.node("Mul", g.node("Abs", g.node("Sub", *op.inputs)), g.number(-base, like))
    rest = g.node("Log", g.node("Add", g.node("Exp", distance), g.number(1, like)))
    return g.node("Add", g.node("Max", *op.inputs), g.node("Div", rest, g.number(base, like)))


@rule("hypot")
def hypot(g: Graph, op: Traced) -> Any:
    x, y = op.inputs
    return g.node("Sqrt", g.node("Add", g.node("Mul", x, x), g.node("Mul", y, y)))


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


def times(g: Graph, x: Any, factor: Any, like: Any) -> Any:
    """A product with a number, which may be 1."""
    return x if factor == 1 else g.node("Mul", x, g.number(factor, like))


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


@rule("copysign")
def copysign(g: Graph, op: Traced) -> Any:
    size = g.node("Abs", op.inputs[0])
    return g.node("Where", _is_negative(g, op.inputs[1], op.values[1]), g.node("Neg", size), size)


@rule("signbit")
def signbit(g: Graph, op: Traced) -> Any:
    return _is_negative(g, op.inputs[0], op.values[0])


def _is_negative(g: Graph, x: Any, like: Any) -> str:
    zero = g.number(0, like)
    below = g.node("Less", x, zero)
    if like.dtype.kind != "f":
        return below
    return g.node("Or", below, g.node("Less", g.node("Reciprocal", x), zero))  # 1 / -0 is -inf

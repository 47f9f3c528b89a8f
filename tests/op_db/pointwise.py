"""Rows of the functions that work element by element."""

# fmt: off
from __future__ import annotations

import math
import operator

from tests.op_db._case import (
    ALL,
    BOOL,
    COMPLEX,
    DISTINCT,
    FLOATS,
    INTS,
    NONZERO,
    NORMAL,
    NUMBERS,
    POSITIVE,
    SIGNED_UNIT,
    STEPS,
    UNIT,
    WIDE,
    B,
    C,
    E,
    Forward,
    Kink,
    Name,
    Op,
    S,
    T,
    V,
    away,
    between,
    whole,
)

inf, nan = math.inf, math.nan
SPECIAL = [inf, -inf, nan, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-3, 7.0, -30.0, 100.0]
PAIRS = [(a, b) for a in (inf, -inf, nan, 0.0, -0.0, 1.0, -2.5)
    for b in (inf, -inf, nan, 0.0, -0.0, 1.0, -2.5)]
LEFT, RIGHT = [a for a, _ in PAIRS], [b for _, b in PAIRS]
SMOOTH = FLOATS + INTS + BOOL  # integers give the default dtype
AWAY = away(0.0, gap=0.6)
LOOSE = {"float16": (1e-2, 1e-2), "bfloat16": (6e-2, 6e-2)}


def unary(name, of=NORMAL, *more, dtypes=FLOATS, special=True, **options):
    """A row of a function of one tensor."""
    samples = [S(T(3, 4)), S(T()), S(T(0, 3)), S(T(2, 1, 5)), *more]
    if special:
        samples.append(Forward(V(SPECIAL)))
    options.setdefault("inplace", name + "_")
    options.setdefault("out", True)
    return Op(name, *samples, of=of, dtypes=dtypes, **options)


def activation(name, of=NORMAL, *more, args=(), special=SPECIAL, **options):
    """A row of a function in nn.functional of one tensor."""
    samples = [S(T(*shape), *args) for shape in ((3, 4), (), (0, 3))]
    return Op("F." + name, *samples, Forward(V(special), *args), *more, of=of, **options)


SHAPES = [
    ((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((3,), ()), ((), (2, 3)), ((), ()),
    ((0, 3), (1, 3)),
]


def binary(name, of=NORMAL, of2=None, *more, scalars=(2.5, -3), special=True, **options):
    """A row of a function of two tensors which broadcast, or of a tensor and a number."""
    samples = [S(T(*a), T(*b, of=of2)) for a, b in SHAPES]
    samples += [S(T(2, 3), scalar) for scalar in scalars]
    if special:
        samples.append(Forward(V(LEFT), V(RIGHT)))
    options.setdefault("inplace", name.split(".")[0] + "_")
    options.setdefault("out", True)
    options.setdefault("errors", [E(T(3), T(4)), E(T(2, 3), T(2)), E(T(3), "word"), E(T(3), None)])
    return Op(name, *samples, *more, of=of, **options)


def operation(name, function, of=NORMAL, of2=None, scalars=(2, 2.5, -1), reflected=S, **options):
    """A row of a Python operator: tensors, numbers on the right, numbers on the left."""
    samples = [S(T(3, 4), T(4, of=of2)), S(T(2, 1), T(1, 3, of=of2)), S(T(), T(3, of=of2))]
    samples += [S(T(2, 3), scalar) for scalar in scalars]
    samples += [reflected(scalar, T(2, 3, of=of2)) for scalar in scalars]
    options.setdefault("dtypes", ALL)
    options.setdefault("errors", [E(T(3), T(4)), E(T(3), "word"), E(T(3), None), E([1], T(3, 2))])
    call = lambda torch, x, y: function(x, y)
    return Op("operator." + name, *samples, call=call, of=of, **options)


def scalar_unary(name, function, of=NORMAL, dtypes=ALL, **options):
    """A row of a Python operator of one tensor."""
    call = lambda torch, x: function(x)
    return Op("operator." + name, S(T(3, 4)), S(T()), call=call, of=of, dtypes=dtypes, **options)


UNARY = [
    *(unary(name, dtypes=SMOOTH) for name in ("exp", "exp2", "expm1", "sin", "cos", "sinh", "cosh",
        "tanh", "atan", "sigmoid", "erf", "erfc", "sinc", "deg2rad", "rad2deg")),
    unary("tan", SIGNED_UNIT, dtypes=SMOOTH, tol=LOOSE,
        why="near poles the special values leave the half dtypes"),
    *(unary(name, POSITIVE, dtypes=SMOOTH) for name in ("log", "log2", "log10", "log1p", "sqrt",
        "rsqrt")),
    *(unary(name, SIGNED_UNIT, dtypes=FLOATS) for name in ("asin", "acos", "erfinv")),
    unary("asinh", dtypes=SMOOTH, torch_inplace=False),
    unary("atanh", SIGNED_UNIT, dtypes=FLOATS, torch_inplace=False),
    unary("acosh", between(1.2, 4.0), dtypes=SMOOTH, torch_inplace=False),
    unary("logit", UNIT, S(T(3, 4, of=between(0.2, 0.8)), 0.1),
        S(T(3, 4, of=away(0.1, 0.9, low=0, high=1, gap=0.02)), eps=0.1)),
    unary("lgamma", POSITIVE, tol=LOOSE | {"float32": (2e-5, 5e-6)},
        why="float32 loses digits beside the zeros"),
    unary("digamma", POSITIVE, tol=LOOSE | {"float32": (2e-5, 5e-6)},
        why="float32 loses digits beside the zeros"),
    unary("reciprocal", NONZERO, dtypes=SMOOTH),
    unary("square", dtypes=ALL), unary("neg", dtypes=NUMBERS),
    unary("abs", NONZERO, Kink(V([0.0, -0.0])), dtypes=NUMBERS),
    Op("positive", S(T(3, 4)), S(T()), dtypes=NUMBERS, errors=[E(B(3))]),
    *(unary(name, STEPS, S(V([0.5, 1.5, 2.5, -0.5, -1.5])), dtypes=NUMBERS)
        for name in ("floor", "ceil", "trunc")),
    unary("frac", STEPS),
    unary("sign", NONZERO, dtypes=ALL), unary("sgn", NONZERO, dtypes=ALL),
    unary("round", STEPS, Forward(V([0.5, 1.5, 2.5, -0.5, -1.5, -2.5])), dtypes=NUMBERS),
    Op("round.decimals", S(T(3, 4, of=STEPS), decimals=0), Forward(T(3, 4), decimals=2),
        Forward(T(5,), decimals=-1), dtypes=WIDE, tol={"float32": (1e-5, 1e-5)},
        why="multiplying by ten to the decimals rounds"),
    *(Op(name, S(T(3, 4)), Forward(V(SPECIAL)), S(T(0)), dtypes=ALL, grad=False)
        for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit")),
    Op("nan_to_num", S(T(3, 4)), Forward(V(SPECIAL)), Kink(V(SPECIAL), 0.5),
        Kink(V(SPECIAL), nan=1.0, posinf=3.0, neginf=-4.0), dtypes=FLOATS + ("int64",),
        inplace="nan_to_num_", out=True, same=True),
    unary("logical_not", whole(-1, 2), dtypes=ALL, grad=False),
    Op("bitwise_not", S(T(3, 4)), S(T()), dtypes=INTS + BOOL, grad=False, inplace="bitwise_not_",
        out=True, errors=[E(T(3))]),
]

ALIASES = [
    *(unary(name, of, special=False, dtypes=WIDE) for name, of in (("absolute", NONZERO),
        ("negative", NORMAL), ("arcsin", SIGNED_UNIT), ("arccos", SIGNED_UNIT), ("arctan", NORMAL),
        ("fix", STEPS))),
    *(unary(name, of, special=False, dtypes=WIDE, torch_inplace=False) for name, of in (
        ("arcsinh", NORMAL), ("arccosh", between(1.2, 4.0)), ("arctanh", SIGNED_UNIT))),
    *(binary(name, NONZERO, special=False, dtypes=WIDE) for name in ("multiply", "divide",
        "true_divide", "subtract")),
    *(binary(name, special=False, dtypes=WIDE, grad=False) for name in ("greater", "greater_equal",
        "less", "less_equal", "not_equal")),
    binary("arctan2", NONZERO, NONZERO, scalars=(), dtypes=WIDE),
    Op("clip", S(T(3, 4), -0.5, 0.5), S(T(3, 4), min=0.0), S(T(3, 4), max=C(4)), dtypes=WIDE,
        inplace="clip_", out=True),
    Op("fill", S(T(3, 4), 2.5), S(T(3), T()), dtypes=WIDE,
        call=lambda torch, x, value: torch.fill(x, value)),
]

ARITHMETIC = [
    binary("add", NORMAL, None, S(T(3, 4), T(4), alpha=2), S(T(3), 1, alpha=3), dtypes=ALL,
        scalars=(2, -3)),
    binary("sub", NORMAL, None, S(T(3, 4), T(4), alpha=2), dtypes=NUMBERS, scalars=(2, 1)),
    binary("mul", NORMAL, None, dtypes=ALL, scalars=(2, 3, True)),
    binary("div", NORMAL, NONZERO, dtypes=ALL),
    *(Op(f"div.{mode}", S(T(3, 4), T(4, of=AWAY), rounding_mode=mode),
        S(T(3, 4), 0.7, rounding_mode=mode), Forward(V(LEFT), V(RIGHT), rounding_mode=mode),
        dtypes=FLOATS + ("int64", "int32"), inplace="div_", out=True,
        errors=[E(T(3), T(3), rounding_mode="up")]) for mode in ("floor", "trunc")),
    binary("floor_divide", AWAY, None, scalars=(2, -3), dtypes=FLOATS + ("int64", "int32"),
        grad=False),
    binary("remainder", AWAY, None, scalars=(2.5, -3), dtypes=FLOATS + ("int64", "int32")),
    binary("fmod", AWAY, None, scalars=(2.5, -3), dtypes=FLOATS + ("int64", "int32")),
    Op("rsub", S(T(3, 4), T(4)), S(T(3), 2.5), S(T(3), T(3), alpha=2), dtypes=WIDE),
    binary("pow", POSITIVE, NORMAL, S(T(3, 4, of=NONZERO), 2), S(T(3, 4, of=NONZERO), 3),
        S(T(3, 4, of=NONZERO), -1), S(2.5, T(3, 4)), S(2, T(3)), S(T(3), 0.5), S(T(3), 0),
        S(T(3), 1), Kink(V([0.0, 1.0, 2.0]), 2), Kink(V([0.0, 1.0, 2.0]), V([2.0, 0.0, 1.0])),
        Kink(V([0.0, 0.0]), 0), Kink(0.0, V([1.0, 2.0])),
        scalars=(2.5,), order3=True, tol=LOOSE, why="relative error grows with the exponent"),
    Op("pow.roots", Forward(V([-inf, -0.0, 4.0]), 0.5), *(Forward(V([-inf, -0.0, 4.0]), V(half))
        for half in (0.5, [0.5], [0.5, 0.5, 0.5], [[0.5], [-0.5], [3.0]])), dtypes=WIDE, grad=False,
        accidents=("dtypes",)),  # PyTorch's float16 has no roots: -inf ** 0.5 is inf in it
    Op("pow.int", S(T(3, 4), T(3, 4, of=whole(0, 4))), S(T(3, 4), 2), S(T(3), 0), S(T(3), 0.5),
        S(2, T(3)), Forward(T(3, 4), 3), of=whole(0, 5), dtypes=INTS, grad=False),
    Op("float_power", S(T(3, 4), T(4)), S(T(3), 2), S(2.0, T(3)), of=POSITIVE,
        dtypes=WIDE + ("int64",)),
    binary("atan2", NONZERO, NONZERO, scalars=()),
    binary("hypot", NONZERO, NONZERO, scalars=()),
    binary("copysign", NONZERO, NONZERO, scalars=(2.0, -1.0)),
    Op("heaviside", S(T(3, 4), T(4)), S(V([0.0, 1.0, -1.0, nan]), V([0.5])), dtypes=WIDE,
        grad=False, inplace="heaviside_", out=True, errors=[E(T(3), T(4)), E(T(3), 1.0)]),
    *(binary(name, DISTINCT, NORMAL, Kink(V([1.0, 2.0, 0.0]), V([1.0, 3.0, 0.0])), scalars=(),
        dtypes=ALL, inplace=None) for name in ("maximum", "minimum")),
    *(binary(name, DISTINCT, NORMAL, Kink(V([1.0, 2.0, 0.0]), V([1.0, 3.0, 0.0])), scalars=(),
        dtypes=ALL, inplace=None) for name in ("fmax", "fmin")),
    *(binary(name, scalars=(), inplace=None) for name in ("logaddexp", "logaddexp2")),
    binary("xlogy", NORMAL, POSITIVE, Kink(V([0.0, 0.0, 1.0]), V([0.0, 2.0, 3.0])),
        S(2.0, T(3, of=POSITIVE)), scalars=(2.5,)),
    Op("lerp", S(T(3, 4), T(4), 0.3), S(T(3, 4), T(3, 4), 0.8), S(T(3, 4), T(3, 4), T(4, of=UNIT)),
        S(T(3), T(3), T()), inplace="lerp_", out=True, errors=[E(T(3), T(4), 0.5)]),
    Op("addcmul", S(T(3, 4), T(3, 4), T(4)), S(T(3, 4), T(3, 1), T(1, 4), value=2.5),
        S(T(), T(), T()), dtypes=FLOATS, inplace="addcmul_", out=True,
        errors=[E(T(3), T(4), T(3))]),
    Op("addcmul.int", S(T(3, 4), T(3, 4), T(4)), S(T(3), T(3), T(3), value=2), dtypes=INTS,
        grad=False),
    Op("addcdiv", S(T(3, 4), T(3, 4), T(4)), S(T(3, 4), T(3, 1), T(1, 4), value=2.5), of=NONZERO,
        inplace="addcdiv_", out=True, tol=LOOSE, why="a quotient and a sum",
        errors=[E(T(3, dtype="int64"), T(3, dtype="int64"), T(3, dtype="int64"))]),
    Op("ldexp", S(T(3, 4), C(4, dtype="int64", of=whole(0, 4))), S(T(3), C(3)), dtypes=WIDE),
    Op("gcd", S(T(3, 4), T(4)), S(V([0, 6]), V([4, 0])), of=whole(-9, 9), dtypes=("int64", "int32"),
        grad=False),
    Op("lcm", S(T(3, 4), T(4)), of=whole(-9, 9), dtypes=("int64", "int32"), grad=False),
    Op("nextafter", S(T(3, 4), T(4)), dtypes=WIDE, grad=False, same=True),
]

OPERATORS = [
    operation("add", operator.add, errors=[E(T(3), T(4)), E(T(3), "word"), E(T(3), None)]),
    operation("sub", operator.sub, dtypes=NUMBERS),
    operation("mul", operator.mul, errors=[E(T(3), T(4)), E(T(3), None)]),
    operation("truediv", operator.truediv, NONZERO),
    operation("floordiv", operator.floordiv, AWAY, dtypes=FLOATS + ("int64", "int32"), grad=False,
        scalars=(2, 2.5, -3)),
    operation("mod", operator.mod, AWAY, reflected=Forward, dtypes=FLOATS + ("int64", "int32"),
        scalars=(2, 2.5, -3), errors=[E(T(3), T(4)), E(T(3), None)]),
    operation("pow", operator.pow, POSITIVE, POSITIVE, dtypes=NUMBERS, scalars=(2, 0.5), tol=LOOSE,
        why="the error grows with the exponent"),
    *(operation(name, getattr(operator, name), whole(-2, 3), grad=False,
        scalars=(1, 0, 0.5, -1, True), errors=[E(T(3), T(4))] + ([E(T(3), None), E(T(3), "word")]
        if name[1] != "q" and name != "ne" else [])) for name in ("eq", "ne", "lt", "le", "gt",
        "ge")),
    *(operation(name, getattr(operator, name), whole(-4, 9), dtypes=INTS + BOOL, grad=False,
        scalars=(True, 3), errors=[E(T(3), T(3)), E(T(3), 1.5)])
        for name in ("and_", "or_", "xor")),
    *(operation(name, getattr(operator, name), whole(1, 5), dtypes=INTS, grad=False, scalars=(2,),
        errors=[E(T(3), None)]) for name in ("lshift", "rshift")),
    scalar_unary("neg", operator.neg, dtypes=NUMBERS),
    scalar_unary("pos", operator.pos, dtypes=NUMBERS),
    scalar_unary("abs", abs, NONZERO, dtypes=NUMBERS),
    scalar_unary("invert", operator.invert, dtypes=INTS + BOOL, grad=False, errors=[E(T(3))]),
    *(Op(f"operator.{name}.number", S(V(2.5)), S(V([3.0])),
        call=lambda torch, x, kind=kind: kind(x), grad=False, errors=[E(T(3)), E(T(0))]) for name,
        kind in (("float", float), ("int", int), ("bool", bool))),
    Op("operator.contains", S(V([1.0, 2.0]), 2), S(V([1.0, 2.0]), 3),
        call=lambda torch, x, y: y in x, grad=False),
    Op("operator.len", S(T(3, 2)), S(T(0)), call=lambda torch, x: len(x), grad=False,
        errors=[E(T())]),
    Op("operator.iter", S(T(3, 2)), S(T(2)), call=lambda torch, x: [2 * row for row in x],
        errors=[E(T())]),
    Op("operator.reversed", S(T(3, 2)), S(T(4)), call=lambda torch, x: x.__reversed__()),
    Op("operator.chain", S(T(3, 4), T(4, of=POSITIVE)),
        call=lambda torch, x, y: (1 - x) * y / (2 + y) - x ** 2 / 3 + 1 // 1, order3=True),
]

COMPARISON = [
    *(binary(name, whole(-2, 3), scalars=(1, 0.5, -1), dtypes=ALL, grad=False)
        for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(binary(f"logical_{name}", whole(-1, 2), scalars=(), dtypes=ALL, grad=False)
        for name in ("and", "or", "xor")),
    *(binary(f"bitwise_{name}", whole(-4, 9), scalars=(3,), special=False, dtypes=INTS + BOOL,
        grad=False, errors=[E(T(3), T(3))]) for name in ("and", "or", "xor")),
    *(binary(f"bitwise_{name}_shift", whole(1, 5), scalars=(2,), special=False, dtypes=INTS,
        grad=False, inplace=None, errors=[E(T(3), T(3))]) for name in ("left", "right")),
    Op("isclose", S(V([1.0, 1.0, inf, nan, 0.0]), V([1.0, 1.00001, inf, nan, 1e-9])),
        S(T(3, 4), T(4)), S(V([1.0, 2.0]), V([1.1, 2.5]), rtol=0.2),
        S(V([1.0, 2.0]), V([1.1, 2.5]), 0.0, 0.3), S(V([nan, 2.0]), V([nan, 2.5]), equal_nan=True),
        dtypes=WIDE + ("int64",), grad=False, errors=[E(T(3), T(3), rtol=-1.0)]),
    Op("allclose", S(V([1.0, 1.0]), V([1.0, 1.0])), S(T(3), T(3)),
        S(V([1.0, 2.0]), V([1.1, 2.2]), rtol=0.2), S(V([nan]), V([nan]), equal_nan=True),
        dtypes=WIDE, grad=False),
    Op("equal", S(V([1.0, 1.0]), V([1.0, 1.0])), S(T(3), T(3)), S(T(3), T(1, 3)), S(T(0), T(0)),
        dtypes=ALL, grad=False),
]

CLAMP_AND_CHOICE = [
    Op("clamp", S(T(3, 4), -0.5, 0.5), S(T(3, 4), min=0.0), S(T(3, 4), max=0.25), S(T(3, 4), -1, 1),
        S(T(3, 4), C(4, of=between(-9, 0))), S(T(3, 4, of=DISTINCT), T(4, of=between(-2, -1)),
        T(3, 1, of=between(1, 2))), S(T(), 0), S(T(3, 4), 0.5, -0.5),
        Kink(V([0.0, 1.0, 0.5, nan]), 0.0, 1.0), Forward(V(SPECIAL), -2.0, 2.0),
        Kink(V([1.0, 2.0]), min=V([1.0, 3.0])), of=STEPS, dtypes=FLOATS, inplace="clamp_", out=True,
        errors=[E(T(3)), E(T(3), "low"), E(T(3), C(4))]),
    Op("clamp.int", S(T(3, 4), -2, 3), S(T(3, 4), min=0), S(T(3), max=1.5), S(T(3), -0.5),
        dtypes=("int64", "int32"), grad=False),
    *(Op(f"clamp_{name}", S(T(3, 4), 0.25), S(T(3, 4), T(4, of=NORMAL)), of=STEPS, dtypes=WIDE,
        inplace=f"clamp_{name}_", out=True) for name in ("min", "max")),
    Op("where", S(B(3, 4), T(3, 4), T(3, 4)), S(B(3, 1), T(4), T(2, 1, 1)), S(B(3), T(3), 0.0),
        S(B(3), -1.5, T(3)), S(B(), T(3), T()), S(B(0, 3), T(1, 3), T(3)), dtypes=ALL,
        errors=[E(B(3), T(4), T(3)), E(T(3), T(3), T(3))]),
    Op("where.numbers", S(B(3, 4), 1, 0), S(B(3), 1.0, 0), S(B(3), True, False),
        S(B(3), T(3, dtype="int64"), T(3)), S(B(3), V(1.5), C(3, dtype="int64")), dtypes=WIDE,
        call=lambda torch, *args: torch.where(*args)),
]

COMPLEX_ROWS = [
    *(Op(f"complex.{name}", S(T(3, 4)), S(T()), dtypes=COMPLEX, grad=False,
        call=lambda torch, x, name=name: getattr(torch, name)(x))
        for name in ("abs", "neg", "exp", "log", "sqrt", "sin", "cos", "tanh", "reciprocal",
        "square", "angle", "conj", "real", "imag", "isnan", "isfinite", "view_as_real", "sgn")),
    *(Op(f"complex.{name}", S(T(3, 4), T(4)), S(T(3), 2.5), S(T(3), 1 - 2j), dtypes=COMPLEX,
        grad=False, call=lambda torch, x, y, name=name: getattr(torch, name)(x, y))
        for name in ("add", "sub", "mul", "div", "eq", "pow")),
    Op("sgn.special", Forward(V([0j, inf, -inf * 1j, nan, complex(nan, inf), 3 - 4j, 1e-20j])),
        dtypes=COMPLEX, grad=False),
    Op("complex", S(T(3, 4), T(3, 4)), S(T(), T()), dtypes=WIDE, grad=False, out=True,
        errors=[E(T(3, dtype="int64"), T(3))]),
    Op("polar", S(T(3, 4, of=POSITIVE), T(3, 4)), dtypes=WIDE, grad=False),
    Op("view_as_complex", S(T(3, 2)), dtypes=WIDE, grad=False, view=True, errors=[E(T(3, 3))]),
    *(Op(f"{name}.of_parts", S(T(3, 4), T(3, 4)), dtypes=WIDE, of=NONZERO,
        call=lambda torch, x, y, name=name: getattr(torch, name)(torch.complex(x, y) * (0.5 - 2j)))
        for name in ("abs", "angle", "real", "imag")),
    Op("mul.of_parts", S(T(3, 4), T(3, 4), T(3, 4)), dtypes=WIDE, of=NONZERO,
        call=lambda torch, x, y, z: (torch.complex(x, y).conj() * torch.complex(y,
        z) / torch.complex(z, x)).imag),
    Op("real", S(T(3, 4)), dtypes=WIDE), Op("conj", S(T(3, 4)), dtypes=WIDE),
    Op("angle", S(T(3, 4)), of=NONZERO, dtypes=WIDE, out=True),
    Op("resolve_conj", S(T(3)), dtypes=WIDE),
    *(Op(name, S(T(3)), dtypes=ALL + COMPLEX, grad=False) for name in ("is_complex",
        "is_floating_point", "isreal")),
]

KINKED = away(-3, -1, -0.5, 0, 0.5, 1, 3, 6)
ACTIVATIONS = [
    unary("relu", KINKED, Kink(V([0.0, -0.0, nan])), dtypes=NUMBERS, out=False, order3=True),
    activation("relu", KINKED, Kink(V([0.0])), dtypes=NUMBERS),
    activation("relu6", KINKED, Kink(V([0.0, 6.0]))),
    activation("leaky_relu", KINKED, S(T(3), 0.2), S(T(3), negative_slope=-0.5),
        Kink(V([0.0, -0.0]))),
    activation("elu", KINKED, S(T(3), 0.7), Kink(V([0.0]))),
    activation("selu", KINKED, Kink(V([0.0]))),
    activation("celu", KINKED, S(T(3), 0.7), Kink(V([0.0])), tol={"float64": (1e-8, 1e-9)},
        why="PyTorch's gradient takes 1 / alpha in float32"),
    # PyTorch: inf in float64, NaN in float32
    activation("gelu", special=SPECIAL[2:], order3=True),
    Op("F.gelu.tanh", S(T(3, 4), approximate="tanh"), Forward(V(SPECIAL[2:]), approximate="tanh"),
        order3=True, errors=[E(T(3), approximate="other")]),
    activation("silu", order3=True), activation("mish"), activation("softsign"),
    activation("tanhshrink"), activation("logsigmoid"),
    activation("softplus", NORMAL, S(T(3, 4), 2.0), S(T(3, 4, of=away(0.5)), beta=4.0,
        threshold=2.0)),
    activation("hardtanh", KINKED, S(T(3), -0.5, 0.5), Kink(V([-1.0, 1.0]))),
    activation("hardsigmoid", KINKED, Kink(V([-3.0, 3.0])), torch_orders=1,
        tol={"float64": (1e-8, 1e-9)}, why="PyTorch's gradient takes 1 / 6 in float32"),
    activation("hardswish", KINKED, Kink(V([-3.0, 3.0]))),
    activation("softshrink", KINKED, S(T(3, of=away(0.3, -0.3)), 0.3), Kink(V([0.5, -0.5])),
        errors=[E(T(3), -1.0)]),
    activation("hardshrink", KINKED, S(T(3, of=away(0.3, -0.3)), 0.3), Kink(V([0.5, -0.5]))),
    activation("threshold", KINKED, args=(0.5, -7.0)), activation("tanh"), activation("sigmoid"),
    Op("F.prelu", S(T(3, 4), T(1)), S(T(2, 3, 4), T(3)), S(T(5), T(1)), S(T(2, 3, 4, 2), T(3)),
        S(T(), T(1)), of=KINKED, errors=[E(T(2, 3), T(2)), E(T(3, 4), T(2, 2))]),
    Op("F.glu", S(T(3, 4)), S(T(4, 3), 0), S(T(2, 6), dim=-1),
        errors=[E(T(3, 5)), E(T()), E(T(4), 2)]),
    Op("F.rrelu.eval", S(T(3, 4), 0.1, 0.3), of=KINKED),
]

PROMOTED = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
    "bool")
PROMOTION = [
    *(Op(f"promote.{name}", *[S(T(2, dtype=a, of=whole(1, 4)), T(2, dtype=b, of=whole(1, 4)))
        for a in PROMOTED for b in PROMOTED], *[S(T(2, dtype=a, of=whole(1, 4)),
        T(dtype=b, of=whole(1, 4))) for a in PROMOTED for b in PROMOTED],
        *[S(T(2, dtype=a, of=whole(1, 4)), scalar) for a in PROMOTED for scalar in (2, 2.5, True)],
        dtypes=("float32",), grad=False, call=lambda torch, x, y, name=name: getattr(torch, name)(x,
        y), layout=False) for name in ("add", "mul", "div", "eq")),
    Op("promote.complex", *[S(T(2, dtype=a, of=whole(1, 4)), y) for a in PROMOTED
        if a not in ("float16", "bfloat16") for y in (T(2, dtype="complex64"), T(dtype="complex64"),
        2j)], dtypes=("float32",), grad=False, call=lambda torch, x, y: torch.add(x, y),
        layout=False),
    Op("result_type", *[S(T(2, dtype=a), T(dtype=b)) for a in PROMOTED for b in PROMOTED],
        S(T(2, dtype="int64"), 1.5), call=lambda torch, x, y: str(torch.result_type(x, y)),
        dtypes=("float32",), grad=False, layout=False),
    Op("can_cast", *[S(Name(a), Name(b)) for a in PROMOTED for b in PROMOTED], dtypes=("float32",),
        grad=False, layout=False),
    Op("promote_types", *[S(Name(a), Name(b)) for a in PROMOTED for b in PROMOTED],
        dtypes=("float32",), grad=False, layout=False,
        call=lambda torch, a, b: str(torch.promote_types(a, b))),
]

OPS = [
    *UNARY, *ALIASES, *ARITHMETIC, *OPERATORS, *COMPARISON, *CLAMP_AND_CHOICE, *COMPLEX_ROWS,
    *ACTIVATIONS, *PROMOTION,
]

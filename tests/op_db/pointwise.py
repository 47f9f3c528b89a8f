"""Rows of the functions that work element by element."""

# fmt: off
from __future__ import annotations

import math
import operator

from tests.op_db._case import (
    ALL,
    AWAY_FROM_HALVES,
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
    UNIT,
    WIDE,
    Attribute,
    Domain,
    OpInfo,
    away_from,
    booleans,
    constant,
    error,
    forward_sample,
    integer_valued,
    literal,
    sample,
    subgradient_sample,
    tensor,
    uniform,
)

inf, nan = math.inf, math.nan
SPECIAL = [inf, -inf, nan, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-3, 7.0, -30.0, 100.0]
PAIRS = [(a, b) for a in (inf, -inf, nan, 0.0, -0.0, 1.0, -2.5)
    for b in (inf, -inf, nan, 0.0, -0.0, 1.0, -2.5)]
LEFT, RIGHT = [a for a, _ in PAIRS], [b for _, b in PAIRS]
SMOOTH = FLOATS + INTS + BOOL  # integers give the default dtype
AWAY = away_from(0.0, gap=0.6)
#: In the middle between the points where a number has two nearest multiples of 0.25.
BETWEEN_LEVELS = Domain(lambda rng, shape: 0.25 * rng.integers(-20, 20, shape) + 0.05)
LOOSE = {"float16": (1e-2, 1e-2), "bfloat16": (6e-2, 6e-2)}


def unary(name, domain=NORMAL, *more, dtypes=FLOATS, special=True, **options):
    """A row of a function of one tensor."""
    samples = [sample(tensor(3, 4)), sample(tensor()), sample(tensor(0, 3)),
        sample(tensor(2, 1, 5)), *more]
    if special:
        samples.append(forward_sample(literal(SPECIAL)))
    options.setdefault("inplace_variant", name + "_")
    options.setdefault("supports_out", True)
    return OpInfo(name, *samples, domain=domain, dtypes=dtypes, **options)


def activation(name, domain=NORMAL, *more, args=(), special=SPECIAL, **options):
    """A row of a function in nn.functional of one tensor."""
    samples = [sample(tensor(*shape), *args) for shape in ((3, 4), (), (0, 3))]
    return OpInfo("F." + name, *samples, forward_sample(literal(special), *args), *more,
        domain=domain, **options)


SHAPES = [
    ((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((3,), ()), ((), (2, 3)), ((), ()),
    ((0, 3), (1, 3)),
]


def binary(name, domain=NORMAL, other_domain=None, *more, scalars=(2.5, -3), special=True,
    **options):
    """A row of a function of two tensors which broadcast, or of a tensor and a number."""
    samples = [sample(tensor(*a), tensor(*b, domain=other_domain)) for a, b in SHAPES]
    samples += [sample(tensor(2, 3), scalar) for scalar in scalars]
    if special:
        samples.append(forward_sample(literal(LEFT), literal(RIGHT)))
    options.setdefault("inplace_variant", name.split(".")[0] + "_")
    options.setdefault("supports_out", True)
    options.setdefault("errors", [error(tensor(3), tensor(4)), error(tensor(2, 3), tensor(2)),
        error(tensor(3), "word"), error(tensor(3), None)])
    return OpInfo(name, *samples, *more, domain=domain, **options)


def operation(name, function, domain=NORMAL, other_domain=None, scalars=(2, 2.5, -1),
    reflected=sample, **options):
    """A row of a Python operator: tensors, numbers on the right, numbers on the left."""
    samples = [sample(tensor(3, 4), tensor(4, domain=other_domain)),
        sample(tensor(2, 1), tensor(1, 3, domain=other_domain)),
        sample(tensor(), tensor(3, domain=other_domain))]
    samples += [sample(tensor(2, 3), scalar) for scalar in scalars]
    samples += [reflected(scalar, tensor(2, 3, domain=other_domain)) for scalar in scalars]
    options.setdefault("dtypes", ALL)
    options.setdefault("errors", [error(tensor(3), tensor(4)), error(tensor(3), "word"),
        error(tensor(3), None), error([1], tensor(3, 2))])
    call = lambda torch, x, y: function(x, y)
    return OpInfo("operator." + name, *samples, call=call, domain=domain, **options)


def scalar_unary(name, function, domain=NORMAL, dtypes=ALL, **options):
    """A row of a Python operator of one tensor."""
    call = lambda torch, x: function(x)
    return OpInfo("operator." + name, sample(tensor(3, 4)), sample(tensor()), call=call,
        domain=domain, dtypes=dtypes, **options)


UNARY = [
    *(unary(name, dtypes=SMOOTH) for name in ("exp", "exp2", "expm1", "sin", "cos", "sinh", "cosh",
        "tanh", "atan", "sigmoid", "erf", "erfc", "sinc", "deg2rad", "rad2deg")),
    unary("tan", SIGNED_UNIT, dtypes=SMOOTH, tolerances=LOOSE,
        tolerance_reason="near poles the special values leave the half dtypes"),
    *(unary(name, POSITIVE, dtypes=SMOOTH) for name in ("log", "log2", "log10", "log1p", "sqrt",
        "rsqrt")),
    *(unary(name, SIGNED_UNIT, dtypes=FLOATS) for name in ("asin", "acos", "erfinv")),
    unary("asinh", dtypes=SMOOTH, torch_inplace_grad=False),
    unary("atanh", SIGNED_UNIT, dtypes=FLOATS, torch_inplace_grad=False),
    unary("acosh", uniform(1.2, 4.0), dtypes=SMOOTH, torch_inplace_grad=False),
    unary("logit", UNIT, sample(tensor(3, 4, domain=uniform(0.2, 0.8)), 0.1),
        sample(tensor(3, 4, domain=away_from(0.1, 0.9, low=0, high=1, gap=0.02)), eps=0.1)),
    unary("lgamma", POSITIVE, tolerances=LOOSE | {"float32": (2e-5, 5e-6)},
        tolerance_reason="float32 loses digits beside the zeros"),
    unary("digamma", POSITIVE, tolerances=LOOSE | {"float32": (2e-5, 5e-6)},
        tolerance_reason="float32 loses digits beside the zeros"),
    unary("reciprocal", NONZERO, dtypes=SMOOTH),
    unary("square", dtypes=ALL), unary("neg", dtypes=NUMBERS),
    unary("abs", NONZERO, subgradient_sample(literal([0.0, -0.0])), dtypes=NUMBERS),
    OpInfo("positive", sample(tensor(3, 4)), sample(tensor()), dtypes=NUMBERS,
        errors=[error(booleans(3))]),
    *(unary(name, AWAY_FROM_HALVES, sample(literal([0.5, 1.5, 2.5, -0.5, -1.5])), dtypes=NUMBERS)
        for name in ("floor", "ceil", "trunc")),
    unary("frac", AWAY_FROM_HALVES),
    unary("sign", NONZERO, dtypes=ALL), unary("sgn", NONZERO, dtypes=ALL),
    unary("round", AWAY_FROM_HALVES, forward_sample(literal([0.5, 1.5, 2.5, -0.5, -1.5, -2.5])),
        dtypes=NUMBERS),
    OpInfo("round.decimals", sample(tensor(3, 4, domain=AWAY_FROM_HALVES), decimals=0),
        forward_sample(tensor(3, 4), decimals=2), forward_sample(tensor(5,), decimals=-1),
        dtypes=WIDE, tolerances={"float32": (1e-5, 1e-5)},
        tolerance_reason="multiplying by ten to the decimals rounds"),
    *(OpInfo(name, sample(tensor(3, 4)), forward_sample(literal(SPECIAL)), sample(tensor(0)),
        dtypes=ALL,
        supports_autograd=False) for name
        in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit")),
    OpInfo("nan_to_num", sample(tensor(3, 4)), forward_sample(literal(SPECIAL)),
        subgradient_sample(literal(SPECIAL), 0.5),
        subgradient_sample(literal(SPECIAL), nan=1.0, posinf=3.0, neginf=-4.0),
        dtypes=FLOATS + ("int64",), inplace_variant="nan_to_num_", supports_out=True,
        same_dtype_oracle=True),
    unary("logical_not", integer_valued(-1, 2), dtypes=ALL, supports_autograd=False),
    OpInfo("bitwise_not", sample(tensor(3, 4)), sample(tensor()), dtypes=INTS + BOOL,
        supports_autograd=False, inplace_variant="bitwise_not_", supports_out=True,
        errors=[error(tensor(3))]),
]

ALIASES = [
    *(unary(name, of, special=False, dtypes=WIDE) for name, of in (("absolute", NONZERO),
        ("negative", NORMAL), ("arcsin", SIGNED_UNIT), ("arccos", SIGNED_UNIT), ("arctan", NORMAL),
        ("fix", AWAY_FROM_HALVES))),
    *(unary(name, of, special=False, dtypes=WIDE, torch_inplace_grad=False) for name, of in (
        ("arcsinh", NORMAL), ("arccosh", uniform(1.2, 4.0)), ("arctanh", SIGNED_UNIT))),
    *(binary(name, NONZERO, special=False, dtypes=WIDE) for name in ("multiply", "divide",
        "true_divide", "subtract")),
    *(binary(name, special=False, dtypes=WIDE,
        supports_autograd=False) for name
        in ("greater", "greater_equal", "less", "less_equal", "not_equal")),
    binary("arctan2", NONZERO, NONZERO, scalars=(), dtypes=WIDE),
    OpInfo("clip", sample(tensor(3, 4), -0.5, 0.5), sample(tensor(3, 4), min=0.0),
        sample(tensor(3, 4), max=constant(4)), dtypes=WIDE, inplace_variant="clip_",
        supports_out=True),
    OpInfo("fill", sample(tensor(3, 4), 2.5), sample(tensor(3), tensor()), dtypes=WIDE,
        call=lambda torch, x, value: torch.fill(x, value)),
]

ARITHMETIC = [
    binary("add", NORMAL, None, sample(tensor(3, 4), tensor(4), alpha=2),
        sample(tensor(3), 1, alpha=3), dtypes=ALL, scalars=(2, -3)),
    binary("sub", NORMAL, None, sample(tensor(3, 4), tensor(4), alpha=2), dtypes=NUMBERS,
        scalars=(2, 1)),
    binary("mul", NORMAL, None, dtypes=ALL, scalars=(2, 3, True)),
    binary("div", NORMAL, NONZERO, dtypes=ALL),
    *(OpInfo(f"div.{mode}", sample(tensor(3, 4), tensor(4, domain=AWAY), rounding_mode=mode),
        sample(tensor(3, 4), 0.7, rounding_mode=mode),
        forward_sample(literal(LEFT), literal(RIGHT), rounding_mode=mode),
        dtypes=FLOATS + ("int64", "int32"), inplace_variant="div_", supports_out=True,
        errors=[error(tensor(3), tensor(3), rounding_mode="up")]) for mode in ("floor", "trunc")),
    binary("floor_divide", AWAY, None, scalars=(2, -3), dtypes=FLOATS + ("int64", "int32"),
        supports_autograd=False),
    binary("remainder", AWAY, None, scalars=(2.5, -3), dtypes=FLOATS + ("int64", "int32")),
    binary("fmod", AWAY, None, scalars=(2.5, -3), dtypes=FLOATS + ("int64", "int32")),
    OpInfo("rsub", sample(tensor(3, 4), tensor(4)), sample(tensor(3), 2.5),
        sample(tensor(3), tensor(3), alpha=2), dtypes=WIDE),
    binary("pow", POSITIVE, NORMAL, sample(tensor(3, 4, domain=NONZERO), 2),
        sample(tensor(3, 4, domain=NONZERO), 3), sample(tensor(3, 4, domain=NONZERO), -1),
        sample(2.5, tensor(3, 4)), sample(2, tensor(3)), sample(tensor(3), 0.5),
        sample(tensor(3), 0), sample(tensor(3), 1), subgradient_sample(literal([0.0, 1.0, 2.0]), 2),
        subgradient_sample(literal([0.0, 1.0, 2.0]), literal([2.0, 0.0, 1.0])),
        subgradient_sample(literal([0.0, 0.0]), 0), subgradient_sample(0.0, literal([1.0, 2.0])),
        scalars=(2.5,), check_third_order=True, tolerances=LOOSE,
        tolerance_reason="relative error grows with the exponent"),
    OpInfo("pow.roots", forward_sample(literal([-inf, -0.0, 4.0]), 0.5),
        *(forward_sample(literal([-inf, -0.0, 4.0]), literal(half)) for half
        in (0.5, [0.5], [0.5, 0.5, 0.5], [[0.5], [-0.5], [3.0]])), dtypes=WIDE,
        supports_autograd=False, skip_undefined_behavior=("dtypes",)),
        # PyTorch's float16 has no roots: -inf ** 0.5 is inf in it
    OpInfo("pow.int", sample(tensor(3, 4), tensor(3, 4, domain=integer_valued(0, 4))),
        sample(tensor(3, 4), 2), sample(tensor(3), 0), sample(tensor(3), 0.5), sample(2, tensor(3)),
        forward_sample(tensor(3, 4), 3), domain=integer_valued(0, 5), dtypes=INTS,
        supports_autograd=False),
    OpInfo("float_power", sample(tensor(3, 4), tensor(4)), sample(tensor(3), 2),
        sample(2.0, tensor(3)), domain=POSITIVE, dtypes=WIDE + ("int64",)),
    binary("atan2", NONZERO, NONZERO, scalars=()),
    binary("hypot", NONZERO, NONZERO, scalars=()),
    binary("copysign", NONZERO, NONZERO, scalars=(2.0, -1.0)),
    OpInfo("heaviside", sample(tensor(3, 4), tensor(4)),
        sample(literal([0.0, 1.0, -1.0, nan]), literal([0.5])), dtypes=WIDE,
        supports_autograd=False, inplace_variant="heaviside_", supports_out=True,
        errors=[error(tensor(3), tensor(4)), error(tensor(3), 1.0)]),
    *(binary(name, DISTINCT, NORMAL,
        subgradient_sample(literal([1.0, 2.0, 0.0]), literal([1.0, 3.0, 0.0])), scalars=(),
        dtypes=ALL, inplace_variant=None) for name in ("maximum", "minimum")),
    *(binary(name, DISTINCT, NORMAL,
        subgradient_sample(literal([1.0, 2.0, 0.0]), literal([1.0, 3.0, 0.0])), scalars=(),
        dtypes=ALL, inplace_variant=None) for name in ("fmax", "fmin")),
    *(binary(name, scalars=(), inplace_variant=None) for name in ("logaddexp", "logaddexp2")),
    binary("xlogy", NORMAL, POSITIVE,
        subgradient_sample(literal([0.0, 0.0, 1.0]), literal([0.0, 2.0, 3.0])),
        sample(2.0, tensor(3, domain=POSITIVE)), scalars=(2.5,)),
    OpInfo("lerp", sample(tensor(3, 4), tensor(4), 0.3), sample(tensor(3, 4), tensor(3, 4), 0.8),
        sample(tensor(3, 4), tensor(3, 4), tensor(4, domain=UNIT)),
        sample(tensor(3), tensor(3), tensor()), inplace_variant="lerp_", supports_out=True,
        errors=[error(tensor(3), tensor(4), 0.5)]),
    OpInfo("addcmul", sample(tensor(3, 4), tensor(3, 4), tensor(4)),
        sample(tensor(3, 4), tensor(3, 1), tensor(1, 4), value=2.5),
        sample(tensor(), tensor(), tensor()), dtypes=FLOATS, inplace_variant="addcmul_",
        supports_out=True, errors=[error(tensor(3), tensor(4), tensor(3))]),
    OpInfo("addcmul.int", sample(tensor(3, 4), tensor(3, 4), tensor(4)),
        sample(tensor(3), tensor(3), tensor(3), value=2), dtypes=INTS, supports_autograd=False),
    OpInfo("addcdiv", sample(tensor(3, 4), tensor(3, 4), tensor(4)),
        sample(tensor(3, 4), tensor(3, 1), tensor(1, 4), value=2.5), domain=NONZERO,
        inplace_variant="addcdiv_", supports_out=True, tolerances=LOOSE,
        tolerance_reason="a quotient and a sum",
        errors=[error(tensor(3, dtype="int64"), tensor(3, dtype="int64"),
        tensor(3, dtype="int64"))]),
    OpInfo("ldexp", sample(tensor(3, 4), constant(4, dtype="int64", domain=integer_valued(0, 4))),
        sample(tensor(3), constant(3)), dtypes=WIDE),
    OpInfo("gcd", sample(tensor(3, 4), tensor(4)), sample(literal([0, 6]), literal([4, 0])),
        domain=integer_valued(-9, 9), dtypes=("int64", "int32"), supports_autograd=False),
    OpInfo("lcm", sample(tensor(3, 4), tensor(4)), domain=integer_valued(-9, 9),
        dtypes=("int64", "int32"), supports_autograd=False),
    OpInfo("nextafter", sample(tensor(3, 4), tensor(4)), dtypes=WIDE, supports_autograd=False,
        same_dtype_oracle=True),
]

OPERATORS = [
    operation("add", operator.add, errors=[error(tensor(3), tensor(4)), error(tensor(3), "word"),
        error(tensor(3), None)]),
    operation("sub", operator.sub, dtypes=NUMBERS),
    operation("mul", operator.mul, errors=[error(tensor(3), tensor(4)), error(tensor(3), None)]),
    operation("truediv", operator.truediv, NONZERO),
    operation("floordiv", operator.floordiv, AWAY, dtypes=FLOATS + ("int64", "int32"),
        supports_autograd=False, scalars=(2, 2.5, -3)),
    operation("mod", operator.mod, AWAY, reflected=forward_sample,
        dtypes=FLOATS + ("int64", "int32"), scalars=(2, 2.5, -3),
        errors=[error(tensor(3), tensor(4)), error(tensor(3), None)]),
    operation("pow", operator.pow, POSITIVE, POSITIVE, dtypes=NUMBERS, scalars=(2, 0.5),
        tolerances=LOOSE, tolerance_reason="the error grows with the exponent"),
    *(operation(name, getattr(operator, name), integer_valued(-2, 3), supports_autograd=False,
        scalars=(1, 0, 0.5, -1, True),
        errors=[error(tensor(3), tensor(4))]
        + ([error(tensor(3), None), error(tensor(3), "word")] if name[1] != "q" and name != "ne"
        else [])) for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(operation(name, getattr(operator, name), integer_valued(-4, 9), dtypes=INTS + BOOL,
        supports_autograd=False, scalars=(True, 3), errors=[error(tensor(3), tensor(3)),
        error(tensor(3), 1.5)]) for name in ("and_", "or_", "xor")),
    *(operation(name, getattr(operator, name), integer_valued(1, 5), dtypes=INTS,
        supports_autograd=False, scalars=(2,),
        errors=[error(tensor(3), None)]) for name in ("lshift", "rshift")),
    scalar_unary("neg", operator.neg, dtypes=NUMBERS),
    scalar_unary("pos", operator.pos, dtypes=NUMBERS),
    scalar_unary("abs", abs, NONZERO, dtypes=NUMBERS),
    scalar_unary("invert", operator.invert, dtypes=INTS + BOOL, supports_autograd=False,
        errors=[error(tensor(3))]),
    *(OpInfo(f"operator.{name}.number", sample(literal(2.5)), sample(literal([3.0])),
        call=lambda torch, x, kind=kind: kind(x), supports_autograd=False, errors=[error(tensor(3)),
        error(tensor(0))]) for name, kind in (("float", float), ("int", int), ("bool", bool))),
    OpInfo("operator.contains", sample(literal([1.0, 2.0]), 2), sample(literal([1.0, 2.0]), 3),
        call=lambda torch, x, y: y in x, supports_autograd=False),
    OpInfo("operator.len", sample(tensor(3, 2)), sample(tensor(0)), call=lambda torch, x: len(x),
        supports_autograd=False, errors=[error(tensor())]),
    OpInfo("operator.iter", sample(tensor(3, 2)), sample(tensor(2)), call=lambda torch, x: [2 * row
        for row in x], errors=[error(tensor())]),
    OpInfo("operator.reversed", sample(tensor(3, 2)), sample(tensor(4)),
        call=lambda torch, x: x.__reversed__()),
    OpInfo("operator.chain", sample(tensor(3, 4), tensor(4, domain=POSITIVE)),
        call=lambda torch, x, y: (1 - x) * y / (2 + y) - x ** 2 / 3 + 1 // 1,
        check_third_order=True),
]

COMPARISON = [
    *(binary(name, integer_valued(-2, 3), scalars=(1, 0.5, -1), dtypes=ALL, supports_autograd=False)
        for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(binary(f"logical_{name}", integer_valued(-1, 2), scalars=(), dtypes=ALL,
        supports_autograd=False) for name in ("and", "or", "xor")),
    *(binary(f"bitwise_{name}", integer_valued(-4, 9), scalars=(3,), special=False,
        dtypes=INTS + BOOL, supports_autograd=False,
        errors=[error(tensor(3), tensor(3))]) for name in ("and", "or", "xor")),
    *(binary(f"bitwise_{name}_shift", integer_valued(1, 5), scalars=(2,), special=False,
        dtypes=INTS, supports_autograd=False, inplace_variant=None,
        errors=[error(tensor(3), tensor(3))]) for name in ("left", "right")),
    OpInfo("isclose",
        sample(literal([1.0, 1.0, inf, nan, 0.0]), literal([1.0, 1.00001, inf, nan, 1e-9])),
        sample(tensor(3, 4), tensor(4)), sample(literal([1.0, 2.0]), literal([1.1, 2.5]), rtol=0.2),
        sample(literal([1.0, 2.0]), literal([1.1, 2.5]), 0.0, 0.3),
        sample(literal([nan, 2.0]), literal([nan, 2.5]), equal_nan=True), dtypes=WIDE + ("int64",),
        supports_autograd=False, errors=[error(tensor(3), tensor(3), rtol=-1.0)]),
    OpInfo("allclose", sample(literal([1.0, 1.0]), literal([1.0, 1.0])),
        sample(tensor(3), tensor(3)), sample(literal([1.0, 2.0]), literal([1.1, 2.2]), rtol=0.2),
        sample(literal([nan]), literal([nan]), equal_nan=True), dtypes=WIDE,
        supports_autograd=False),
    OpInfo("equal", sample(literal([1.0, 1.0]), literal([1.0, 1.0])), sample(tensor(3), tensor(3)),
        sample(tensor(3), tensor(1, 3)), sample(tensor(0), tensor(0)), dtypes=ALL,
        supports_autograd=False),
]

CLAMP_AND_CHOICE = [
    OpInfo("clamp", sample(tensor(3, 4), -0.5, 0.5), sample(tensor(3, 4), min=0.0),
        sample(tensor(3, 4), max=0.25), sample(tensor(3, 4), -1, 1),
        sample(tensor(3, 4), constant(4, domain=uniform(-9, 0))),
        sample(tensor(3, 4, domain=DISTINCT), tensor(4, domain=uniform(-2, -1)),
        tensor(3, 1, domain=uniform(1, 2))), sample(tensor(), 0), sample(tensor(3, 4), 0.5, -0.5),
        subgradient_sample(literal([0.0, 1.0, 0.5, nan]), 0.0, 1.0),
        forward_sample(literal(SPECIAL), -2.0, 2.0),
        subgradient_sample(literal([1.0, 2.0]), min=literal([1.0, 3.0])), domain=AWAY_FROM_HALVES,
        dtypes=FLOATS, inplace_variant="clamp_", supports_out=True, errors=[error(tensor(3)),
        error(tensor(3), "low"), error(tensor(3), constant(4))]),
    OpInfo("clamp.int", sample(tensor(3, 4), -2, 3), sample(tensor(3, 4), min=0),
        sample(tensor(3), max=1.5), sample(tensor(3), -0.5), dtypes=("int64", "int32"),
        supports_autograd=False),
    *(OpInfo(f"clamp_{name}", sample(tensor(3, 4), 0.25),
        sample(tensor(3, 4), tensor(4, domain=NORMAL)), domain=AWAY_FROM_HALVES, dtypes=WIDE,
        inplace_variant=f"clamp_{name}_", supports_out=True) for name in ("min", "max")),
    OpInfo("where", sample(booleans(3, 4), tensor(3, 4), tensor(3, 4)),
        sample(booleans(3, 1), tensor(4), tensor(2, 1, 1)), sample(booleans(3), tensor(3), 0.0),
        sample(booleans(3), -1.5, tensor(3)), sample(booleans(), tensor(3), tensor()),
        sample(booleans(0, 3), tensor(1, 3), tensor(3)), dtypes=ALL,
        errors=[error(booleans(3), tensor(4), tensor(3)), error(tensor(3), tensor(3), tensor(3))]),
    OpInfo("where.numbers", sample(booleans(3, 4), 1, 0), sample(booleans(3), 1.0, 0),
        sample(booleans(3), True, False), sample(booleans(3), tensor(3, dtype="int64"), tensor(3)),
        sample(booleans(3), literal(1.5), constant(3, dtype="int64")), dtypes=WIDE,
        call=lambda torch, *args: torch.where(*args)),
]

COMPLEX_ROWS = [
    *(OpInfo(f"complex.{name}", sample(tensor(3, 4)), sample(tensor()), dtypes=COMPLEX,
        supports_autograd=False,
        call=lambda torch, x, name=name: getattr(torch, name)(x)) for name
        in ("abs", "neg", "exp", "log", "sqrt", "sin", "cos", "tanh", "reciprocal", "square",
        "angle", "conj", "real", "imag", "isnan", "isfinite", "view_as_real", "sgn")),
    *(OpInfo(f"complex.{name}", sample(tensor(3, 4), tensor(4)), sample(tensor(3), 2.5),
        sample(tensor(3), 1 - 2j), dtypes=COMPLEX, supports_autograd=False,
        call=lambda torch, x, y, name=name: getattr(torch, name)(x, y)) for name
        in ("add", "sub", "mul", "div", "eq", "pow")),
    OpInfo("sgn.special",
        forward_sample(literal([0j, inf, -inf * 1j, nan, complex(nan, inf), 3 - 4j, 1e-20j])),
        dtypes=COMPLEX, supports_autograd=False),
    OpInfo("complex", sample(tensor(3, 4), tensor(3, 4)), sample(tensor(), tensor()), dtypes=WIDE,
        supports_autograd=False, supports_out=True,
        errors=[error(tensor(3, dtype="int64"), tensor(3))]),
    OpInfo("polar", sample(tensor(3, 4, domain=POSITIVE), tensor(3, 4)), dtypes=WIDE,
        supports_autograd=False),
    OpInfo("view_as_complex", sample(tensor(3, 2)), dtypes=WIDE, supports_autograd=False,
        is_view=True, errors=[error(tensor(3, 3))]),
    *(OpInfo(f"{name}.of_parts", sample(tensor(3, 4), tensor(3, 4)), dtypes=WIDE, domain=NONZERO,
        call=lambda torch, x, y, name=name: getattr(torch, name)(torch.complex(x, y) * (0.5 - 2j)))
        for name in ("abs", "angle", "real", "imag")),
    OpInfo("mul.of_parts", sample(tensor(3, 4), tensor(3, 4), tensor(3, 4)), dtypes=WIDE,
        domain=NONZERO,
        call=lambda torch, x, y, z: (torch.complex(x, y).conj() * torch.complex(y,
        z) / torch.complex(z, x)).imag),
    OpInfo("real", sample(tensor(3, 4)), dtypes=WIDE), OpInfo("conj", sample(tensor(3, 4)),
        dtypes=WIDE),
    OpInfo("angle", sample(tensor(3, 4)), domain=NONZERO, dtypes=WIDE, supports_out=True),
    OpInfo("resolve_conj", sample(tensor(3)), dtypes=WIDE),
    *(OpInfo(name, sample(tensor(3)), dtypes=ALL + COMPLEX,
        supports_autograd=False) for name in ("is_complex", "is_floating_point", "isreal")),
]

KINKED = away_from(-3, -1, -0.5, 0, 0.5, 1, 3, 6)
ACTIVATIONS = [
    unary("relu", KINKED, subgradient_sample(literal([0.0, -0.0, nan])), dtypes=NUMBERS,
        supports_out=False, check_third_order=True),
    activation("relu", KINKED, subgradient_sample(literal([0.0])), dtypes=NUMBERS),
    activation("relu6", KINKED, subgradient_sample(literal([0.0, 6.0]))),
    activation("leaky_relu", KINKED, sample(tensor(3), 0.2), sample(tensor(3), negative_slope=-0.5),
        subgradient_sample(literal([0.0, -0.0]))),
    activation("elu", KINKED, sample(tensor(3), 0.7), subgradient_sample(literal([0.0]))),
    activation("selu", KINKED, subgradient_sample(literal([0.0]))),
    activation("celu", KINKED, sample(tensor(3), 0.7), subgradient_sample(literal([0.0])),
        tolerances={"float64": (1e-8, 1e-9)},
        tolerance_reason="PyTorch's gradient takes 1 / alpha in float32"),
    # PyTorch: inf in float64, NaN in float32
    activation("gelu", special=SPECIAL[2:], check_third_order=True),
    OpInfo("F.gelu.tanh", sample(tensor(3, 4), approximate="tanh"),
        forward_sample(literal(SPECIAL[2:]), approximate="tanh"), check_third_order=True,
        errors=[error(tensor(3), approximate="other")]),
    activation("silu", check_third_order=True), activation("mish"), activation("softsign"),
    activation("tanhshrink"), activation("logsigmoid"),
    activation("softplus", NORMAL, sample(tensor(3, 4), 2.0),
        sample(tensor(3, 4, domain=away_from(0.5)), beta=4.0, threshold=2.0)),
    activation("hardtanh", KINKED, sample(tensor(3), -0.5, 0.5),
        subgradient_sample(literal([-1.0, 1.0]))),
    activation("hardsigmoid", KINKED, subgradient_sample(literal([-3.0, 3.0])), torch_grad_orders=1,
        tolerances={"float64": (1e-8, 1e-9)},
        tolerance_reason="PyTorch's gradient takes 1 / 6 in float32"),
    activation("hardswish", KINKED, subgradient_sample(literal([-3.0, 3.0]))),
    activation("softshrink", KINKED, sample(tensor(3, domain=away_from(0.3, -0.3)), 0.3),
        subgradient_sample(literal([0.5, -0.5])), errors=[error(tensor(3), -1.0)]),
    activation("hardshrink", KINKED, sample(tensor(3, domain=away_from(0.3, -0.3)), 0.3),
        subgradient_sample(literal([0.5, -0.5]))),
    activation("threshold", KINKED, args=(0.5, -7.0)), activation("tanh"), activation("sigmoid"),
    OpInfo("F.prelu", sample(tensor(3, 4), tensor(1)), sample(tensor(2, 3, 4), tensor(3)),
        sample(tensor(5), tensor(1)), sample(tensor(2, 3, 4, 2), tensor(3)),
        sample(tensor(), tensor(1)), domain=KINKED, errors=[error(tensor(2, 3), tensor(2)),
        error(tensor(3, 4), tensor(2, 2))]),
    OpInfo("F.glu", sample(tensor(3, 4)), sample(tensor(4, 3), 0), sample(tensor(2, 6), dim=-1),
        errors=[error(tensor(3, 5)), error(tensor()), error(tensor(4), 2)]),
    OpInfo("F.rrelu.eval", sample(tensor(3, 4), 0.1, 0.3), domain=KINKED),
    OpInfo("fake_quantize_per_tensor_affine",
        *[subgradient_sample(tensor(*shape), 0.25, 1, -3, 5) for shape in ((3, 4), (), (0, 3))],
        subgradient_sample(tensor(3, 4), constant(1, dtype="float32", domain=POSITIVE),
        literal([2], "int64"), -8, 7), forward_sample(literal(SPECIAL), 0.25, 1, -30, 5),
        forward_sample(tensor(3), literal(0.25, "float32", False), literal(9.5, "float32", False),
        -8, 7), domain=BETWEEN_LEVELS, errors=[
        error(tensor(3), 0.1, 0, 5, -5), error(tensor(3), 0.1, 9, -5, 5),
        error(tensor(3, dtype="int64"), 0.1, 0, -5, 5), error(tensor(3), 0.1, 0.5, -5, 5),
        error(tensor(3), constant(1, dtype="float32"), 0, -5, 5), error(tensor(3), 0.1, 0, -5.0, 5),
        error(tensor(3), constant(2, dtype="float32"), literal([0], "int64"), -5, 5)]),
    OpInfo("fake_quantize_per_channel_affine",
        *[subgradient_sample(tensor(*shape), literal([0.25, 0.5, 2.0], "float32", False), zeros,
        axis, -8, 7) for shape, axis in (((3, 4), 0), ((2, 3, 4), 1), ((0, 3), 1), ((3,), 0))
        for zeros in (literal([0, 1, 5], "int32"), literal([0.5, 1.0, 9.0], "float32", False))],
        domain=BETWEEN_LEVELS, errors=[
        *[error(tensor(3, 4), constant(*sizes, dtype=scales), literal(zeros, dtype, False), axis,
        -5, high) for sizes, scales, zeros, dtype, axis, high in (
        ((3,), "float32", [0, 0, 9], "int32", 0, 5), ((3,), "float32", [0, 0, 0], "int64", 0, 5),
        ((3,), "float64", [0, 0, 0], "int32", 0, 5), ((3,), "float32", [0, 0, 0], "int32", 1, 5),
        ((3,), "float32", [0, 0], "int32", 0, 5), ((3, 1), "float32", [0, 0, 0], "int32", 0, 5),
        ((3,), "float32", [0, 0, 0], "int32", 2, 5), ((3,), "float32", [0, 0, 0], "int32", 0, -9),
        ((3,), "float32", [0, 0, 0], "int32", -2, 5))],
        error(tensor(), constant(1, dtype="float32"), literal([0], "int32"), 0, -5, 5)],
        skip_undefined_behavior=("empty",)),  # it asks for the least of no zero points
]

PROMOTED = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
    "bool")
PROMOTION = [
    *(OpInfo(f"promote.{name}",
        *[sample(tensor(2, dtype=a, domain=integer_valued(1, 4)),
        tensor(2, dtype=b, domain=integer_valued(1, 4))) for a in PROMOTED for b in PROMOTED],
        *[sample(tensor(2, dtype=a, domain=integer_valued(1, 4)),
        tensor(dtype=b, domain=integer_valued(1, 4))) for a in PROMOTED for b in PROMOTED],
        *[sample(tensor(2, dtype=a, domain=integer_valued(1, 4)), scalar) for a in PROMOTED
        for scalar in (2, 2.5, True)], dtypes=("float32",), supports_autograd=False,
        call=lambda torch, x, y, name=name: getattr(torch, name)(x, y),
        check_layouts=False) for name in ("add", "mul", "div", "eq")),
    OpInfo("promote.complex",
        *[sample(tensor(2, dtype=a, domain=integer_valued(1, 4)), y) for a in PROMOTED if a not
        in ("float16", "bfloat16") for y
        in (tensor(2, dtype="complex64"), tensor(dtype="complex64"), 2j)], dtypes=("float32",),
        supports_autograd=False, call=lambda torch, x, y: torch.add(x, y), check_layouts=False),
    OpInfo("result_type", *[sample(tensor(2, dtype=a), tensor(dtype=b)) for a in PROMOTED
        for b in PROMOTED], sample(tensor(2, dtype="int64"), 1.5),
        call=lambda torch, x, y: str(torch.result_type(x, y)), dtypes=("float32",),
        supports_autograd=False, check_layouts=False),
    OpInfo("can_cast", *[sample(Attribute(a), Attribute(b)) for a in PROMOTED for b in PROMOTED],
        dtypes=("float32",), supports_autograd=False, check_layouts=False),
    OpInfo("promote_types", *[sample(Attribute(a), Attribute(b)) for a in PROMOTED
        for b in PROMOTED], dtypes=("float32",), supports_autograd=False, check_layouts=False,
        call=lambda torch, a, b: str(torch.promote_types(a, b))),
]

OPS = [
    *UNARY, *ALIASES, *ARITHMETIC, *OPERATORS, *COMPARISON, *CLAMP_AND_CHOICE, *COMPLEX_ROWS,
    *ACTIVATIONS, *PROMOTION,
]

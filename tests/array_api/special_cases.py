"""The special cases of the array API standard's element-wise functions, as data.

Source: https://data-apis.org/array-api/2025.12/, "Special cases" of each function. A case is
``operands: result``. Operands are words of `OPERANDS`, each of which stands for every number of
`NUMBERS` that it describes. Results are numbers, words of `RESULTS`, or formulas in the operands:
``x`` and ``y``, or the parts ``a`` and ``b`` of a complex number. A `~` before a result leaves its
sign open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

inf, nan = math.inf, math.nan
FINITE = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 1e-30, 1e30)
#: Every number with both signs.
NUMBERS = [sign * number for number in (*FINITE, inf) for sign in (1.0, -1.0)] + [nan]


def _is_odd(x: float) -> bool:
    return math.isfinite(x) and abs(x) < 2**53 and x % 2 == 1


OPERANDS: dict[str, Callable[[float], bool]] = {
    "any": lambda x: True,
    "number": lambda x: x == x,
    "nan": lambda x: x != x,
    "+inf": lambda x: x == inf,
    "-inf": lambda x: x == -inf,
    "inf": lambda x: abs(x) == inf,
    "finite": math.isfinite,
    "nonzero": lambda x: math.isfinite(x) and x != 0,
    "positive": lambda x: math.isfinite(x) and x > 0,
    "negative": lambda x: math.isfinite(x) and x < 0,
    "+0": lambda x: x == 0 and math.copysign(1, x) > 0,
    "-0": lambda x: x == 0 and math.copysign(1, x) < 0,
    "0": lambda x: x == 0,
    "1": lambda x: x == 1,
    "-1": lambda x: x == -1,
    ">0": lambda x: x > 0,
    "<0": lambda x: x < 0,
    ">1": lambda x: x > 1,
    "<1": lambda x: x < 1,
    "<-1": lambda x: x < -1,
    "!0": lambda x: x != 0,
    "!1": lambda x: x != 1,
    "|1|": lambda x: abs(x) == 1,
    "|>1|": lambda x: abs(x) > 1,
    "|<1|": lambda x: abs(x) < 1,
    "whole": lambda x: x == x and abs(x) != inf and x == int(x),
    "broken": lambda x: x == x and abs(x) != inf and x != int(x),
    "odd>0": lambda x: x > 0 and _is_odd(x),
    "odd<0": lambda x: x < 0 and _is_odd(x),
    "other>0": lambda x: x > 0 and not _is_odd(x),
    "other<0": lambda x: x < 0 and not _is_odd(x),
}  # fmt: skip
#: Names in results beside the operands; `infinite` and `zero` have the sign of a number.
RESULTS = {
    "inf": inf, "nan": nan, "pi": math.pi, "abs": abs, "cos": math.cos, "sin": math.sin,
    "round": round, "infinite": lambda x: math.copysign(inf, x),
    "zero": lambda x: math.copysign(0, x),
}  # fmt: skip


#: Operands, the parts of the result, and whether the sign of each is specified.
Wanted = tuple[tuple[float, ...], list[float], list[bool]]


class Case:
    """Operands, and for each part of the result its value and whether its sign is specified."""

    def __init__(self, text: str, names: str) -> None:
        self.text = text
        operands, _, results = text.rpartition(": ")
        self.operands = [OPERANDS[word] for word in operands.split()]
        self.names = names
        assert len(self.operands) == len(names), text
        results = [result.strip() for result in results.split("&")]
        self.results = [(result.lstrip("~"), not result.startswith("~")) for result in results]

    def samples(self, rounded: Callable[[float], float]) -> Iterator[Wanted]:
        """What is wanted of each combination of numbers that the operands describe."""
        found: list[tuple[float, ...]] = [()]
        for holds in self.operands:
            found = [(*chosen, rounded(x)) for chosen in found for x in NUMBERS if holds(x)]
        signed = [sure for _, sure in self.results]
        for sample in found:
            known = {**RESULTS, **dict(zip(self.names, sample))}
            yield sample, [rounded(eval(text, known)) for text, _ in self.results], signed


def _table(text: str, names: str) -> dict[str, list[Case]]:
    """``function | case; case; ...`` per line; lines that begin with | go on."""
    table: dict[str, list[Case]] = {}
    functions: list[str] = []
    for line in text.strip().splitlines():
        names_of_line, _, cases = line.partition("|")
        functions = names_of_line.split() or functions
        for function in functions:
            table.setdefault(function, []).extend(
                [Case(case.strip(), names) for case in cases.split(";") if case.strip()]
            )
    return table


#: Of one real number.
REAL = _table(
    """
    abs         | nan: nan; -0: 0.0; -inf: inf
    acos        | nan: nan; >1: nan; <-1: nan; 1: 0.0
    acosh       | nan: nan; <1: nan; 1: 0.0; +inf: inf
    asin        | nan: nan; >1: nan; <-1: nan; 0: x
    asinh       | nan: nan; 0: x; inf: x
    atan        | nan: nan; 0: x; +inf: pi / 2; -inf: -pi / 2
    atanh       | nan: nan; <-1: nan; >1: nan; -1: -inf; 1: inf; 0: x
    ceil        | whole: x; inf: x; 0: x; nan: nan
    cos         | nan: nan; 0: 1; inf: nan
    cosh        | nan: nan; 0: 1; inf: inf
    exp         | nan: nan; 0: 1; +inf: inf; -inf: 0.0
    expm1       | nan: nan; 0: x; +inf: inf; -inf: -1
    floor       | whole: x; inf: x; 0: x; nan: nan
    isfinite    | inf: False; nan: False; finite: True
    isinf       | inf: True; finite: False; nan: False
    isnan       | nan: True; number: False
    log         | nan: nan; <0: nan; 0: -inf; 1: 0.0; +inf: inf
    log1p       | nan: nan; <-1: nan; -1: -inf; 0: x; +inf: inf
    log2        | nan: nan; <0: nan; 0: -inf; 1: 0.0; +inf: inf
    log10       | nan: nan; <0: nan; 0: -inf; 1: 0.0; +inf: inf
    negative    | any: -x
    positive    | any: x
    reciprocal  | +0: inf; -0: -inf; +inf: 0.0; -inf: -0.0; nan: nan; 1: 1
    round       | whole: x; inf: x; 0: x; nan: nan; broken: ~round(x)
    sign        | <0: -1; 0: ~0; >0: 1; nan: nan
    signbit     | +0: False; -0: True; +inf: False; -inf: True; >0: False; <0: True; nan: False
    sin         | nan: nan; 0: x; inf: nan
    sinh        | nan: nan; 0: x; inf: x
    square      | 0: 0.0; inf: inf; nan: nan; finite: x * x
    sqrt        | nan: nan; <0: nan; 0: x; +inf: inf
    tan         | nan: nan; 0: x; inf: nan
    tanh        | nan: nan; 0: x; +inf: 1; -inf: -1
    trunc       | whole: x; inf: x; 0: x; nan: nan
    """,
    "x",
)
#: Of two real numbers.
PAIRS = _table(
    """
    add         | nan any: nan; any nan: nan; +inf -inf: nan; -inf +inf: nan; +inf +inf: inf
                | -inf -inf: -inf; inf finite: x; finite inf: y; -0 -0: -0.0; -0 +0: 0.0
                | +0 -0: 0.0; +0 +0: 0.0; 0 nonzero: y; nonzero 0: x
    subtract    | nan any: nan; any nan: nan; +inf +inf: nan; -inf -inf: nan; +inf -inf: inf
                | -inf +inf: -inf; inf finite: x; finite inf: -y; -0 +0: -0.0; -0 -0: 0.0
                | +0 +0: 0.0; +0 -0: 0.0; 0 nonzero: -y; nonzero 0: x
    atan2       | nan any: nan; any nan: nan; >0 0: pi / 2; +0 >0: 0.0; +0 +0: 0.0; +0 -0: pi
                | +0 <0: pi; -0 >0: -0.0; -0 +0: -0.0; -0 -0: -pi; -0 <0: -pi; <0 0: -pi / 2
                | positive +inf: 0.0; positive -inf: pi; negative +inf: -0.0; negative -inf: -pi
                | +inf finite: pi / 2; -inf finite: -pi / 2; +inf +inf: pi / 4
                | +inf -inf: 3 * pi / 4; -inf +inf: -pi / 4; -inf -inf: -3 * pi / 4
    copysign    | number <0: -abs(x); number -0: -abs(x); number +0: abs(x); number >0: abs(x)
    divide      | nan any: nan; any nan: nan; inf inf: nan; 0 0: nan
    floor_divide| nan any: nan; any nan: nan; inf inf: nan; 0 0: nan
    divide floor_divide | +0 >0: 0.0; -0 >0: -0.0; +0 <0: -0.0; -0 <0: 0.0
                | >0 +0: inf; >0 -0: -inf; <0 +0: -inf; <0 -0: inf
                | +inf positive: inf; +inf negative: -inf; -inf positive: -inf
                | -inf negative: inf; positive +inf: 0.0; positive -inf: -0.0
                | negative +inf: -0.0; negative -inf: 0.0
    equal       | nan any: False; any nan: False; +inf +inf: True; -inf -inf: True; 0 0: True
                | finite finite: x == y; inf finite: False; finite inf: False
    not_equal   | nan any: True; any nan: True; +inf -inf: True; -inf +inf: True; 0 0: False
                | finite finite: x != y; inf finite: True; finite inf: True
    hypot       | inf any: inf; any inf: inf; 0 finite: abs(y); 0 nan: nan; finite 0: abs(x)
                | finite nan: nan; nan nan: nan; nan finite: nan
    logaddexp   | nan any: nan; any nan: nan; +inf number: inf; number +inf: inf
    maximum     | nan any: nan; any nan: nan; 0 0: ~0
    minimum     | nan any: nan; any nan: nan; 0 0: ~0
    multiply    | nan any: nan; any nan: nan; inf 0: nan; 0 inf: nan; inf inf: x * y
                | inf nonzero: x * y; nonzero inf: x * y; 0 finite: x * y; finite 0: x * y
    nextafter   | nan any: nan; any nan: nan; -0 +0: 0.0; +0 -0: -0.0
    pow         | !1 nan: nan; any 0: 1; nan !0: nan; |>1| +inf: inf; |>1| -inf: 0.0
                | |1| inf: 1; 1 number: 1; |<1| +inf: 0.0; |<1| -inf: inf; +inf >0: inf
                | +inf <0: 0.0; -inf odd>0: -inf; -inf other>0: inf; -inf odd<0: -0.0
                | -inf other<0: 0.0; +0 >0: 0.0; +0 <0: inf; -0 odd>0: -0.0; -0 other>0: 0.0
                | -0 odd<0: -inf; -0 other<0: inf; negative broken: nan
    remainder   | nan any: nan; any nan: nan; inf inf: nan; 0 0: nan; 0 >0: 0.0; 0 <0: -0.0
                | >0 0: nan; <0 0: nan; inf nonzero: nan; positive +inf: x; positive -inf: y
                | negative +inf: y; negative -inf: x; finite nonzero: x % y
    """,
    "xy",
)
#: Of one complex number a + bj: the real and the imaginary part, or one result that is real.
COMPLEX = _table(
    """
    abs     | inf any: inf; any inf: inf; 0 any: abs(b); any 0: abs(a); nan finite: nan
            | finite nan: nan; nan nan: nan
    acos    | 0 +0: pi / 2 & -0.0; 0 nan: pi / 2 & nan; finite +inf: pi / 2 & -inf
            | nonzero nan: nan & nan; -inf positive: pi & -inf; +inf positive: 0.0 & -inf
            | -inf +inf: 3 * pi / 4 & -inf; +inf +inf: pi / 4 & -inf; inf nan: nan & ~inf
            | nan finite: nan & nan; nan +inf: nan & -inf; nan nan: nan & nan
    acosh   | 0 +0: 0.0 & pi / 2; finite +inf: inf & pi / 2; nonzero nan: nan & nan
            | +0 nan: nan & ~pi / 2; -inf positive: inf & pi; +inf positive: inf & 0.0
            | -inf +inf: inf & 3 * pi / 4; +inf +inf: inf & pi / 4; inf nan: inf & nan
            | nan finite: nan & nan; nan +inf: inf & nan; nan nan: nan & nan
    asinh   | +0 +0: 0.0 & 0.0; positive +inf: inf & pi / 2; finite nan: nan & nan
            | +inf positive: inf & 0.0; +inf +inf: inf & pi / 4; nan +0: nan & 0.0
            | nan nonzero: nan & nan; nan +inf: ~inf & nan; nan nan: nan & nan
    atanh   | +0 +0: 0.0 & 0.0; +0 nan: 0.0 & nan; 1 +0: inf & 0.0; positive +inf: 0.0 & pi / 2
            | nonzero nan: nan & nan; +inf positive: 0.0 & pi / 2; +inf +inf: 0.0 & pi / 2
            | +inf nan: 0.0 & nan; nan finite: nan & nan; nan +inf: ~0 & pi / 2; nan nan: nan & nan
    cosh    | +0 +0: 1 & 0.0; +0 +inf: nan & ~0; +0 nan: nan & ~0; nonzero +inf: nan & nan
            | nonzero nan: nan & nan; +inf +0: inf & 0.0
            | +inf nonzero: infinite(cos(b)) & infinite(sin(b)); +inf +inf: ~inf & nan
            | +inf nan: inf & nan; nan 0: nan & ~0; nan nonzero: nan & nan; nan nan: nan & nan
    exp     | 0 +0: 1 & 0.0; finite +inf: nan & nan; finite nan: nan & nan; +inf +0: inf & 0.0
            | -inf finite: zero(cos(b)) & zero(sin(b))
            | +inf nonzero: infinite(cos(b)) & infinite(sin(b)); -inf +inf: ~0 & ~0
            | +inf +inf: ~inf & nan; -inf nan: ~0 & ~0; +inf nan: ~inf & nan; nan +0: nan & 0.0
            | nan !0: nan & nan; nan nan: nan & nan
    expm1   | 0 +0: ~0 & 0.0; finite +inf: nan & nan; finite nan: nan & nan; +inf +0: inf & 0.0
            | -inf finite: -1 & zero(sin(b))
            | +inf nonzero: infinite(cos(b)) & infinite(sin(b)); -inf +inf: -1 & ~0
            | +inf +inf: ~inf & nan; -inf nan: -1 & ~0; +inf nan: ~inf & nan; nan +0: nan & 0.0
            | nan !0: nan & nan; nan nan: nan & nan
    isfinite| nan any: False; any nan: False; inf any: False; any inf: False; finite finite: True
    isinf   | inf any: True; any inf: True; finite finite: False; nan finite: False
            | finite nan: False; nan nan: False
    isnan   | nan any: True; any nan: True; number number: False
    log     | -0 +0: -inf & pi; +0 +0: -inf & 0.0; nan finite: nan & nan
    log1p   | -1 +0: -inf & 0.0; nan finite: nan & nan
    log log1p | finite +inf: inf & pi / 2; finite nan: nan & nan; -inf positive: inf & pi
            | +inf positive: inf & 0.0; -inf +inf: inf & 3 * pi / 4; +inf +inf: inf & pi / 4
            | inf nan: inf & nan; nan +inf: inf & nan; nan nan: nan & nan
    negative| any any: -a & -b
    sign    | 0 0: ~0 & ~0; nan any: nan & nan; any nan: nan & nan
    sinh    | +0 +0: 0.0 & 0.0; +0 +inf: ~0 & nan; +0 nan: ~0 & nan; positive +inf: nan & nan
            | positive nan: nan & nan; +inf +0: inf & 0.0
            | +inf positive: infinite(cos(b)) & infinite(sin(b)); +inf +inf: ~inf & nan
            | +inf nan: ~inf & nan; nan +0: nan & 0.0; nan nonzero: nan & nan; nan nan: nan & nan
    sqrt    | 0 +0: 0.0 & 0.0; any +inf: inf & inf; finite nan: nan & nan; -inf positive: 0.0 & inf
            | +inf positive: inf & 0.0; -inf nan: nan & ~inf; +inf nan: inf & nan
            | nan finite: nan & nan; nan nan: nan & nan
    tanh    | +0 +0: 0.0 & 0.0; nonzero +inf: nan & nan; +0 +inf: 0.0 & nan; nonzero nan: nan & nan
            | +0 nan: 0.0 & nan; +inf positive: 1 & ~0; +inf +inf: 1 & ~0; +inf nan: 1 & ~0
            | nan +0: nan & 0.0; nan nonzero: nan & nan; nan nan: nan & nan
    """,
    "ab",
)
#: f(conj z) = conj f(z) holds for these, f(-z) = -f(z) and f(-z) = f(z) for those.
MIRRORED = "acos acosh asinh atanh cosh exp expm1 log log1p sinh sqrt tanh".split()
ODD = "asinh atanh sinh tanh".split()
EVEN = ["cosh"]
#: f(z) = -j g(jz), and cos z = cosh jz: f's cases are g's.
TURNED = {"asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh"}
#: f(z) = log(z) / log(base).
BASES = {"log2": 2, "log10": 10}
#: Python's operators and the functions whose results they have.
OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "pow", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}  # fmt: skip
COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal",
}  # fmt: skip

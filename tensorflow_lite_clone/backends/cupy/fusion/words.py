"""The words that expressions are made of, and how CUDA C++ says them.

A template is by the kind of the operands' common dtype: f (float32 and float64), i, u, b. Functions
that CUDA does not have are in `kernels/pointwise.cuh`.
"""

from __future__ import annotations

from typing import NamedTuple


class Word(NamedTuple):
    """How many operands a word takes, its templates by kind, whether it gives truth values."""

    arity: int
    templates: dict[str, str]
    truth: bool = False


def _by_kind(kinds: str, template: str) -> dict[str, str]:
    return dict.fromkeys(kinds, template)


_FUNCTIONS = """
    exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh
    acosh atanh floor ceil trunc erf erfc
"""
#: Words of one float that CUDA has under another name.
_RENAMED = {"round": "rint", "erfinv": "erfinv", "lgamma": "lgamma"}
_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*"}
_COMPARISONS = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_BITS = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
_SHIFTS = {"bitwise_left_shift": "<<", "bitwise_right_shift": ">>"}

WORDS: dict[str, Word] = {
    **{name: Word(1, {"f": f"{name}({{0}})"}) for name in _FUNCTIONS.split()},
    **{name: Word(1, {"f": f"{other}({{0}})"}) for name, other in _RENAMED.items()},
    **{name: Word(2, _by_kind("fiu", f"{{0}} {sign} {{1}}")) for name, sign in _OPERATORS.items()},
    **{
        name: Word(2, _by_kind("fiub", f"{{0}} {sign} {{1}}"), True)
        for name, sign in _COMPARISONS.items()
    },
    **{name: Word(2, _by_kind("iub", f"{{0}} {sign} {{1}}")) for name, sign in _BITS.items()},
    **{name: Word(2, _by_kind("iu", f"{{0}} {sign} {{1}}")) for name, sign in _SHIFTS.items()},
    "abs": Word(1, {"f": "fabs({0})", "i": "{0} < 0 ? -{0} : {0}", "u": "{0}", "b": "{0}"}),
    "atan2": Word(2, {"f": "atan2({0}, {1})"}),
    "bitwise_invert": Word(1, {"i": "~{0}", "u": "~{0}", "b": "!{0}"}),
    "copysign": Word(2, {"f": "copysign({0}, {1})"}),
    "divide": Word(2, {"f": "{0} / {1}"}),
    "floor_divide": Word(2, _by_kind("fiu", "floor_quotient({0}, {1})")),
    "fmax": Word(2, {"f": "fmax({0}, {1})"}),
    "fmin": Word(2, {"f": "fmin({0}, {1})"}),
    "fmod": Word(2, {"f": "fmod({0}, {1})"}),
    "hypot": Word(2, {"f": "hypot({0}, {1})"}),
    "isfinite": Word(1, {"f": "isfinite({0})"}, True),
    "isinf": Word(1, {"f": "isinf({0})"}, True),
    "isnan": Word(1, {"f": "isnan({0})"}, True),
    "logaddexp": Word(2, {"f": "log_of_sum({0}, {1})"}),
    "logical_and": Word(2, _by_kind("fiub", "{0} && {1}"), True),
    "logical_not": Word(1, _by_kind("fiub", "!{0}"), True),
    "logical_or": Word(2, _by_kind("fiub", "{0} || {1}"), True),
    "logical_xor": Word(2, _by_kind("fiub", "!{0} != !{1}"), True),
    "maximum": Word(2, _by_kind("fiub", "larger({0}, {1})")),
    "minimum": Word(2, _by_kind("fiub", "smaller({0}, {1})")),
    "negative": Word(1, _by_kind("fiu", "-{0}")),
    "pow": Word(2, {"f": "pow({0}, {1})"}),
    "reciprocal": Word(1, {"f": "1 / {0}"}),
    "remainder": Word(2, _by_kind("fiu", "floor_remainder({0}, {1})")),
    "sign": Word(1, _by_kind("fiu", "sign_of({0})")),
    "signbit": Word(1, {"f": "signbit({0})"}, True),
    "square": Word(1, _by_kind("fiu", "{0} * {0}")),
    "where": Word(3, _by_kind("fiub", "{0} ? {1} : {2}")),
}
# Of truth values the sum is whether one holds, the product whether both do.
WORDS["add"].templates["b"] = "{0} || {1}"
WORDS["multiply"].templates["b"] = "{0} && {1}"

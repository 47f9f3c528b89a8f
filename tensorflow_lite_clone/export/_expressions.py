"""Expressions over the sizes of dynamic dimensions, in a normal form in which equal ones are equal.

An expression is a sum of products with whole factors: ``2*s0*s1 + 3``. What is divided without
being a multiple stays as it is and counts as one factor: ``(s0//2)``.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

#: Comparisons of sizes, by their signs.
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip
#: What a product is made of: the names of symbols, and parts that cannot be divided further.
Factor = Any


class Part:
    """A quotient or remainder of two expressions, as a factor."""

    __slots__ = ("left", "operator", "right")

    def __init__(self, operator: str, left: Expression, right: Expression) -> None:
        self.operator, self.left, self.right = operator, left, right

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        left, right = [
            f"({each})" if len(each.terms) > 1 else str(each) for each in (self.left, self.right)
        ]
        return f"({left}//{right})" if self.operator == "//" else f"Mod({self.left}, {self.right})"


class Expression:
    """A sum: `terms` has the whole factor of every product."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[tuple[Factor, ...], int]) -> None:
        self.terms = {product: factor for product, factor in terms.items() if factor}

    @staticmethod
    def of(value: int | str | Expression) -> Expression:
        """A number, or the symbol of a name, as an expression."""
        if isinstance(value, Expression):
            return value
        return Expression({(value,): 1} if isinstance(value, str) else {(): int(value)})

    @staticmethod
    def parse(text: str) -> Expression:
        """What `str` wrote; ValueError for anything else."""
        try:
            return _parsed(ast.parse(text, mode="eval").body)
        except SyntaxError:
            raise ValueError(f"{text!r} is no expression over sizes") from None

    @property
    def number(self) -> int | None:
        """The number that it is; None if it depends on symbols."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def symbols(self) -> frozenset[str]:
        """The names of the symbols in it."""
        found: set[str] = set()
        for product in self.terms:
            for factor in product:
                if isinstance(factor, Part):
                    found |= factor.left.symbols | factor.right.symbols
                else:
                    found.add(factor)
        return frozenset(found)

    def value(self, sizes: Mapping[str, int]) -> int:
        """What it is for these sizes."""
        total = 0
        for product, number in self.terms.items():
            for factor in product:
                if isinstance(factor, Part):
                    left, right = factor.left.value(sizes), factor.right.value(sizes)
                    number *= left // right if factor.operator == "//" else left % right
                else:
                    number *= sizes[factor]
            total += number
        return total

    def bounds(self, ranges: Mapping[str, tuple[int, float]]) -> tuple[float, float]:
        """A range that it cannot leave while its symbols, which are not negative, keep theirs."""
        low: float = 0
        high: float = 0
        for product, number in self.terms.items():
            least: float = 1
            most: float = 1
            for factor in product:
                below, above = self._factor_bounds(factor, ranges)
                least, most = least * below, most * above
            ends = sorted([number * least, number * most])
            low, high = low + ends[0], high + ends[1]
        return low, high

    @staticmethod
    def _factor_bounds(
        factor: Factor, ranges: Mapping[str, tuple[int, float]]
    ) -> tuple[float, float]:
        if not isinstance(factor, Part):
            return ranges[factor]
        low, high = factor.left.bounds(ranges)
        divisor = factor.right.number
        if divisor is None or divisor < 1 or low < 0:
            return 0, math.inf
        if factor.operator == "%":
            return 0, divisor - 1
        return low // divisor, high // divisor if high < math.inf else high

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __add__(self, other: Expression) -> Expression:
        terms = dict(self.terms)
        for product, number in other.terms.items():
            terms[product] = terms.get(product, 0) + number
        return Expression(terms)

    def __neg__(self) -> Expression:
        return Expression({product: -number for product, number in self.terms.items()})

    def __sub__(self, other: Expression) -> Expression:
        return self + -other

    def __mul__(self, other: Expression) -> Expression:
        terms: dict[tuple, int] = {}
        for first, one in self.terms.items():
            for second, two in other.terms.items():
                product = tuple(sorted(first + second, key=str))
                terms[product] = terms.get(product, 0) + one * two
        return Expression(terms)

    def __floordiv__(self, other: Expression) -> Expression:
        quotient = self.exactly(other)
        return Expression({(Part("//", self, other),): 1}) if quotient is None else quotient

    def __mod__(self, other: Expression) -> Expression:
        if self.exactly(other) is not None:
            return Expression({})
        return Expression({(Part("%", self, other),): 1})

    def exactly(self, other: Expression) -> Expression | None:
        """The quotient by a product of which every term is a multiple."""
        if self.number is not None and other.number:
            return (
                Expression.of(self.number // other.number)
                if not (self.number % other.number)
                else None
            )
        if len(other.terms) != 1:
            return None
        ((divisor, number),) = other.terms.items()
        terms = {}
        for product, factor in self.terms.items():
            rest = list(product)
            for each in divisor:
                if each not in rest:
                    return None
                rest.remove(each)
            if factor % number:
                return None
            terms[tuple(rest)] = factor // number
        return Expression(terms)

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        written = []
        for product in sorted(self.terms, key=lambda each: (not each, *map(str, each))):
            number = self.terms[product]
            factors = "*".join(self._powers(product))
            if not factors:
                written.append(str(number))
            elif abs(number) == 1:
                written.append(factors if number == 1 else f"-{factors}")
            else:
                written.append(f"{number}*{factors}")
        return " + ".join(written).replace("+ -", "- ")

    @staticmethod
    def _powers(product: tuple) -> list[str]:
        texts = [str(factor) for factor in product]
        return [
            text if texts.count(text) == 1 else f"{text}**{texts.count(text)}"
            for text in dict.fromkeys(texts)
        ]

    __repr__ = __str__


_OPERATORS: dict[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}  # fmt: skip


def _parsed(node: Any) -> Expression:
    if isinstance(node, ast.Name):
        return Expression.of(node.id)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Expression.of(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_parsed(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        found: Expression = _OPERATORS[type(node.op)](_parsed(node.left), _parsed(node.right))
        return found
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        power = Expression.of(1)
        for _ in range(_parsed(node.right).number or 0):
            power *= _parsed(node.left)
        return power
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Mod":
        left, right = map(_parsed, node.args)
        return left % right
    raise ValueError(f"{ast.dump(node)} is no expression over sizes")

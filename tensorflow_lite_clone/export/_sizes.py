"""The dynamic dimensions of a capture: their symbols, what programs ask of sizes, and guards.

A capture runs each operation on several sizes of the dynamic dimensions, in `lanes`. The first has
the sizes of the example inputs. A size of a result is the expression that gives what it is in all
lanes; one that no expression gives is a symbol of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tensorflow_lite_clone.export._expressions import COMPARISONS, Expression


class Infinity(float):
    """No bound, which prints as PyTorch's does."""

    def __repr__(self) -> str:
        return "int_oo" if self > 0 else "-int_oo"

    __str__ = __repr__

    def __neg__(self) -> Infinity:
        return Infinity(float.__neg__(self))


int_oo = Infinity("inf")
LANES = 4
#: By how much the sizes of other lanes differ from the example's; dimensions take turns.
_STEPS = ((1, 3, 6), (2, 5, 3), (3, 1, 8), (4, 7, 2), (5, 2, 9), (6, 9, 1))
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


class Guard(NamedTuple):
    """A comparison of sizes that holds where the program may be used."""

    left: Any
    operator: str
    right: Any

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


class Specialized(Exception):
    """A capture that holds for one size of a dynamic dimension alone, and must begin anew."""

    def __init__(self, symbol: str, value: Expression) -> None:
        super().__init__(f"{symbol} == {value}")
        self.symbol, self.value = symbol, value


class Unbacked(Exception):
    """A capture that must begin anew: a size that depends on values has these bounds."""

    def __init__(self, symbol: str, bounds: tuple[int, float]) -> None:
        super().__init__(f"{symbol} in {bounds}")
        self.symbol, self.bounds = symbol, bounds


class Symbol(NamedTuple):
    """A dynamic dimension: its size in the example and the sizes that it may have."""

    name: str
    hint: int
    least: int
    most: float


class Sizes:
    """The symbols of a capture with what they are in every lane, and the guards."""

    def __init__(
        self,
        symbols: Sequence[Symbol],
        lanes: list[dict[str, int]] | None = None,
        bounds: Mapping[str, tuple[int, float]] | None = None,
    ) -> None:
        self.bounds = bounds or {}  # of sizes that depend on values, from the run before
        self.ranges: dict[str, tuple[int, float]] = {}
        self.lanes = lanes or [{} for _ in range(LANES if symbols or bounds else 1)]
        self.guards: list[Guard] = []
        self.unbacked: set[str] = set()
        self._known: dict[tuple[int, ...], Expression] = {}
        for number, symbol in enumerate(symbols):
            if lanes is None:
                self._fill(symbol, _STEPS[number % len(_STEPS)])
            self.ranges[symbol.name] = (max(symbol.least, 2), symbol.most)
            self.note(Expression.of(symbol.name))

    def _fill(self, symbol: Symbol, steps: Sequence[int]) -> None:
        """Say what a symbol is in the lanes."""
        sizes = [symbol.hint, *[symbol.hint + step for step in steps]]
        span = symbol.most - symbol.least
        if max(sizes) > symbol.most:
            sizes = [symbol.hint, *[
                max(symbol.least, 2) + (symbol.hint + step) % max(int(span), 1) for step in steps
            ]]  # fmt: skip
        for lane, size in zip(self.lanes, sizes):
            lane[symbol.name] = size

    def add_unbacked(self, name: str, most: float = int_oo) -> Expression:
        """A symbol for a size that depends on values, which differ from lane to lane."""
        if len(self.lanes) == 1:  # where it could not be told from numbers
            raise Unbacked(name, (0, most))
        self.unbacked.add(name)
        self.ranges[name] = (0, most)
        least, bound = self.bounds.get(name, (0, int_oo))
        for number, lane in enumerate(self.lanes):
            size = 7 + 6 * number + 2 * len(self.unbacked)
            if not least <= size <= bound:
                if bound != int_oo:  # equal sizes in all lanes would be taken for a number
                    size = (number + len(self.unbacked)) % int(bound - least + 1)
                size += least
            lane[name] = size
        expression = Expression.of(name)
        if len(set(self.values(expression))) > 1:
            self.note(expression)
        return expression

    def values(self, expression: Expression) -> tuple[int, ...]:
        """What an expression is in every lane."""
        return tuple([expression.value(lane) for lane in self.lanes])

    def note(self, expression: Expression) -> Expression:
        """Let sizes be recognised as this expression."""
        return self._known.setdefault(self.values(expression), expression)

    def expression(self, values: tuple[int, ...]) -> Expression | None:
        """What gives these sizes in the lanes: a number, or the simplest of known expressions."""
        if len(set(values)) == 1 and not self.unbacked:
            return Expression.of(values[0])
        known = self._known.get(values)
        if known is not None:
            return known
        if len(set(values)) == 1:
            return Expression.of(values[0])
        found = self._fitted(values)
        return None if found is None else self.note(found)

    def _fitted(self, values: tuple[int, ...]) -> Expression | None:
        known = list(self._known.items())
        for have, expression in known:
            step, change = have[1] - have[0], values[1] - values[0]
            if step and change % step == 0:
                factor = change // step
                found = expression * Expression.of(factor)
                found += Expression.of(values[0] - factor * have[0])
                if self.values(found) == values:
                    return found
        for number, (have, expression) in enumerate(known):
            for also, other in known[number:]:
                for found in (expression + other, expression - other, other - expression):
                    rest = values[0] - found.value(self.lanes[0])
                    if tuple([v - rest for v in values]) == self.values(found):
                        return found + Expression.of(rest)
                factor, rest = divmod(values[0], have[0] * also[0] or 1)
                found = expression * other * Expression.of(factor)
                if not rest and self.values(found) == values:
                    return found
        for have, expression in known:
            for divisor in range(2, 33):
                for offset in range(values[0] * divisor, (values[0] + 1) * divisor):
                    shift = offset - have[0]
                    if [(size + shift) // divisor for size in have] == list(values):
                        return (expression + Expression.of(shift)) // Expression.of(divisor)
        return None

    # ------------------------------------------------------------------------------- comparisons

    def decided(self, left: Expression, operator: str, right: Expression) -> bool | None:
        """What a comparison is for all sizes in their ranges; None if it depends on them."""
        low, high = (left - right).bounds(self.ranges)
        if operator in ("==", "!="):
            if left == right or low > 0 or high < 0:
                return (left == right) == (operator == "==")
            return None
        if operator in (">", ">="):
            low, high, operator = -high, -low, "<" if operator == ">" else "<="
        if operator == "<":
            return True if high < 0 else False if low >= 0 else None
        return True if high <= 0 else False if low > 0 else None

    def compare(self, left: Expression, operator: str, right: Expression) -> bool:
        """What a comparison is in the example, which is noted as a guard unless it always is so."""
        known = self.decided(left, operator, right)
        if known is not None:
            return known
        one, two = left.value(self.lanes[0]), right.value(self.lanes[0])
        found = bool(COMPARISONS[operator](one, two))
        self.require(left, operator if found else _NEGATED[operator], right)
        return found

    def require(self, left: Expression, operator: str, right: Expression) -> None:
        """Note that a comparison must hold; `Specialized` if but one size is left."""
        if operator == "==":
            for symbol, value in self._solutions(left, right):
                raise Specialized(symbol, value)
        self.guards.append(Guard(left, operator, right))
        self._narrow(left, operator, right)

    def assume(self, left: Expression, operator: str, right: Expression) -> None:
        """Narrow the range of a size that depends on values by what the program checks.

        Where that is no longer so in all lanes, the capture must begin anew with sizes of which it
        is: what follows may rely on it.
        """
        self._narrow(left, operator, right)
        if operator in (">", ">="):
            left, operator, right = right, operator.translate(str.maketrans("<>", "><")), left
        for name in sorted((left.symbols | right.symbols) & self.unbacked):
            least, most = self.ranges[name]
            low, high = self.bounds.get(name, (least, most))
            least, most = max(least, low), min(most, high)
            if operator in ("<", "<=") and left == Expression.of(name):
                most = min(most, *[size - (operator == "<") for size in self.values(right)])
            if least <= most and not all([least <= lane[name] <= most for lane in self.lanes]):
                raise Unbacked(name, (least, most))

    @staticmethod
    def _solutions(left: Expression, right: Expression) -> list[tuple[str, Expression]]:
        """What a symbol is, where an equation says so."""
        found: list[tuple[str, Expression]] = []
        difference = left - right
        for product, number in difference.terms.items():
            if len(product) == 1 and isinstance(product[0], str):
                rest = difference - Expression({product: number})
                value = (-rest).exactly(Expression.of(number))
                if product[0] not in rest.symbols and value is not None:
                    found.append((product[0], value))
        return sorted(found, reverse=True, key=lambda each: each[0])

    def _narrow(self, left: Expression, operator: str, right: Expression) -> None:
        """Take a bound of one symbol into its range."""
        difference = left - right
        symbols = difference.symbols
        if len(symbols) != 1 or operator == "!=":
            return
        (symbol,) = symbols
        number = difference.terms.get((symbol,), 0)
        if not number or len(difference.terms) > 2 or set(difference.terms) - {(symbol,), ()}:
            return
        bound = -difference.terms.get((), 0) / number
        if number < 0:
            operator = operator.translate(str.maketrans("<>", "><"))
        least, most = self.ranges[symbol]
        if operator in (">", ">="):
            strict = operator == ">" and bound == int(bound)
            least = max(least, int(bound) + 1 if strict else math.ceil(bound))
        else:
            strict = operator == "<" and bound == int(bound)
            most = min(most, int(bound) - 1 if strict else math.floor(bound))
        self.ranges[symbol] = least, most

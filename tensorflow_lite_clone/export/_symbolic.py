"""`SymInt`, `SymFloat` and `SymBool` of a capture: sizes that a program calculates with."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.export._expressions import COMPARISONS, Expression
from tensorflow_lite_clone.ops.compat import symbols
from tensorflow_lite_clone.ops.namespaces import aten

if TYPE_CHECKING:
    from tensorflow_lite_clone.export._capture import Capture


class _Symbolic:
    """A number of the captured program; `node` is what gives it in the graph."""

    _capture: Capture
    _node: Any = None

    def lane(self, number: int) -> Any:
        """The number in a lane of the capture."""
        raise NotImplementedError

    @property
    def node(self) -> Any:
        """The node that gives the number."""
        return self._node


class SymInt(_Symbolic, symbols.SymInt):
    """A size, or what was calculated of sizes, by an expression."""

    def __init__(self, capture: Capture, expression: Expression, node: Any = None) -> None:
        self._capture, self.expression, self._node = capture, expression, node

    @property
    def node(self) -> Any:
        """The node that gives the number, which is added to the graph when it is first used."""
        if self._node is None:
            self._node = self._capture.node_of(self.expression)
        return self._node

    @property
    def hint(self) -> int:
        """The number in the example."""
        return self.expression.value(self._capture.sizes.lanes[0])

    def lane(self, number: int) -> int:
        """The number in a lane."""
        return self.expression.value(self._capture.sizes.lanes[number])

    def __index__(self) -> int:
        self._capture.specialize(self.expression)
        return self.hint

    __int__ = __index__

    def __float__(self) -> float:
        return float(int(self))

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __hash__(self) -> int:
        return hash(self.expression)

    def __repr__(self) -> str:
        return str(self.expression)

    def __neg__(self) -> Any:
        return self._made(operator.neg, -self.expression, self)

    def __pos__(self) -> SymInt:
        return self

    def __abs__(self) -> Any:
        return -self if self._capture.compare(self.expression, "<", Expression.of(0)) else self

    def _made(self, function: Callable[..., Any], expression: Expression, *operands: Any) -> Any:
        number = expression.number
        if number is not None:
            return number
        node = self._capture.add(function, operands)
        self._capture.sizes.note(expression)
        made = SymInt(self._capture, expression, node)
        node.meta["val"] = made
        return made

    def __truediv__(self, other: Any) -> Any:
        return _float(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _float(operator.truediv, other, self)

    def __pow__(self, other: Any) -> Any:
        if isinstance(other, int) and other >= 0:
            result: Any = 1
            for _ in range(other):
                result = self * result
            return result
        return _float(operator.pow, self.__sym_float__(), other)

    def __rpow__(self, other: Any) -> Any:
        return _float(operator.pow, other, self)

    def __sym_float__(self) -> Any:
        return _float(symbols.sym_float, self)

    def __deepcopy__(self, memo: Any) -> SymInt:
        return self


class SymFloat(_Symbolic, symbols.SymFloat):
    """A number of sizes that is not whole, by what it is in every lane."""

    def __init__(self, capture: Capture, values: list[float], node: Any) -> None:
        self._capture, self._values, self._node = capture, values, node

    def lane(self, number: int) -> float:
        """The number in a lane."""
        return self._values[number]

    def __float__(self) -> float:
        self._capture.refuse_value(self)
        return self._values[0]

    def __int__(self) -> int:
        return int(float(self))

    def __bool__(self) -> bool:
        return bool(float(self))

    def __sym_float__(self) -> SymFloat:
        return self

    def __repr__(self) -> str:
        return str(self._node)

    def __neg__(self) -> Any:
        return _float(operator.neg, self)

    def __deepcopy__(self, memo: Any) -> SymFloat:
        return self


class SymBool(_Symbolic, symbols.SymBool):
    """A comparison of sizes, which becomes a guard when the program asks what it is."""

    def __init__(self, left: Any, name: str, right: Any) -> None:
        one = left if isinstance(left, SymInt) else right
        self._capture = one._capture
        self._sides = _expression(left), name, _expression(right)
        self._operands = left, right

    @property
    def node(self) -> Any:
        """The node that gives the condition."""
        if self._node is None:
            self._node = self._capture.add(COMPARISONS[self._sides[1]], self._operands)
            self._node.meta["val"] = self
        return self._node

    def __bool__(self) -> bool:
        return self._capture.compare(*self._sides)

    def _expect_true(self) -> bool:
        left, sign, right = self._sides
        sizes = self._capture.sizes
        if not (left.symbols | right.symbols) & sizes.unbacked:
            return bool(self)
        known = sizes.decided(left, sign, right)
        if known is not None:
            return known
        message = f"Runtime assertion failed for expression {self} on node '{self.node}'"
        self._capture.emit(aten._assert_scalar.default, (self, message), {})
        return True

    def assume(self) -> None:
        """Let the capture rely on the condition."""
        self._capture.sizes.assume(*self._sides)

    def lane(self, number: int) -> bool:
        """The condition in a lane."""
        left, name, right = self._sides
        sizes = self._capture.sizes.lanes[number]
        return bool(COMPARISONS[name](left.value(sizes), right.value(sizes)))

    def __repr__(self) -> str:
        left, name, right = self._sides
        return f"{left} {name} {right}"

    def __deepcopy__(self, memo: Any) -> SymBool:
        return self


def _expression(value: Any) -> Expression:
    return value.expression if isinstance(value, SymInt) else Expression.of(value)


def _float(function: Callable[..., Any], *operands: Any) -> Any:
    """What a function gives of numbers, of which one is symbolic."""
    capture = next(x._capture for x in operands if isinstance(x, _Symbolic))
    node = capture.add(function, operands)
    values = [
        function(*[x.lane(number) if isinstance(x, _Symbolic) else x for x in operands])
        for number in range(len(capture.sizes.lanes))
    ]
    made = SymFloat(capture, values, node)
    node.meta["val"] = made
    return made


def _arithmetic(function: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    def calculate(self: SymInt, other: Any) -> Any:
        if isinstance(other, (float, symbols.SymFloat)):
            operands = (other, self) if reflected else (self, other)
            return _float(function, *operands)
        if not isinstance(other, (int, SymInt)):
            return NotImplemented
        left, right = (other, self) if reflected else (self, other)
        return self._made(function, function(_expression(left), _expression(right)), left, right)

    return calculate


def _comparison(name: str) -> Callable[..., Any]:
    def compare(self: SymInt, other: Any) -> Any:
        if isinstance(other, float) and other.is_integer():
            other = int(other)
        if not isinstance(other, (int, SymInt)):
            if isinstance(other, float):  # a bound that may be infinite
                return COMPARISONS[name](self.hint, other)
            return NotImplemented
        return SymBool(self, name, other)

    return compare


def _of_floats(function: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    def calculate(self: SymFloat, other: Any) -> Any:
        if not isinstance(other, (int, float, SymInt, SymFloat)):
            return NotImplemented
        return _float(function, *((other, self) if reflected else (self, other)))

    return calculate


def _float_comparison(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: function(float(self), float(other))


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    _function = getattr(operator, _name)
    setattr(SymInt, f"__{_name}__", _arithmetic(_function, False))
    setattr(SymInt, f"__r{_name}__", _arithmetic(_function, True))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "pow"):
    _function = getattr(operator, _name)
    setattr(SymFloat, f"__{_name}__", _of_floats(_function, False))
    setattr(SymFloat, f"__r{_name}__", _of_floats(_function, True))
for _sign, _function in COMPARISONS.items():
    setattr(SymInt, f"__{_function.__name__}__", _comparison(_sign))
    setattr(SymFloat, f"__{_function.__name__}__", _float_comparison(_function))
SymFloat.__hash__ = object.__hash__  # type: ignore[method-assign]


def expression_node(capture: Capture, expression: Expression) -> Any:
    """The node of an expression, calculated from the sizes in it."""
    total: Any = None
    for product, number in expression.terms.items():
        value: Any = number if number != 1 or not product else None
        for factor in product:
            size: Any
            if isinstance(factor, str):
                size = SymInt(capture, Expression.of(factor))
            else:
                sides: list[Any] = [
                    SymInt(capture, side) if side.number is None else side.number
                    for side in (factor.left, factor.right)
                ]
                size = sides[0] // sides[1] if factor.operator == "//" else sides[0] % sides[1]
            value = size if value is None else size * value
        total = value if total is None else total + value
    return total.node

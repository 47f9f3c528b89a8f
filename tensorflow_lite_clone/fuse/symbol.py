"""What formulas do element by element, as graphs of symbols.

Whatever depends on more than one element (shapes, indices, sums) raises `NotPointwise`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES


class NotPointwise(Exception):
    """What a formula does cannot be said element by element."""


#: ufunc -> the primitive that it is
_PRIMITIVE_OF = {
    found: name for name in PRIMITIVES if isinstance(found := getattr(np, name, None), np.ufunc)
}


class Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """An array in an expression: an operand, a number, or what a function makes of other symbols.

    `name` is that of a primitive or an op, or "operand" or "number"; `value` the position of an
    operand, the value of a number, the parameters of an op. `target` is the device's `Target`.
    """

    __slots__ = (
        "_shape", "dtype", "is_asked", "memory",
        "name", "operands", "overridden", "target", "value",
    )  # fmt: skip

    def __init__(
        self,
        target: Any,
        name: str,
        dtype: Any,
        operands: tuple = (),
        value: Any = None,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        self.target, self.name, self.dtype = target, name, dtype
        self.operands, self.value, self._shape = operands, value, shape
        self.memory = dtype  # of an operand: its dtype there
        self.is_asked = False  # of an operand: for its shape
        self.overridden = False  # a device's own kernel computes just this

    def __getattr__(self, name: str) -> Any:
        raise NotPointwise(f"'{name}' of an array")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape here and now, which binds the expression to it."""
        if self.name == "operand":
            self.is_asked = True
        elif self._shape is None:
            self._shape = np.broadcast_shapes(*[operand.shape for operand in self.operands])
        if self._shape is None:
            raise NotPointwise("the shape of an array")
        return self._shape

    @property
    def ndim(self) -> int:
        """How many axes there are here and now."""
        return len(self.shape)

    def _refused(self, *args: Any, **kwargs: Any) -> Any:
        raise NotPointwise("the values of an array")

    __bool__ = __float__ = __int__ = __index__ = __len__ = __iter__ = __getitem__ = _refused
    __setitem__ = __array__ = __array_function__ = _refused
    __hash__ = object.__hash__

    def __pow__(self, other: Any) -> Any:
        if type(other) in (int, float) and other == 2:
            return self.target.apply("square", self)  # as an array does
        return self.target.apply("pow", self, other)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple = (), **options: Any
    ) -> Symbol:
        """What operators do. ``x += y`` gives another symbol, and writes into no operand."""
        name = _PRIMITIVE_OF.get(ufunc)
        if name is None or method != "__call__" or options:
            raise NotPointwise(f"{ufunc.__name__}.{method}")
        if out and (out[0] is not inputs[0] or not out[0].operands):
            raise NotPointwise("a write into an operand")
        result: Symbol = self.target.apply(name, *inputs)
        return result


def in_order(results: tuple) -> list[Symbol]:
    """All that results are computed from, and they, each after its operands.

    Chains are deeper than functions may call themselves.
    """
    seen: dict[int, Symbol] = {}
    stack = list(reversed(results))
    while stack:
        symbol = stack.pop()
        if id(symbol) in seen:
            continue
        waiting = [operand for operand in symbol.operands if id(operand) not in seen]
        if waiting:
            stack += [symbol, *reversed(waiting)]
        else:
            seen[id(symbol)] = symbol
    return list(seen.values())


def operands_of(results: tuple) -> tuple[Symbol, ...]:
    """The operands that results are computed from, in order."""
    found = [symbol for symbol in in_order(results) if symbol.name == "operand"]
    return tuple(sorted(found, key=lambda symbol: symbol.value))


def rebuilt(symbol: Symbol, memo: dict[int, Symbol]) -> Symbol:
    """A symbol over other operands; `memo` has those of the operands, and takes all others."""
    known = memo.get(id(symbol))
    if known is None:
        known = symbol
        if symbol.operands:
            operands = tuple([rebuilt(operand, memo) for operand in symbol.operands])
            known = Symbol(symbol.target, symbol.name, symbol.dtype, operands, symbol.value)
        memo[id(symbol)] = known
    return known

"""A formula as expressions of its operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tensorflow_lite_clone.fuse.namespace import Namespace
from tensorflow_lite_clone.fuse.symbol import NotPointwise, Symbol, operands_of
from tensorflow_lite_clone.fuse.target import FLOAT32


class Unchanged(NotPointwise):
    """The formula hands on an operand; `whole`: all that it gives are operands."""

    def __init__(self, whole: bool) -> None:
        super().__init__("an operand as a result")
        self.whole = whole


class Trace(NamedTuple):
    """A formula as expressions of its operands."""

    names: tuple[str, ...]  # of the operands
    operands: tuple[Symbol, ...]
    results: tuple[Symbol, ...]
    by_shape: bool  # it is for operands of these shapes alone
    literal: bool  # numbers are the formula's own, not given as parameters


def trace(
    body: Callable[..., Any],
    F: Namespace,
    kinds: tuple,
    shapes: tuple,
    parameters: dict,
    *,
    widened: bool,
) -> Trace:
    """Run `body` on symbols; `kinds` are the operands' dtypes, None for an operand that is None.

    With `widened` two-byte floats are taken for float32, as which they are computed. Raises
    NotPointwise.
    """
    names = body.__code__.co_varnames[1 : body.__code__.co_argcount]
    if len(names) != len(kinds):
        names = tuple([f"x{position}" for position in range(len(kinds))])
    operands: list[Any] = []
    for position, (dtype, shape) in enumerate(zip(kinds, shapes)):
        if dtype is None:
            operands.append(None)
            continue
        if dtype.kind not in "biufV":
            raise NotPointwise(f"an operand of {dtype}")
        wide = widened and dtype.itemsize == 2 and dtype.kind in "fV"
        symbol = Symbol(F.target, "operand", FLOAT32 if wide else dtype, (), position, shape)
        symbol.memory = dtype
        operands.append(symbol)
    with np.errstate(all="ignore"):
        found = body(F, *operands, **parameters)
    results = found if type(found) is tuple else (found,)
    unchanged = [isinstance(result, Symbol) and result.name == "operand" for result in results]
    if any(unchanged):
        raise Unchanged(all(unchanged))
    for result in results:
        if not isinstance(result, Symbol) or not result.operands or result.overridden:
            raise NotPointwise("a result that is no new array")
    by_shape = any([symbol is not None and symbol.is_asked for symbol in operands])
    return Trace(names, operands_of(results), tuple(results), by_shape, not parameters)

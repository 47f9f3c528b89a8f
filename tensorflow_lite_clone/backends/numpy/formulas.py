"""What a recorded call does element by element: its formula, run on symbols.

A symbol is one function of NumPy's, or an op with a form of its own for the CPU. Their results are
the same bits for a part of an array as for all of it, so that they may be computed block by block.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy import primitives
from tensorflow_lite_clone.backends.numpy.native import NATIVE
from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tensorflow_lite_clone.dispatch.table import serves
from tensorflow_lite_clone.fuse.namespace import Namespace
from tensorflow_lite_clone.fuse.symbol import NotPointwise, Symbol
from tensorflow_lite_clone.fuse.target import Target

#: What writes into its first argument -> what gives the same as a new array
OUT_OF_PLACE = {
    operator.iadd: operator.add,
    operator.isub: operator.sub,
    operator.imul: operator.mul,
    operator.itruediv: operator.truediv,
}


class CpuTarget(Target):
    """NumPy's functions, which cast their operands, and ops that the CPU has a form for."""

    xp = np
    native = NATIVE

    def __init__(self, arrays: Any) -> None:
        self.arrays = arrays  # F over arrays

    def kinds(self, name: str) -> Collection[str]:
        record = PRIMITIVES.get(name)
        if record is None or not record.arity or len(record.dtypes) > 1:
            return ""
        if name != "where" and not isinstance(_ufunc(name), np.ufunc):
            return ""
        if name == "positive":
            return "fiu"
        return record.c or ("f" if record.dtypes == ("floating",) else "")

    def constant(self, value: Any, dtype: Any) -> Any:
        return self.arrays.backend.constant(value, dtype)

    def cast(self, value: Any, dtype: Any) -> Symbol:
        return value if isinstance(value, Symbol) else Symbol(self, "number", dtype, (), value)

    def apply(self, name: str, *values: Any) -> Symbol:
        symbol = super().apply(name, *values)
        if name == "where":  # which casts nothing
            kinds = [value.dtype for value in symbol.operands[1:] if value.name != "number"]
            if {symbol.dtype} != {*kinds} or len(kinds) == 1 and symbol.dtype.kind != "f":
                raise NotPointwise("a choice between dtypes")
        return symbol

    def own(self, name: str, result: Any, values: tuple, parameters: dict[str, Any]) -> Any:
        """The result, which tells that all is done by elements, or the form that the CPU has."""
        if not serves(name, self.arrays.backend):
            return result
        symbols = [value for value in values if isinstance(value, Symbol)]
        if not isinstance(result, Symbol) or not symbols:
            raise NotPointwise(f"'{name}'")
        if any([value.shape != result.shape for value in symbols]):
            raise NotPointwise(f"'{name}' of operands that broadcast")
        operands = tuple([self.cast(value, None) for value in values])
        return Symbol(self, name, result.dtype, operands, parameters)

    def function(self, symbol: Symbol) -> Callable[..., Any]:
        """What computes a symbol from arrays and numbers.

        What is no ufunc makes an array of its own.
        """
        if symbol.name == "astype":
            return partial(primitives.astype, dtype=symbol.dtype)
        if symbol.value is None:
            return primitives.where if symbol.name == "where" else _ufunc(symbol.name)
        return partial(getattr(self.arrays, symbol.name), **symbol.value)


def _ufunc(name: str) -> Any:
    return getattr(primitives, name, None) or getattr(np, name, None)


def formula(
    target: CpuTarget, call: Any, args: list[Any], kwargs: dict[str, Any]
) -> list[Symbol | None] | None:
    """What a recorded call gives for symbols in place of its arrays; None if it has no formula."""
    F = Namespace(target)
    body = _body(F, target.arrays, call, args)
    if body is None:
        return None
    if args and args[0] is target.arrays:  # a gradient
        args = [F, *args[1:]]
    try:
        result = body(*args, **kwargs)
    except Exception:  # whatever a function does with what is no array
        return None
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    known = all([value is None or isinstance(value, Symbol) for value in results])
    return results if known else None


def _body(F: Namespace, arrays: Any, call: Any, args: list[Any]) -> Callable[..., Any] | None:
    """What does over symbols what a call does over arrays."""
    if isinstance(call, np.ufunc) or call is operator.add:
        return call
    if isinstance(call, partial) and call.args == (arrays,):  # the formula of an op
        return partial(call.func, F, **call.keywords)
    name = getattr(call, "__qualname__", "")
    if getattr(primitives, name, None) is call:
        return getattr(F, name) if hasattr(Namespace, name) else None
    if name in TABLE and call.__name__ == "call":  # one with a form of the CPU's own
        return partial(F.run, TABLE[name])
    return call if args and args[0] is arrays else OUT_OF_PLACE.get(call)


def title_of(call: Any) -> str:
    """A name for what is called, as Python takes it."""
    while isinstance(call, partial):
        call = call.func
    name = getattr(call, "__qualname__", None) or type(call).__name__
    name = name.rpartition("<locals>.")[2].replace("<lambda>", "formula")
    return re.sub(r"\W+", "_", name).strip("_")

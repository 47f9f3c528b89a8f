"""Formulas as expressions: `Symbol` stands for an array, `Namespace` for ``F``.

Dtypes follow NumPy's rules, under which Python's numbers are weak. Whatever depends on more than
one element (shapes, indices, sums), and whatever has no word here, raises `NotPointwise`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tensorflow_lite_clone.backends.cupy.native import NATIVE
from tensorflow_lite_clone.dispatch.op import TABLE, is_op
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tensorflow_lite_clone.dispatch.table import overrides

BOOL = np.dtype(bool)
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_INT64 = np.dtype(np.int64)
_NUMBERS = (bool, int, float)


class NotPointwise(Exception):
    """What a formula does cannot be said element by element."""


class Unchanged(NotPointwise):
    """The formula hands on an operand; `whole`: all that it gives are operands."""

    def __init__(self, whole: bool) -> None:
        super().__init__("an operand as a result")
        self.whole = whole


class Symbol:
    """An array in an expression: an operand, a number, or a word of other symbols.

    Operands have the word "operand" and their position, numbers "number" and their value.
    """

    asked: list[Symbol]  # operands alone have this and the next: who was asked for its shape
    extent: tuple[int, ...]

    __slots__ = ("asked", "dtype", "extent", "memory", "operands", "overridden", "value", "word")
    __array_ufunc__ = None  # NumPy's scalars leave their operators to those below

    def __init__(self, word: str, dtype: Any, operands: tuple = (), value: Any = None) -> None:
        self.word, self.dtype, self.operands, self.value = word, dtype, operands, value
        self.memory = dtype  # of an operand: its dtype there
        self.overridden = False  # a device's own kernel computes just this

    def __getattr__(self, name: str) -> Any:
        raise NotPointwise(f"'{name}' of an array")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape here and now, which binds the expression to it."""
        if self.word == "operand":
            self.asked.append(self)
            return self.extent
        return np.broadcast_shapes(*[operand.shape for operand in self.operands])

    @property
    def ndim(self) -> int:
        """How many axes there are here and now."""
        return len(self.shape)

    def __bool__(self) -> bool:
        raise NotPointwise("a decision by values")

    def __iter__(self) -> Any:
        raise NotPointwise("the parts of an array")

    def __getitem__(self, index: Any) -> Any:
        raise NotPointwise("an index")

    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Symbol:
        return apply("add", self, other)

    def __radd__(self, other: Any) -> Symbol:
        return apply("add", other, self)

    def __sub__(self, other: Any) -> Symbol:
        return apply("subtract", self, other)

    def __rsub__(self, other: Any) -> Symbol:
        return apply("subtract", other, self)

    def __mul__(self, other: Any) -> Symbol:
        return apply("multiply", self, other)

    def __rmul__(self, other: Any) -> Symbol:
        return apply("multiply", other, self)

    def __truediv__(self, other: Any) -> Symbol:
        return apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> Symbol:
        return apply("divide", other, self)

    def __pow__(self, other: Any) -> Symbol:
        if type(other) in (int, float) and other == 2:
            return apply("multiply", self, self)
        return apply("pow", self, other)

    def __rpow__(self, other: Any) -> Symbol:
        return apply("pow", other, self)

    def __neg__(self) -> Symbol:
        return apply("negative", self)

    def __invert__(self) -> Symbol:
        return apply("bitwise_invert", self)

    def __and__(self, other: Any) -> Symbol:
        return apply("bitwise_and", self, other)

    def __rand__(self, other: Any) -> Symbol:
        return apply("bitwise_and", other, self)

    def __or__(self, other: Any) -> Symbol:
        return apply("bitwise_or", self, other)

    def __ror__(self, other: Any) -> Symbol:
        return apply("bitwise_or", other, self)

    def __xor__(self, other: Any) -> Symbol:
        return apply("bitwise_xor", self, other)

    def __lt__(self, other: Any) -> Symbol:
        return apply("less", self, other)

    def __le__(self, other: Any) -> Symbol:
        return apply("less_equal", self, other)

    def __gt__(self, other: Any) -> Symbol:
        return apply("greater", self, other)

    def __ge__(self, other: Any) -> Symbol:
        return apply("greater_equal", self, other)

    def __eq__(self, other: Any) -> Symbol:  # type: ignore[override]
        return apply("equal", self, other)

    def __ne__(self, other: Any) -> Symbol:  # type: ignore[override]
        return apply("not_equal", self, other)


def _number(value: Any, dtype: Any) -> Symbol:
    """A number in `dtype`, if it holds it."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise NotPointwise("a number that the dtype does not hold")
    return Symbol("number", dtype, value=dtype.type(value).item())


def together(values: tuple) -> list[Symbol]:
    """Symbols and numbers in one dtype; NotPointwise for anything else, or without a symbol."""
    dtype: Any = None
    weak: Any = None
    for value in values:
        if isinstance(value, (np.generic, Symbol)):
            value = value.dtype
        elif isinstance(value, _NUMBERS):
            weak = value if weak is None or isinstance(weak, (bool, int)) else weak
            continue
        else:
            raise NotPointwise(f"a {type(value).__name__} as an operand")
        if value.kind not in "biuf" or value.itemsize == 2 and value.kind == "f":
            raise NotPointwise(f"arithmetic in {value}")
        dtype = value if dtype is None else np.promote_types(dtype, value)
    if dtype is None:
        raise NotPointwise("numbers alone")
    if isinstance(weak, float) and dtype.kind != "f":
        dtype = FLOAT64
    elif weak is not None and dtype.kind == "b" and not isinstance(weak, bool):
        dtype = _INT64
    return [cast(value, dtype) for value in values]


def _rounded(values: tuple) -> tuple:
    """Numbers as two-byte operands beside them hold them, for which comparisons take them."""
    narrow = [v.memory for v in values if isinstance(v, Symbol) and v.memory.itemsize < 4]
    narrow = [dtype for dtype in narrow if dtype.kind in "fV"]
    if not narrow:
        return values
    return tuple([float(narrow[0].type(v)) if type(v) in (int, float) else v for v in values])


def cast(value: Any, dtype: Any) -> Symbol:
    """A symbol or number in `dtype`."""
    if not isinstance(value, Symbol):
        if isinstance(value, np.generic):
            value = value.item()
        return _number(value, dtype)
    if value.dtype == dtype:
        return value
    return Symbol("astype", dtype, (value,))


def apply(name: str, *values: Any) -> Symbol:
    """The symbol of a primitive of symbols and numbers, or of an op that CUDA has."""
    texts, arity, truth = _in_cuda(name)
    if len(values) != arity:
        raise NotPointwise(f"'{name}' of {len(values)} operands")
    if name == "where":
        condition = values[0]
        if not isinstance(condition, Symbol) or condition.dtype != BOOL:
            raise NotPointwise("a condition that is no array of bools")
        operands = [condition, *together(values[1:])]
        kind = operands[1].dtype.kind
    else:
        compares = truth or name in ("maximum", "minimum")
        operands = together(_rounded(values) if compares else values)
        kind = operands[0].dtype.kind
    if name == "divide" and kind in "biu":
        operands = [cast(operand, FLOAT64) for operand in operands]
        kind = "f"
    if kind not in texts:
        raise NotPointwise(f"'{name}' of kind '{kind}'")
    dtype = BOOL if truth else operands[-1].dtype
    return _overridden(name, Symbol(name, dtype, tuple(operands)))


def _in_cuda(name: str) -> tuple[Mapping[str, str], int, bool]:
    """What CUDA C++ says by kinds, how many operands it takes, whether it gives truth values."""
    record = PRIMITIVES.get(name)
    if record is not None:
        return record.c, record.arity, record.dtypes == ("bool",)
    op: Any = TABLE[name]
    return op.c, len(op.inputs), False


def c_text(name: str, kind: str) -> str:
    """What CUDA C++ says for a primitive or op of operands of a kind."""
    return _in_cuda(name)[0][kind]


def _overridden(name: str, made: Symbol) -> Symbol:
    """`made`, or a copy that says that a form of the device's own makes it."""
    if (name, "cupy") not in overrides:
        return made
    made = Symbol(made.word, made.dtype, made.operands, made.value)
    made.overridden = True
    return made


class _Backend:
    """What formulas may ask of ``F.backend``."""

    native = NATIVE

    def constant(self, value: Any, dtype: Any) -> Any:
        return dtype.type(value)

    def __getattr__(self, name: str) -> Any:
        raise NotPointwise(f"the backend's '{name}'")


class Namespace:
    """``F`` over symbols, with the constants of the array namespace `xp`."""

    backend = _Backend()

    def __init__(self, xp: Any) -> None:
        self._xp = xp

    def __getattr__(self, name: str) -> Any:
        if name in PRIMITIVES or getattr(TABLE.get(name), "c", None):
            if _in_cuda(name)[0]:
                return lambda *values: apply(name, *values)
        elif name in TABLE:
            return lambda *values, **parameters: self.run(TABLE[name], *values, **parameters)
        value = getattr(self._xp, name, None)
        if isinstance(value, (float, type)):
            return value
        raise NotPointwise(f"the word '{name}'")

    def run(self, entry: Any, *values: Any, **parameters: Any) -> Any:
        """The formula of an op or composite of the table, in place of calling it."""
        name, body = (entry.name, entry.forward) if is_op(entry) else (entry.__name__, entry)
        made = body(self, *values, **parameters)
        return _overridden(name, made) if isinstance(made, Symbol) and made.operands else made

    def astype(self, x: Any, dtype: Any, *, copy: bool = False) -> Any:
        """`x` in another dtype."""
        native = np.dtype(NATIVE.get(dtype, dtype))
        if not isinstance(x, Symbol) or native.kind == "c" or x.dtype.kind == "c" or copy:
            raise NotPointwise("complex numbers or copies")
        return cast(x, native)

    def clip(self, x: Any, min: Any = None, max: Any = None) -> Any:
        """`x` between two bounds, of which one may be None."""
        if min is not None:
            x = apply("maximum", x, min)
        return x if max is None else apply("minimum", x, max)

    def conj(self, x: Any) -> Any:
        """Real numbers are their own conjugates."""
        return x

    real = positive = conj

    def sgn(self, x: Any) -> Any:
        """The sign, 0 for NaN."""
        y = apply("sign", x)
        return y if y.dtype.kind in "iu" else apply("where", y == y, y, 0)


class Trace(NamedTuple):
    """A formula as expressions of its operands."""

    names: tuple[str, ...]  # of the operands
    operands: tuple[Symbol, ...]
    results: tuple[Symbol, ...]
    several: bool  # the formula gives a tuple
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
    values: list[Any] = []
    asked: list[Symbol] = []
    for position, (dtype, shape) in enumerate(zip(kinds, shapes)):
        if dtype is None:
            values.append(None)
            continue
        if dtype.kind not in "biufV":
            raise NotPointwise(f"an operand of {dtype}")
        wide = widened and dtype.itemsize == 2 and dtype.kind in "fV"
        symbol = Symbol("operand", FLOAT32 if wide else dtype, value=position)
        symbol.memory, symbol.extent, symbol.asked = dtype, shape, asked
        values.append(symbol)
    with np.errstate(all="ignore"):
        made = body(F, *values, **parameters)
    several = type(made) is tuple
    results = made if several else (made,)
    handed = [isinstance(result, Symbol) and result.word == "operand" for result in results]
    if any(handed):
        raise Unchanged(all(handed))
    for result in results:
        if not isinstance(result, Symbol) or not result.operands or result.overridden:
            raise NotPointwise("a result that is no new array")
    return Trace(names, operands_of(results), tuple(results), several, bool(asked), not parameters)


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
    found = [symbol for symbol in in_order(results) if symbol.word == "operand"]
    return tuple(sorted(found, key=lambda symbol: symbol.value))

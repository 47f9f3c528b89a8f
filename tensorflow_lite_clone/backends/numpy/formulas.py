"""What a recorded call does element by element: its formula, run on symbols, as steps.

A step is one word of NumPy's, or an op with a form of its own for the CPU. Their results are the
same bits for a part of an array as for all of it, so that steps may be done block after block.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tensorflow_lite_clone.backends.numpy import primitives
from tensorflow_lite_clone.backends.numpy.native import NATIVE
from tensorflow_lite_clone.dispatch.op import OF_PRIMITIVES, TABLE, is_op
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES, is_primitive
from tensorflow_lite_clone.dispatch.raw import Raw
from tensorflow_lite_clone.dispatch.table import serves

_IN_PLACE = (operator.iadd, operator.isub, operator.imul, operator.itruediv)
_KINDS = "biuf"


class NotPointwise(Exception):
    """What a formula does cannot be said element by element."""


class Node:
    """An array that a step makes or reads, by its shape and dtype."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.shape, self.dtype = shape, dtype


class Step(NamedTuple):
    """``result = word(*operands)``; operands are nodes, numbers and arrays without dimensions.

    What is no ufunc makes an array of its own.
    """

    word: Callable[..., Any]
    operands: tuple
    result: Node


class Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """Stands for an array while a formula runs: what is done to it is appended to `steps`."""

    def __init__(self, node: Node, steps: list[Step]) -> None:
        self.node, self.steps = node, steps

    @property
    def shape(self) -> tuple[int, ...]:
        return self.node.shape

    @property
    def dtype(self) -> np.dtype:
        return self.node.dtype

    @property
    def ndim(self) -> int:
        return len(self.node.shape)

    def __getattr__(self, name: str) -> Any:
        raise NotPointwise(f"'{name}' of an array")

    def _refused(self, *args: Any) -> Any:
        raise NotPointwise("the values of an array")

    __bool__ = __float__ = __int__ = __index__ = __len__ = __iter__ = __getitem__ = _refused
    __setitem__ = __array__ = __array_function__ = _refused

    def __pow__(self, other: Any) -> Any:
        if type(other) in (int, float) and other == 2:
            return np.square(self)  # as an array does
        raise NotPointwise("a power")

    __rpow__ = __ipow__ = __pow__

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **options: Any
    ) -> Symbol:
        if method != "__call__" or options or ufunc.nout != 1 or ufunc.signature:
            raise NotPointwise(f"{ufunc.__name__}.{method}")
        kinds = (*[_kind(value) for value in inputs], None)
        made = self.done(ufunc, inputs, ufunc.resolve_dtypes(kinds)[-1])
        if not out:
            return made
        (target,) = out
        if not isinstance(target, Symbol) or _layout(target.node) != _layout(made.node):
            raise NotPointwise("a result of another kind than its place")
        target.node = made.node
        return target

    def done(self, word: Callable[..., Any], operands: tuple, dtype: np.dtype) -> Symbol:
        """The symbol of one more step."""
        shapes = [np.shape(value) if not isinstance(value, Symbol) else value.shape
                  for value in operands]  # fmt: skip
        node = Node(np.broadcast_shapes(*shapes), dtype)
        if dtype.kind not in _KINDS:
            raise NotPointwise(f"arithmetic in {dtype}")
        nodes = [value.node if isinstance(value, Symbol) else value for value in operands]
        self.steps.append(Step(word, tuple(nodes), node))
        return Symbol(node, self.steps)


def _layout(node: Node) -> tuple:
    return node.shape, node.dtype


def _kind(value: Any) -> Any:
    """The dtype of an operand, or the type of a Python number."""
    if isinstance(value, Symbol):
        return value.dtype
    if type(value) in (bool, int, float):
        return type(value)
    if isinstance(value, (np.ndarray, np.generic)) and not value.ndim:
        return value.dtype
    raise NotPointwise(f"a {type(value).__name__} as an operand")


class _Backend:
    """What formulas may ask of ``F.backend``."""

    native = NATIVE

    def __init__(self, backend: Any) -> None:
        self.constant = backend.constant

    def __getattr__(self, name: str) -> Any:
        raise NotPointwise(f"the backend's '{name}'")


class Words:
    """``F`` over symbols."""

    def __init__(self, F: Raw) -> None:
        self.arrays = F
        self.backend = _Backend(F.backend)

    def __getattr__(self, name: str) -> Any:
        if name not in PRIMITIVES and name in TABLE:
            return partial(self.run, TABLE[name])
        op = OF_PRIMITIVES.get(name)
        if op is not None and serves(op.name, self.arrays.backend):
            return partial(self.run, op)
        return self._primitive(name)

    def _primitive(self, name: str) -> Any:
        found = getattr(primitives, name, None)
        if found is None and is_primitive(name):
            found = getattr(np, name)
        if isinstance(found, (np.ufunc, type, float)):
            return found
        raise NotPointwise(f"the primitive '{name}'")

    def run(self, entry: Any, *values: Any, **parameters: Any) -> Any:
        """An op or composite: what its formula does, or one step if the CPU has its own form."""
        name, body = (entry.name, entry.forward) if is_op(entry) else (entry.__name__, entry)
        if is_op(entry) and entry.primitive is not None:
            body = _without_namespace(self._primitive(entry.primitive))
        if not serves(name, self.arrays.backend):
            return body(self, *values, **parameters)
        symbols = [value for value in values if isinstance(value, Symbol)]
        aside: list[Step] = []  # not to be done, but it tells that all is done by elements
        made = body(self, *[_set_aside(value, aside) for value in values], **parameters)
        if not isinstance(made, Symbol) or not symbols:
            raise NotPointwise(f"'{name}'")
        if any([value.shape != made.shape for value in symbols]):
            raise NotPointwise(f"'{name}' of operands that broadcast")
        call = partial(getattr(self.arrays, name), **parameters)
        return symbols[0].done(call, values, made.dtype)

    def where(self, condition: Any, x: Any, y: Any) -> Symbol:
        """`x` where the condition holds, else `y`, of which one may be a number."""
        kinds = [value.dtype for value in (x, y) if isinstance(value, Symbol)]
        if not isinstance(condition, Symbol) or condition.dtype.kind != "b" or not kinds:
            raise NotPointwise("a choice between numbers")
        if kinds[0] != kinds[-1] or len(kinds) == 1 and kinds[0].kind != "f":
            raise NotPointwise("a choice between dtypes")
        return condition.done(primitives.where, (condition, x, y), kinds[0])

    def astype(self, x: Any, dtype: Any, *, copy: bool = False) -> Symbol:
        """`x` in another dtype."""
        native = np.dtype(NATIVE.get(dtype, dtype))
        if not isinstance(x, Symbol) or x.dtype == native:
            raise NotPointwise("a cast to the same dtype")
        return x.done(partial(primitives.astype, dtype=native), (x,), native)

    def copy(self, x: Any) -> Any:
        """Another array of the same values."""
        return np.positive(x)

    def real(self, x: Any) -> Any:
        """Real numbers are as they are."""
        return x

    positive = conj = real


def _set_aside(value: Any, steps: list[Step]) -> Any:
    return Symbol(value.node, steps) if isinstance(value, Symbol) else value


def _without_namespace(word: Callable[..., Any]) -> Callable[..., Any]:
    return lambda F, *values, **parameters: word(*values, **parameters)


class Formula(NamedTuple):
    """What a call does: the nodes of its results, and those of arguments that it writes into."""

    steps: list[Step]
    results: list[Node | None]
    written: dict[int, Node]  # by the argument's position


def formula(F: Raw, call: Any, args: list[Any], kwargs: dict[str, Any]) -> Formula | None:
    """The formula of a recorded call, with nodes for its arrays; None if it has none."""
    words = Words(F)
    body = _body(words, call, args)
    if body is None:
        return None
    steps: list[Step] = []
    given = [Symbol(value, steps) if isinstance(value, Node) else value for value in args]
    if given and given[0] is F:  # a gradient
        given[0] = words
    try:
        made = body(*given, **kwargs)
    except Exception:  # whatever a function does with what is no array
        return None
    several = made if isinstance(made, (tuple, list)) else [made]
    if not all([value is None or isinstance(value, Symbol) for value in several]):
        return None
    written = {
        place: symbol.node
        for place, (symbol, node) in enumerate(zip(given, args))
        if isinstance(symbol, Symbol) and symbol.node is not node
    }
    if written and call not in _IN_PLACE:
        return None
    return Formula(steps, [None if value is None else value.node for value in several], written)


def _body(words: Words, call: Any, args: list[Any]) -> Callable[..., Any] | None:
    """What does over symbols what a call does over arrays."""
    if isinstance(call, np.ufunc) or call in _IN_PLACE or call is operator.add:
        return call
    if isinstance(call, partial) and call.args == (words.arrays,):  # the formula of an op
        return partial(call.func, words, **call.keywords)
    name = getattr(call, "__qualname__", "")
    if getattr(primitives, name, None) is call:
        return vars(Words).get(name) and getattr(words, name)
    if name in TABLE and call.__name__ == "call":  # one with a form of the CPU's own
        return partial(words.run, TABLE[name])
    return call if args and args[0] is words.arrays else None


def title_of(call: Any) -> str:
    """A name for what is called, as Python takes it."""
    while isinstance(call, partial):
        call = call.func
    name = getattr(call, "__qualname__", None) or type(call).__name__
    name = name.rpartition("<locals>.")[2].replace("<lambda>", "formula")
    return re.sub(r"\W+", "_", name).strip("_")

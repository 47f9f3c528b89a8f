"""Operators and conversions: tensors of any dtypes, Python numbers on either side."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tests.op_db._device import Side
from tests.tools.fuzz.drawing import DTYPES, Named, beside, one_of, scalar, shape_of, tensor
from tests.tools.fuzz.plain import PlainCall, Random

BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "@": operator.matmul,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
WRITING = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv,
    "//=": operator.ifloordiv, "%=": operator.imod, "**=": operator.ipow,
    "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor,
    "<<=": operator.ilshift, ">>=": operator.irshift,
}  # fmt: skip
UNARY: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg, "+": operator.pos, "~": operator.invert, "abs": abs,
    "len": len, "bool": bool, "int": int, "float": float, "complex": complex,
    "index": operator.index, "item": lambda x: x.item(), "tolist": lambda x: x.tolist(),
}  # fmt: skip
METHODS = ("double", "float", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool",
           "cfloat", "cdouble")  # fmt: skip


class Operation(PlainCall):
    """`x + y` and the like, `x += y`."""

    def __init__(self, rng: Random) -> None:
        shape = shape_of(rng)
        left = tensor(rng, shape)
        right: Any = tensor(rng, beside(rng, shape)) if rng.random() < 0.55 else scalar(rng)
        writes = rng.random() < 0.25
        if not writes and rng.random() < 0.4:
            left, right = right, left
        self.table = WRITING if writes else BINARY
        super().__init__(one_of(rng, list(self.table)), left, right)

    def run(self, side: Side, *arguments: Any, **options: Any) -> Any:
        return self.table[self.name](*arguments)


class Unary(PlainCall):
    """`-x`, `int(x)` and the like."""

    def __init__(self, rng: Random) -> None:
        shape = shape_of(rng) if rng.random() < 0.6 else one_of(rng, [(), (1,), (1, 1)])
        super().__init__(one_of(rng, list(UNARY)), tensor(rng, shape))

    def run(self, side: Side, *arguments: Any, **options: Any) -> Any:
        return UNARY[self.name](*arguments)


def _sources(rng: Random, to: str) -> tuple[str, ...]:
    """Dtypes whose values all have an image in dtype `to`; that of the others is C's accident."""
    if to == "uint8":
        return tuple(d for d in DTYPES if "int" in d or d == "bool")
    return DTYPES


class Conversion(PlainCall):
    """`x.to(...)`, `x.type(...)`, `x.float()`, `x.view(dtype)`; which dtype a promotion gives."""

    FORMS = ("to", "to other", "type", "method", "view", "result_type", "can_cast",
             "promote_types", "like", "new", "copy", "fill", "tensor", "where", "full")  # fmt: skip

    def __init__(self, rng: Random) -> None:
        form, to = one_of(rng, self.FORMS), one_of(rng, DTYPES)
        if form == "method":
            self.method = one_of(rng, METHODS)
            to = {"byte": "uint8"}.get(self.method, to)
        shape = shape_of(rng)
        sources = _sources(rng, to)
        x = tensor(rng, shape, one_of(rng, sources))
        arguments: tuple[Any, ...] = (x, Named(to))
        if form in ("to other", "copy"):
            other = tensor(rng, beside(rng, shape), to)
            arguments = (other, x) if form == "copy" else (x, other)
        elif form == "method":
            arguments = (x,)
        elif form == "result_type":
            pair = [
                tensor(rng, shape_of(rng, 1)) if rng.random() < 0.6 else scalar(rng)
                for _ in range(2)
            ]
            arguments = tuple(pair)
        elif form in ("can_cast", "promote_types"):
            arguments = (Named(one_of(rng, DTYPES)), Named(to))
        elif form == "fill":
            arguments = (x, scalar(rng))
        elif form == "tensor":
            data = [[scalar(rng) for _ in range(int(rng.integers(3)))]] * int(rng.integers(1, 3))
            arguments = (data if rng.random() < 0.7 else scalar(rng),)
        elif form == "where":
            sides = [
                tensor(rng, beside(rng, shape)) if rng.random() < 0.5 else scalar(rng)
                for _ in range(2)
            ]
            arguments = (tensor(rng, shape, "bool"), *sides)
        elif form == "full":
            arguments = (list(shape), scalar(rng))
        super().__init__(form, *arguments)

    def run(self, side: Side, *arguments: Any, **options: Any) -> Any:
        module, (x, *others) = side.module, arguments
        forms = {
            "to": lambda: x.to(*others),
            "to other": lambda: x.to(*others),
            "type": lambda: x.type(*others),
            "method": lambda: getattr(x, self.method)(),
            "view": lambda: x.view(*others),
            "like": lambda: module.zeros_like(x, dtype=others[0]),
            "new": lambda: x.new_full((2,), 1, dtype=others[0]),
            "copy": lambda: x.copy_(*others),
            "fill": lambda: x.fill_(*others),
            "tensor": lambda: module.tensor(x, device=side.device),
            "full": lambda: module.full(x, *others, device=side.device),
        }
        return forms[self.name]() if self.name in forms else getattr(module, self.name)(*arguments)

"""The standard's element-wise functions, and `astype`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.array_api._promotion import promoted_pair
from tensorflow_lite_clone.array_api._register import standard_functions, word
from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.dispatch.op import OF_PRIMITIVES, TABLE
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tensorflow_lite_clone.ops.create import convert
from tensorflow_lite_clone.ops.pointwise import choice, complex_numbers, power
from tensorflow_lite_clone.ops.pointwise._elementwise import wrong_operands
from tensorflow_lite_clone.ops.pointwise._operands import cast
from tensorflow_lite_clone.ops.shape import memory
from tensorflow_lite_clone.tensor import Tensor

_DOCUMENTS = {
    "add": "x1 plus x2.",
    "subtract": "x1 minus x2.",
    "divide": "x1 over x2; integers give the default dtype.",
}


def _unary(name: str, function: Callable[..., Any]) -> None:
    def unary(x, /):
        return function(x)

    _enter(unary, name, function, "x")


def _binary(name: str, function: Callable[..., Any]) -> None:
    call = getattr(function, "with_numbers", function)

    def binary(x1, x2, /):
        if isinstance(x1, Tensor) and isinstance(x2, Tensor):
            x1, x2 = promoted_pair(x1, x2)
        result = call(x1, x2)
        if result is NotImplemented:
            raise wrong_operands(name, x1, x2)
        return result

    _enter(binary, name, function, "x1")


def _enter(made: Any, name: str, function: Any, first: str) -> None:
    made.__name__ = made.__qualname__ = name
    text = function.__doc__ or _DOCUMENTS.get(name, "")
    made.__doc__ = re.sub(r"\bother\b", "x2", re.sub(r"\binput\b", first, text))
    word(made)


def _function_of(primitive: str) -> Any:
    """The function of rows (`ops._pointwise`) that is a primitive over Tensors, or None.

    It is that of the standard's own form, where there is one (`ops.standard_forms`), else that of
    the op that the primitive is, else that of the op of its name.
    """
    op = TABLE.get(f"standard_{primitive}") or OF_PRIMITIVES.get(primitive) or TABLE.get(primitive)
    return getattr(op, "function", None)


def _pow(x1: Any, x2: Any) -> Tensor:
    """x1 to the power x2; roots are powers, so that they are +0 or inf for -0 and -inf."""
    if type(x2) is float and abs(x2) == 0.5:
        return power._pow.with_numbers(x1, x2)
    return power.pow(x1, x2)


_unary("square", power.square)  # of booleans as well
_unary("conj", complex_numbers.conj)
_unary("real", complex_numbers.real)
_unary("imag", complex_numbers.imag)
_binary("pow", _pow)
for _name, _record in PRIMITIVES.items():
    _found = _function_of(_name) if _record.standard and _name not in standard_functions else None
    if _found is not None:
        (_unary if _record.arity == 1 else _binary)(_name, _found)


@word
def positive(x: Tensor, /) -> Tensor:
    """A copy of `x`."""
    return apply(memory.Clone, x)


@word
def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """`x` between two bounds, of which either or both may be left out."""
    if min is None and max is None:
        return positive(x)
    if isinstance(min, Tensor) is isinstance(max, Tensor) or min is None or max is None:
        return choice.clamp(x, min, max)
    return choice.clamp(choice.clamp(x, min), None, max)


@word
def astype(x: Tensor, dtype: DType, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """`x` in another dtype; a copy unless `copy` is off and nothing changes.

    Raises TypeError for complex numbers as real ones: `real` and `imag` say which part is meant.
    """
    if x.dtype.kind == "c" and dtype.kind not in "bc":
        raise TypeError(f"astype: {x.dtype.name} holds no {dtype.name}; take the real part first")
    if device is not None:
        x = convert.to_device(x, device)
    return positive(x) if copy and x.dtype is dtype else cast(x, dtype)

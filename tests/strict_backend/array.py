"""The array: a NumPy array that shows only what the array API standard has."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

_NUMBERS = (bool, int, float, complex)


class StrictArray:
    """Wraps a NumPy array; mixes with arrays of its own kind and Python numbers only."""

    __slots__ = ("__weakref__", "_hidden")
    __array_ufunc__ = None  # NumPy must not take part in arithmetic

    def __init__(self, array: Any) -> None:
        self._hidden = np.asarray(array)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._hidden.shape

    @property
    def dtype(self) -> Any:
        return self._hidden.dtype

    @property
    def ndim(self) -> int:
        return self._hidden.ndim

    @property
    def size(self) -> int:
        return self._hidden.size

    @property
    def strides(self) -> tuple[int, ...]:
        return self._hidden.strides  # only asked whether some are 0: places written several times

    @property
    def T(self) -> StrictArray:
        return StrictArray(self._hidden.T)

    @property
    def mT(self) -> StrictArray:
        return StrictArray(self._hidden.mT)

    def __getitem__(self, index: Any) -> StrictArray:
        return StrictArray(self._hidden[unwrap(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self._hidden[unwrap(index)] = unwrap(value)

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("an array of the strict device was converted to a host value implicitly")

    __array__ = __float__ = __int__ = __bool__ = __index__ = __complex__ = _refuse
    __iter__ = __len__ = __contains__ = _refuse

    def __dlpack__(self, **options: Any) -> Any:
        return self._hidden.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._hidden.__dlpack_device__()

    def __repr__(self) -> str:
        return f"StrictArray({self.shape}, {self.dtype})"


def _operator(function: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    def apply(self: StrictArray, other: Any) -> Any:
        if not isinstance(other, (StrictArray, *_NUMBERS)):
            return NotImplemented
        left, right = self._hidden, unwrap(other)
        return StrictArray(function(right, left) if reflected else function(left, right))

    return apply


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(self: StrictArray, other: Any) -> StrictArray:
        self._hidden = function(self._hidden, unwrap(other))
        return self

    return apply


def _unary(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: StrictArray(function(self._hidden))


for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
    _word = {"and": "and_", "or": "or_"}.get(_name, _name)
    setattr(StrictArray, f"__{_name}__", _operator(getattr(operator, _word), False))
    setattr(StrictArray, f"__r{_name}__", _operator(getattr(operator, _word), True))
    setattr(StrictArray, f"__i{_name}__", _in_place(getattr(operator, f"i{_name}")))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(StrictArray, f"__{_name}__", _operator(getattr(operator, _name), False))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(StrictArray, f"__{_name}__", _unary(getattr(operator, _name)))
StrictArray.__hash__ = object.__hash__  # type: ignore[method-assign]


def unwrap(value: Any) -> Any:
    """NumPy arrays for strict ones, also inside tuples, lists and slices' places."""
    if isinstance(value, StrictArray):
        return value._hidden
    if isinstance(value, np.ndarray):
        raise TypeError("a NumPy array was handed to the strict device")
    if isinstance(value, tuple):
        return tuple(unwrap(entry) for entry in value)
    if isinstance(value, list):
        return [unwrap(entry) for entry in value]
    return value


def rewrap(value: Any) -> Any:
    """Strict arrays for what NumPy returned, also inside tuples and lists."""
    if isinstance(value, (np.ndarray, np.generic)):
        return StrictArray(value)
    if isinstance(value, (tuple, list)):
        entries = [rewrap(entry) for entry in value]
        return entries if isinstance(value, list) else tuple(entries)
    return value


def lifted(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` over NumPy arrays as one over strict arrays."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = {name: unwrap(value) for name, value in kwargs.items()}
        return rewrap(function(*[unwrap(value) for value in args], **given))

    return call

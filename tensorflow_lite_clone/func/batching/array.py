"""The array that a function under `vmap` computes with: all samples at once, seen as one.

Its shape is one sample's. The samples lie along the first axis of `data`, an array of the base
backend, unless the array is `shared`: the same for every sample, with no such axis.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


class Batched:
    """An array of every sample; a class is derived for each backend of `batching`."""

    __slots__ = ("data", "shared")
    __array_ufunc__ = None  # NumPy must not take part in arithmetic

    backend: Any  # of the derived class

    def __init__(self, data: Any, shared: bool) -> None:
        self.data = data
        self.shared = shared

    @property
    def shape(self) -> tuple[int, ...]:
        shape = self.data.shape
        return shape if self.shared else shape[1:]

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def ndim(self) -> int:
        return self.data.ndim - (not self.shared)

    @property
    def size(self) -> int:
        size = 1
        for length in self.shape:
            size *= length
        return size

    @property
    def itemsize(self) -> int:
        return self.data.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        strides = self.data.strides
        return strides if self.shared else strides[1:]

    @property
    def T(self) -> Batched:
        return self.backend.F.permute_dims(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> Batched:
        return self.backend.F.matrix_transpose(self)

    def __getitem__(self, index: Any) -> Any:
        return self.backend.F.getitem(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.backend.F.write_at(self, index, value)

    def spread(self) -> Batched:
        """Let a shared array have values of its own for every sample, in memory of its own."""
        if self.shared:
            base, size = self.backend.base, self.backend.size
            rows = base.F.expand_dims(self.data, axis=0)
            self.data = base.F.copy(base.F.broadcast_to(rows, (size, *self.data.shape)))
            self.shared = False
        return self

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(ITEM)

    __array__ = __float__ = __int__ = __bool__ = __index__ = __complex__ = _refuse
    __iter__ = __len__ = __contains__ = _refuse

    def __repr__(self) -> str:
        return f"Batched({self.data!r}, shared={self.shared})"


ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
    ".item() on a Tensor, please try to rewrite what you're doing with other operations. If error "
    "is occurring somewhere inside PyTorch internals, please file a bug report."
)


def _foreign(self: Batched, other: Any) -> bool:
    """Whether `other` has to say what an operator does: a Tensor, an array of an outer `vmap`."""
    if isinstance(other, Batched):
        return other.backend.depth > self.backend.depth
    return hasattr(other, "_storage")


def _operator(function: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    def apply(self: Batched, other: Any) -> Any:
        if _foreign(self, other):
            return NotImplemented
        values = (other, self) if reflected else (self, other)
        return self.backend.elementwise(function, *values)

    return apply


def _in_place(function: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    def apply(self: Batched, other: Any) -> Any:
        backend = self.backend
        if _foreign(self, other):
            return NotImplemented
        own = type(other) is type(self) and not other.shared
        if self.shared and own:
            made = backend.F.astype(backend.elementwise(plain, self, other), self.dtype)
            self.data, self.shared = made.data, made.shared
        else:
            value = backend.aligned((other,), self.ndim)[0]
            self.data = backend.base.foreign(function)(self.data, value)
        return self

    return apply


def _unary(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: self.backend.elementwise(function, self)


for _name in "add sub mul truediv floordiv mod pow and or xor lshift rshift".split():
    _word = getattr(operator, {"and": "and_", "or": "or_"}.get(_name, _name))
    setattr(Batched, f"__{_name}__", _operator(_word, False))
    setattr(Batched, f"__r{_name}__", _operator(_word, True))
    setattr(Batched, f"__i{_name}__", _in_place(getattr(operator, f"i{_name}"), _word))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Batched, f"__{_name}__", _operator(getattr(operator, _name), False))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Batched, f"__{_name}__", _unary(getattr(operator, _name)))
Batched.__matmul__ = lambda self, other: self.backend.F.matmul(self, other)  # type: ignore
Batched.__rmatmul__ = lambda self, other: self.backend.F.matmul(other, self)  # type: ignore
Batched.__hash__ = object.__hash__  # type: ignore[method-assign]

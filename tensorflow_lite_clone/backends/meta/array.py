"""The array of the meta device: the geometry of an array whose elements do not exist."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from math import prod
from typing import Any

from tensorflow_lite_clone.core.shape import contiguous_strides, expect_storage

#: Addresses that no two arrays share; nothing is ever found there.
_numbers = count(1)


class MetaArray:
    """Shape, dtype and strides, in elements from `offset`, of a part of imaginary memory."""

    __slots__ = ("__weakref__", "_number", "base", "dtype", "offset", "shape", "steps")
    __array_ufunc__ = None  # NumPy must not take part in arithmetic
    primitives: Any  # the primitives over such arrays, set by `backend`

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: Any,
        steps: tuple[int, ...] | None = None,
        offset: int = 0,
        base: MetaArray | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.steps = contiguous_strides(shape) if steps is None else steps
        self.offset = offset
        self.base = base  # whose memory it is; None for its own
        if base is None:
            expect_storage(shape, dtype.itemsize)
        self._number: int = next(_numbers) if base is None else base._number

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        itemsize = self.dtype.itemsize
        return tuple([step * itemsize for step in self.steps])

    @property
    def address(self) -> int:
        """A number that two views of one memory give in the distance of their first elements."""
        return (self._number << 56) + self.offset * self.dtype.itemsize

    @property
    def T(self) -> MetaArray:
        return self.seen(self.shape[::-1], self.steps[::-1])

    @property
    def mT(self) -> MetaArray:
        return self.primitives.matrix_transpose(self)

    def seen(
        self, shape: tuple[int, ...], steps: tuple[int, ...], offset: int = 0, dtype: Any = None
    ) -> MetaArray:
        """A view of the same memory, `offset` elements from the first one."""
        base = self if self.base is None else self.base
        dtype = self.dtype if dtype is None else dtype
        return MetaArray(tuple(shape), dtype, tuple(steps), self.offset + offset, base)

    def __getitem__(self, index: Any) -> MetaArray:
        return self.primitives.getitem(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.primitives.write_at(self, index, value)

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("an element of a meta tensor was asked for; it has none")

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("Cannot pack tensors on meta")

    def __dlpack_device__(self) -> tuple:
        raise ValueError("Unknown device type meta for Dlpack")

    __array__ = __float__ = __int__ = __bool__ = __index__ = __complex__ = _refuse
    __iter__ = __len__ = __contains__ = _refuse

    def __repr__(self) -> str:
        return f"MetaArray({self.shape}, {self.dtype})"


def _operator(name: str, reflected: bool) -> Callable[..., Any]:
    def apply(self: MetaArray, other: Any) -> Any:
        if not isinstance(other, (MetaArray, bool, int, float, complex)):
            return NotImplemented
        call = getattr(self.primitives, name)
        return call(other, self) if reflected else call(self, other)

    return apply


def _in_place(name: str) -> Callable[..., Any]:
    def apply(self: MetaArray, other: Any) -> MetaArray:
        getattr(self.primitives, name)(self, other)  # raises where shapes or dtypes do not fit
        return self

    return apply


def _unary(name: str) -> Callable[..., Any]:
    return lambda self: getattr(self.primitives, name)(self)


for _name, _primitive in (
    ("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "divide"),
    ("floordiv", "floor_divide"), ("mod", "remainder"), ("pow", "pow"), ("matmul", "matmul"),
    ("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"),
    ("lshift", "bitwise_left_shift"), ("rshift", "bitwise_right_shift"),
):  # fmt: skip
    setattr(MetaArray, f"__{_name}__", _operator(_primitive, False))
    setattr(MetaArray, f"__r{_name}__", _operator(_primitive, True))
    setattr(MetaArray, f"__i{_name}__", _in_place(_primitive))
for _name, _primitive in (
    ("eq", "equal"), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"), ("gt", "greater"),
    ("ge", "greater_equal"),
):  # fmt: skip
    setattr(MetaArray, f"__{_name}__", _operator(_primitive, False))
for _name, _primitive in (
    ("neg", "negative"), ("pos", "positive"), ("abs", "abs"), ("invert", "bitwise_invert"),
):  # fmt: skip
    setattr(MetaArray, f"__{_name}__", _unary(_primitive))
MetaArray.__hash__ = object.__hash__  # type: ignore[method-assign]

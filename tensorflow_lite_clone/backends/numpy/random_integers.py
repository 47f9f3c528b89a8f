"""Random integers of PyTorch's CPU streams: whole ranges, given ranges, permutations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.random_state import (
    DIGITS,
    LARGEST,
    GeneratorState,
    Shape,
    blocks,
    describe,
    flatten,
    narrow,
    store,
    unsupported,
)
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.errors import level_outside

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_WIDE_RANGE = 1 << 28  # integer ranges from here on take 64-bit words
_LARGE_PERMUTATION = 214748364  # (2**32 - 1) // 20: from here on too, and the shuffle runs forwards


class IntegerGenerator(GeneratorState):
    """The integers of a stream."""

    __slots__ = ()

    def random(self, shape: Shape, dtype: Any = np.int64) -> np.ndarray:
        """Integers over all of [0, largest]; floating dtypes: [0, 2**digits].

        One draw an element; int64 and float64 take 64-bit words."""
        dtype, info = describe(dtype)
        modulus = whole_range(dtype, info)
        return self._integers(shape, dtype, 0, modulus, wide=info.name in ("int64", "float64"))

    def randint(
        self, low: int, high: int | None, shape: Shape, dtype: Any = np.int64
    ) -> np.ndarray:
        """Integers of [low, high), or with `high=None` from `low` to the dtype's largest.

        One draw modulo the range; a 64-bit word where the range is 2**28 or more.
        ValueError: a bound needs more than 64 bits; UserWarning: a float cannot hold all values."""
        dtype, info = describe(dtype)
        low, size = integer_range(low, high, dtype, info)
        wide = size is None or size >= _WIDE_RANGE
        return self._integers(shape, dtype, low, size, wide=wide)

    def _integers(
        self, shape: Shape, dtype: np.dtype, low: int, size: int | None, *, wide: bool
    ) -> np.ndarray:
        """low + word % size; `size=None`: the whole word as a signed one."""
        shape, count = flatten(shape)
        out = np.empty(count, dtype)
        for part in blocks(count):
            words = (self._words64 if wide else self._words32)(part.stop - part.start)
            if size is not None and size & (size - 1) == 0:
                words = words & words.dtype.type(size - 1)
            elif size is not None:
                words = words % words.dtype.type(size)
            signed = words.view(np.int64) if wide else words.astype(np.int64)
            if low:
                signed += low
            store(out[part], signed)
        return out.reshape(shape)

    def permutation(self, n: int, dtype: Any = np.int64) -> np.ndarray:
        """A random order of 0, ..., n - 1 (randperm); n - 1 draws.

        Place i is swapped with place i + draw % (n - i), in a Python loop: 0.1 us an element."""
        dtype, info = describe(dtype)
        check_permutation(n, dtype, info)
        if n >= _LARGE_PERMUTATION:
            return self._large_permutation(n).astype(dtype, copy=False)
        order = list(range(n))
        result: list[int] = []
        values = iter(order)  # sees what the loop below has written ahead of it
        for part in blocks(n - 1):
            places = np.arange(part.start, part.stop, dtype=np.uint32)
            others = self._words32(len(places)) % (np.uint32(n) - places) + places
            for other, value in zip(others.tolist(), values):
                result.append(order[other])
                order[other] = value
        result += order[-1:]
        return np.array(result, np.int64).astype(dtype, copy=False)

    def _large_permutation(self, n: int) -> np.ndarray:
        """n 64-bit words: value i goes to place word % (i + 1), what was there to place i."""
        result = np.empty(n, np.int64)
        order = result.data  # a memoryview: its elements are Python ints
        for part in blocks(n):
            sizes = np.arange(part.start + 1, part.stop + 1, dtype=np.uint64)
            others = (self._words64(len(sizes)) % sizes).tolist()
            for place, other in zip(range(part.start, part.stop), others):
                order[place] = place
                order[place], order[other] = order[other], order[place]
        return result


def whole_range(dtype: np.dtype, info: DType) -> int:
    """How many integers `random` chooses from; NotImplementedError for complex dtypes."""
    if info.is_complex:
        raise unsupported("random_kernel_cpu", info)
    return _last_integer(info, dtype) + 1


def integer_range(
    low: int, high: int | None, dtype: np.dtype, info: DType
) -> tuple[int, int | None]:
    """The lowest integer and the number of integers that `randint` chooses from.

    The number is None for all that 64 bits hold. Raises what `randint` raises.
    """
    for bound in (low, high):
        if bound is not None and not _INT64_MIN <= bound <= _INT64_MAX:
            raise ValueError(f"Overflow when unpacking long long: {bound}")
    if high is None and low == _INT64_MIN:
        if info.name in ("bool", "float16") or info.is_complex:
            raise unsupported("random_full_64_bits_range_kernel_cpu", info)
        if info.kind in "iu" and info.name != "int64":
            raise RuntimeError(
                "random_full_64_bits_range_kernel_cpu handles only int64, double, float and "
                f"bfloat16, but got {info!r}"
            )
        return 0, None
    if info.is_complex:
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types, "
            f"but got {info!r}"
        )
    last = _last_integer(info, dtype) if high is None else high - 1
    if high is not None and low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if info.is_floating_point:
        low, last = _representable_bounds(low, last, high is None, dtype)
    _check_integer_bounds(low, last, info, dtype)
    return low, last - low + 1


def check_permutation(n: int, dtype: np.dtype, info: DType) -> None:
    """Raises what `permutation` raises."""
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if info.is_complex or info.kind == "b":
        raise unsupported("randperm", info)
    if info.is_floating_point:
        digits = DIGITS[info.name]
        if n > (1 << digits) + 1 and info.name != "bfloat16":
            bound = f"2^{digits}+1" if digits > 11 else str((1 << digits) + 1)
            raise RuntimeError(f"n cannot be greater than {bound} for {info.short_name} type.")
    elif n and n - 1 > np.iinfo(dtype).max:
        raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow")


def _last_integer(info: DType, dtype: np.dtype) -> int:
    if info.is_floating_point:
        return 1 << DIGITS[info.name]
    return 1 if info.kind == "b" else int(np.iinfo(dtype).max)


def _rounded(value: int, dtype: np.dtype) -> int | None:
    """An integer after its way through a floating dtype; None if it leaves the 64-bit range."""
    rounded = float(narrow(value, dtype))
    return int(rounded) if abs(rounded) < 1 << 63 else None


def _representable_bounds(low: int, last: int, open_end: bool, dtype: np.dtype) -> tuple[int, int]:
    """Bounds moved inwards where rounding to the dtype would carry a value outside of them."""
    digits = DIGITS[dtype.name]
    after = _rounded(low + 1, dtype)
    if after is not None and after < low:
        low = after + (1 << max(abs(low + 1).bit_length() - digits, 0))
    high = last + 1
    before = _rounded(last, dtype)
    if open_end:
        high = last
    elif before is not None and before >= high:
        high = before - (1 << max(abs(last).bit_length() - digits, 0))
        last = high - 1
    if low >= high:
        raise RuntimeError(
            "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, "
            f"but got from={low} >= to={high}"
        )
    return low, last


def _check_integer_bounds(low: int, last: int, info: DType, dtype: np.dtype) -> None:
    smallest: float
    largest: float
    if info.is_floating_point:
        largest = LARGEST[info.name]
        smallest = -largest
    else:
        largest = _last_integer(info, dtype)
        smallest = 0 if info.kind == "b" else int(np.iinfo(dtype).min)
    bounds = (("from", low), ("to - 1", last))
    for name, bound in bounds:
        if not smallest <= bound <= largest:
            raise RuntimeError(f"{name} is out of bounds for {info!r}: {bound}")
    if not info.is_floating_point:
        return
    digits = DIGITS[info.name]
    for name, bound in bounds:
        if abs(bound) > 1 << digits:
            warnings.warn(
                f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. {info!r} does not hold "
                "every integer beyond them.",
                UserWarning,
                stacklevel=level_outside(),
            )

"""What launchers ask of CuPy's arrays: their kind, and how they lie in memory."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.native import NATIVE

_f32, _f64 = np.dtype(np.float32), np.dtype(np.float64)
#: native dtype -> the dtype its sums are kept in; kernels for real floats decline all others
ACCUMULATORS: dict[Any, Any] = {
    native: _f64 if dtype.name == "float64" else _f32
    for dtype, native in NATIVE.items()
    if dtype.name in ("float16", "bfloat16", "float32", "float64")
}


def strides_of(x: Any) -> tuple[int, ...]:
    """Strides in elements."""
    size = x.itemsize
    return tuple([stride // size for stride in x.strides])


def ceil_div(x: int, y: int) -> int:
    """x / y, rounded up."""
    return -(-x // y)


def power_above(x: int) -> int:
    """The least power of two that is not below `x`."""
    return 1 << (x - 1).bit_length()


def aligned(*arrays: Any) -> bool:
    """Whether packs of 16 bytes can be read from the start of each array."""
    return not any([array.data.ptr % 16 for array in arrays])


def is_dense(x: Any) -> bool:
    """Whether the elements fill a piece of memory, each place once, in any order of the axes."""
    expected = x.itemsize
    for stride, size in sorted(zip(x.strides, x.shape)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def is_dense_last(x: Any) -> bool:
    """Whether the elements fill a piece of memory, axis 1 the fastest, the others in order."""
    return _dense_last(x.shape, x.strides, x.itemsize)


@lru_cache(4096)
def _dense_last(shape: tuple, strides: tuple, step: int) -> bool:
    for axis in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[axis] != 1 and strides[axis] != step:
            return False
        step *= shape[axis]
    return True


def empty_last(shape: tuple[int, ...], dtype: Any) -> Any:
    """An uninitialised array of (N, C, ...) whose channels lie next to each other."""
    strides, size = _strides_of_last(shape, dtype.itemsize)
    return cupy.ndarray(shape, dtype, cupy.cuda.alloc(size), strides)


@lru_cache(4096)
def _strides_of_last(shape: tuple[int, ...], step: int) -> tuple[tuple[int, ...], int]:
    """The strides, and how many bytes the array has."""
    strides = [0] * len(shape)
    for axis in (1, *range(len(shape) - 1, 1, -1), 0):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides), step


def empty_laid(x: Any, dtype: Any) -> Any:
    """An uninitialised array of a dense one's shape that lies as it does."""
    size = dtype.itemsize
    strides = x.strides
    if size != x.itemsize:
        strides = tuple([stride // x.itemsize * size for stride in strides])
    return cupy.ndarray(x.shape, dtype, cupy.cuda.alloc(x.size * size), strides)


def memory_order(x: Any) -> tuple[int, ...] | None:
    """The axes in the order of memory, None for arrays that are row-major or have gaps."""
    if x.flags.c_contiguous:
        return None
    strides = x.strides
    order = tuple(sorted(range(x.ndim), key=lambda axis: -strides[axis]))
    return order if x.transpose(order).flags.c_contiguous else None


def inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes another."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def stored(x: Any) -> tuple[Any, tuple | None]:
    """`x` as it lies in memory, and the order of its axes there; None where they are in order.

    An array that is not dense in any order is copied.
    """
    if x.flags.c_contiguous:
        return x, None
    order = memory_order(x)
    if order is None or 0 in x.strides:
        return cupy.ascontiguousarray(x), None
    return x.transpose(order), order


def in_order(x: Any, order: tuple | None) -> Any:
    """`x` with its axes in `order`, contiguous."""
    return cupy.ascontiguousarray(x if order is None else x.transpose(order))


def out_of_order(x: Any, order: tuple | None) -> Any:
    """The inverse of `in_order`, without a copy."""
    return x if order is None else x.transpose(inverse(order))

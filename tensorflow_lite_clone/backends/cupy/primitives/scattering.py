"""Values combined with what lies at indices, repeated ones among them, by atomics.

Every form of index becomes slices of a contiguous array: it is seen as (before, size, width), and
slice number ``index[j]`` along the middle takes the values (before, count, width) number j.
Negative indices count from the end; those out of bounds change nothing.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy import device_asserts
from tensorflow_lite_clone.backends.cupy.kernel import Kernel, blocks_for

_scatter_rows = Kernel("scatter.cu", "scatter_rows", params=("T", "A", "I", "HOW"))
_NONE = -(1 << 63)  # no index: nothing is skipped
_OUTSIDE = -(1 << 57)  # makes a sum of positions negative
_WHOLE = slice(None)
_HOW = {"multiply": "Multiply", "maximum": "Maximum", "minimum": "Minimum"}
_BOOL_HOW = {"Add": "Maximum", "Multiply": "Minimum"}  # "or" and "and"


class Places(NamedTuple):
    """Which slices an index names, and the shape of what it finds."""

    index: Any
    before: int
    size: int
    width: int
    shape: tuple


def add_at(x: Any, index: Any, value: Any) -> None:
    _combine(x, index, value, "Add")


def combine_at(x: Any, index: Any, value: Any, *, how: str) -> None:
    if x.dtype.kind == "c":
        raise NotImplementedError(f"'{how}' at indices is not implemented for complex numbers")
    _combine(x, index, value, _HOW[how])


def scatter_rows(
    x: Any, places: Places, values: Any, how: str = "Add", skipped: int = _NONE
) -> None:
    """Combine contiguous `values` with slices of the contiguous `x`, but for those `skipped`."""
    index, before, size, width, _ = places
    count = index.size
    if not values.size or not x.size:
        return
    if index.dtype.char not in "ilq":
        index = index.astype(np.int64)
    across = 1
    while across < min(width, 256):
        across *= 2
    blocks = blocks_for(before * count, 256 // across)
    parts = min(-(-width // (4 * across)), 65535) if blocks < 1024 else 1
    instance = _scatter_rows[values.dtype, x.dtype, index.dtype, how]
    instance(
        (blocks, parts), (across, 256 // across), cupy.ascontiguousarray(index), values, before,
        count, width, size, skipped, x,
    )  # fmt: skip


def _combine(x: Any, index: Any, value: Any, how: str) -> None:
    device_asserts.check_items(x.shape, index)
    places = _places(x.shape, index if type(index) is tuple else (index,))
    if not isinstance(value, cupy.ndarray):
        value = cupy.full((), value, x.dtype)
    values = cupy.broadcast_to(value, places.shape).astype(x.dtype, order="C", copy=False)
    values = cupy.ascontiguousarray(values)
    target = x if x.flags.c_contiguous else cupy.ascontiguousarray(x)
    kind = x.dtype.kind
    if kind == "b":
        how = _BOOL_HOW.get(how, how)
        scatter_rows(target.view(np.uint8), places, values.view(np.uint8), how)
    elif kind == "c":
        part = np.dtype(np.float32 if x.dtype.itemsize == 8 else np.float64)
        pairs = places._replace(width=2 * places.width)
        scatter_rows(target.reshape(-1).view(part), pairs, values.reshape(-1).view(part), how)
    elif how == "Add" and x.dtype.itemsize == 2 and kind in "fV":
        wide = target.astype(np.float32)  # sums of two-byte floats are rounded once
        scatter_rows(wide, places, values, how)
        x[...] = wide.astype(x.dtype)
        return
    else:
        scatter_rows(target, places, values, how)
    if target is not x:
        x[...] = target


def _places(shape: tuple, index: tuple) -> Places:
    count = len(index)
    arrays = [d for d, item in enumerate(index) if _is_index(item)]
    slices = [d for d in range(count) if d not in arrays]
    if not arrays or any([type(index[d]) is not slice or index[d] != _WHOLE for d in slices]):
        # Any other form: CuPy looks up where each element lies.
        found = cupy.arange(prod(shape)).reshape(shape)[index]
        return Places(found, 1, prod(shape), 1, found.shape)
    rest, width = shape[count:], prod(shape[count:])
    last = arrays[-1]
    if arrays == [last] and last == count - 1:
        item, lead = index[last], shape[:last]
        return Places(item, prod(lead), shape[last], width, lead + item.shape + rest)
    found = _positions(shape, index, arrays, slices)
    return Places(found, 1, prod(shape[:count]), width, found.shape + rest)


def _is_index(item: Any) -> bool:
    return isinstance(item, cupy.ndarray) and item.dtype.kind in "iu"


def _positions(shape: tuple, index: tuple, arrays: list[int], slices: list[int]) -> Any:
    """The rows that several index arrays name among the leading dimensions, negative outside."""
    strides = [prod(shape[d + 1 : len(index)]) for d in range(len(index))]
    named: Any = 0
    for d in arrays:
        item, size = index[d].astype(np.int64, copy=False), shape[d]
        inside = (item >= -size) & (item < size)
        row = cupy.where(item < 0, item + size, item) * strides[d]
        named = named + cupy.where(inside, row, _OUTSIDE)
    # The dimensions of index arrays side by side stay in place, else they come first.
    if arrays[-1] - arrays[0] + 1 == len(arrays):
        after = named.ndim + len(slices) - 1
    else:
        after = len(slices) - 1
        named = named.reshape(named.shape + (1,) * len(slices))
    for number, d in enumerate(slices):
        offsets = cupy.arange(shape[d]) * strides[d]
        named = named + offsets.reshape((shape[d],) + (1,) * (after - number))
    return named

"""NumPy's words for geometry and indexing: windows over memory, reads and writes at indices."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.threads import parallel_for
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.core.errors import size_error
from tensorflow_lite_clone.core.shape import LARGEST_STORAGE, expect_storage

# Elements handled at a time where every one needs a 64-bit position.
_BLOCK = 1 << 20
# From this many elements on a row is added faster alone than through positions, and from that
# many rows of at least this width on many rows at once.
_LONG_ROW = 1024
_FEW_ROWS, _WIDE_ROW = 16, 32
# A copy along strides goes in blocks when more cache lines than this lie in a row.
_MANY_LINES = 512


_POSITION = 8  # bytes of an element of a range
_LONGEST_RANGE = LARGEST_STORAGE // _POSITION


class _Window:
    """Another geometry over an array's memory, for `numpy.asarray`."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, interface: dict, owner: Any) -> None:
        self.__array_interface__ = interface
        self.owner = owner


def _window(x: Any, shape: tuple, byte_strides: tuple, byte_offset: int) -> Any:
    # numpy.lib.stride_tricks does the same in three times the time
    interface = x.__array_interface__
    address, readonly = interface["data"]
    interface["data"] = (address + byte_offset, readonly)
    interface["shape"] = shape
    interface["strides"] = byte_strides
    try:
        result = np.asarray(_Window(interface, x))
    except (ValueError, OverflowError) as error:
        raise size_error("as_strided", error, (shape, byte_strides)) from None
    if result.dtype != x.dtype:  # bfloat16 has no letter in the interface
        result = result.view(x.dtype)
    return result


def as_strided(x: Any, shape: tuple, strides: tuple, offset: int = 0) -> Any:
    size = x.itemsize
    byte_strides = tuple([stride * size for stride in strides])
    try:
        # a tenth of _window's time, where `x` is contiguous and holds all that is asked for
        return np.ndarray(shape, x.dtype, x, offset * size, byte_strides)
    except (ValueError, TypeError):
        return _window(x, tuple(shape), byte_strides, offset * size)


def arange(start: Any, stop: Any = None, step: Any = 1, *, dtype: Any = None) -> Any:
    """NumPy's, but RuntimeError where the number of elements overflows: that wraps around to 0."""
    first, last = (0, start) if stop is None else (start, stop)
    count = (last - first) // step
    if count >= _LONGEST_RANGE:
        expect_storage((count,), _POSITION)
    return np.arange(first, last, step, dtype)


def broadcast_to(x: Any, shape: tuple) -> Any:
    if type(x) is not np.ndarray:
        x = np.asarray(x)
    shift = len(shape) - x.ndim
    strides = [0] * shift
    if not x.ndim:
        return np.ndarray(shape, x.dtype, x, 0, strides)
    for size, stride, target in zip(x.shape, x.strides, shape[shift:], strict=True):
        if size != target and size != 1:
            raise ValueError(f"cannot broadcast shape {x.shape} to {shape}")
        strides.append(stride if size == target else 0)
    try:
        return np.ndarray(shape, x.dtype, x, 0, strides)
    except (ValueError, TypeError):
        return _window(x, tuple(shape), tuple(strides), 0)


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Any:
    if copy is not None:
        return np.reshape(x, shape, copy=copy)
    if x.ndim > 1 and x.shape[-1] >= _MANY_LINES and x.strides[-1] != x.itemsize:
        try:
            return np.reshape(x, shape, copy=False)
        except ValueError:
            return _copied(x).reshape(shape)
    return x.reshape(shape)


def permute_dims(x: Any, /, axes: tuple) -> Any:
    return x.transpose(axes)


def squeeze(x: Any, /, axis: Any) -> Any:
    return x.squeeze(axis)


def expand_dims(x: Any, /, *, axis: int = 0) -> Any:
    if axis < 0:
        axis += x.ndim + 1
    if not 0 <= axis <= x.ndim:
        raise IndexError(f"axis {axis} is out of bounds for an array of {x.ndim} dimensions")
    return x[(slice(None),) * axis + (None, ...)]


def matrix_transpose(x: Any, /) -> Any:
    return x.swapaxes(-1, -2)


def flip(x: Any, /, *, axis: Any = None) -> Any:
    return np.array(np.flip(x, axis), order="C")  # torch's tensors have no negative strides


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    # numpy.ones does the same in five times the time, where there are few
    out = np.empty(shape, dtype)
    out.fill(1)
    return out


def copy(x: Any) -> Any:
    if x.size < tuning.shared_copy or x.shape[0] < 2:
        if x.ndim < 2 or x.shape[-1] < _MANY_LINES or x.strides[-1] == x.itemsize:
            return np.array(x, order="C")
        out = np.empty(x.shape, x.dtype)
        _copy_in_blocks(x, out)
        return out
    out = np.empty(x.shape, x.dtype)

    def part(start: int, stop: int) -> None:
        _copy_in_blocks(x[start:stop], out[start:stop])

    parallel_for(part, len(x), max(tuning.shared_copy * len(x) // (2 * x.size), 1))
    return out


def _copy_in_blocks(x: Any, out: Any) -> None:
    """Copy along strides in blocks as wide as a cache line, so that each is written once."""
    sizes = [(stride, axis) for axis, (stride, n) in enumerate(zip(x.strides, x.shape)) if n > 1]
    _, axis = min(sizes, default=(0, x.ndim - 1))
    if axis == x.ndim - 1 or x.shape[-1] < _MANY_LINES:
        out[...] = x
        return
    before, between = (slice(None),) * axis, (slice(None),) * (x.ndim - axis - 2)
    for i in range(0, x.shape[axis], 1024):
        for j in range(0, x.shape[-1], 16):
            part = (*before, slice(i, i + 1024), *between, slice(j, j + 16))
            out[part] = x[part]


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    # In row-major order whatever the operands' order is: what follows may want to view it.
    return np.ascontiguousarray(np.concatenate(arrays, axis=axis))


def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    if axis < 0:
        axis += arrays[0].ndim + 1
    place = (slice(None),) * axis + (None, ...)
    return concat([x[place] for x in arrays], axis=axis)


def bitcast(x: Any, dtype: Any) -> Any:
    return x.view(dtype)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    return x.take(indices, axis)


def _whole_mask(x: Any, index: Any) -> bool:
    """Whether `index` is a mask of all elements of an `x` that lies in row-major order."""
    return (
        type(index) is np.ndarray
        and index.dtype.kind == "b"
        and index.shape == x.shape
        and x.flags.c_contiguous
    )


def getitem(x: Any, index: Any) -> Any:
    if type(index) is np.ndarray:
        if _whole_mask(x, index):
            return x.reshape(-1).take(np.flatnonzero(index))  # a fifth of the time of x[index]
        if index.dtype.kind == "i" and index.ndim:
            return x.take(index, axis=0)
    elif type(index) is tuple and any([type(item) is np.ndarray for item in index]):
        return np.asarray(x[index], order="C")  # NumPy gives x[:, index] in another order
    return x[index]


def write_at(x: Any, index: Any, value: Any) -> None:
    if _whole_mask(x, index):
        x.reshape(-1)[np.flatnonzero(index)] = value
    else:
        x[index] = value


def add_at(x: Any, index: Any, value: Any) -> None:
    value = np.asarray(value)
    if not value.size:
        return  # as for reads, out of bounds or not
    if x.dtype.itemsize == 2 and x.dtype.kind not in "iub":
        wide = x.astype(np.float32)
        add_at(wide, index, value.astype(np.float32))
        x[...] = wide
        return
    if type(index) is not tuple:
        index = (index,)
    kinds = [type(item) is np.ndarray and item.dtype.kind in "iu" for item in index]
    if not x.flags.c_contiguous or x.dtype.kind == "b":
        np.add.at(x, index, value)
    elif all(kinds):
        rows = _linear(index, x.shape)
        rest = x.shape[len(index) :]
        value = np.broadcast_to(value, rows.shape + rest)
        matrix = x.reshape(prod(x.shape[: len(index)]), prod(rest))
        _add_rows(matrix, rows.reshape(-1), value.reshape(rows.size, matrix.shape[1]))
    elif kinds[-1] and index[-1].ndim == 1 and _whole(index[:-1]):
        _add_slices(x, index[-1], len(index) - 1, value)
    else:
        np.add.at(x, index, value)


def _whole(index: tuple) -> bool:
    return all([type(item) is slice and item == slice(None) for item in index])


def _linear(index: tuple, shape: tuple) -> Any:
    """The row that index arrays for the leading dimensions name together; checks their bounds."""
    rows: Any = None
    for dim, (item, size) in enumerate(zip(index, shape)):
        item = _wrapped(item, size, dim)
        rows = item if rows is None else rows * size + item
    return rows


def _wrapped(index: Any, size: int, dim: int) -> Any:
    """Indices with the negative ones counted from the start; checks their bounds."""
    check_index(index, size, dim, negative=True)
    if index.size and index.min() < 0:
        return np.where(index < 0, index + size, index)
    return index


def _add_rows(x: Any, rows: Any, value: Any) -> None:
    """``x[rows[i]] += value[i]`` for a contiguous matrix `x`, repeated rows summed."""
    count, width = x.shape
    if width >= _WIDE_ROW and _FEW_ROWS <= rows.size <= count:
        # Rows named for the last time are added at once; what repeats them has to follow.
        last = np.empty(count, np.intp)
        for _ in range(3):
            here = np.arange(rows.size)
            last[rows] = here
            final = last[rows] == here
            which = np.flatnonzero(final)
            some = rows[which]
            total = x.take(some, 0)
            total += value.take(which, 0)
            x[some] = total
            if which.size == rows.size:
                return
            which = np.flatnonzero(~final)
            rows, value = rows[which], value.take(which, 0)
    if width >= _LONG_ROW:
        for row, addend in zip(rows.tolist(), value):
            x[row] += addend
    else:
        _add_slices(x, rows, 0, value)


def summed_rows(count: int, rows: Any, value: Any) -> Any:
    """Zeros (count, width) with ``value[i]`` (width,) added at row ``rows[i]``; checks bounds.

    What names a row for the last time is written there, and the others are added.
    """
    rows = _wrapped(rows, count, 0)
    out = np.zeros((count, value.shape[1]), value.dtype)
    last = np.empty(count, np.intp)
    here = np.arange(rows.size)
    last[rows] = here
    others = np.flatnonzero(last[rows] != here)
    if 2 * others.size > rows.size:  # few rows, again and again
        _add_rows(out, rows, value)
    else:
        out[rows] = value
        _add_rows(out, rows[others], value.take(others, 0))
    return out


def _add_slices(x: Any, index: Any, axis: int, value: Any) -> None:
    """``x[..., index, ...] += value`` along `axis` of a contiguous `x`."""
    size, width = x.shape[axis], prod(x.shape[axis + 1 :])
    index = _wrapped(index, size, axis)
    before = prod(x.shape[:axis])
    value = np.broadcast_to(value, (*x.shape[:axis], index.size, *x.shape[axis + 1 :]))
    value = value.reshape(before, index.size * width)
    if not value.size:
        return
    # `numpy.add.at` is three times as fast on one-dimensional arrays
    flat = x.reshape(-1)
    places = index if width == 1 else (index[:, None] * width + np.arange(width)).reshape(-1)
    if before == 1:
        np.add.at(flat, places, value.reshape(-1))
        return
    step = max(_BLOCK // places.size, 1)
    for start in range(0, before, step):
        part = value[start : start + step]
        offsets = np.arange(start, start + len(part)) * (size * width)
        np.add.at(flat, (offsets[:, None] + places).reshape(-1), part.reshape(-1))


_copied = copy  # where a parameter has its name
_COMBINE = {"multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}


def combine_at(x: Any, index: Any, value: Any, *, how: str) -> None:
    _COMBINE[how].at(x, index, value)


def check_index(index: Any, size: int, dim: int, *, negative: bool = False) -> None:
    if not index.size:
        return
    signed = index.dtype.kind == "i"
    # One pass where all is well: as unsigned numbers negative ones are the largest.
    if not negative and signed and int(index.view(f"u{index.itemsize}").max()) < size:
        return
    low, high = int(index.min()), int(index.max())
    if high >= size or low < (-size if negative else 0):
        raise IndexError(
            f"index {high if high >= size else low} is out of bounds for dimension {dim} with "
            f"size {size}"
        )


def address(x: Any) -> int:
    return x.__array_interface__["data"][0]

"""CuPy's words for geometry and indexing: windows over memory, reads and writes at indices."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from cupy.cuda import MemoryPointer

from tensorflow_lite_clone.backends.cupy import device_asserts
from tensorflow_lite_clone.backends.cupy.arrays import ceil_div, power_above
from tensorflow_lite_clone.backends.cupy.convolution_layout import is_last
from tensorflow_lite_clone.backends.cupy.gemm_plan import capturing
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.backends.cupy.layout_convert import to_row_major


def as_strided(x: Any, shape: tuple, strides: tuple, offset: int = 0) -> Any:
    size = x.itemsize
    byte_strides = tuple([stride * size for stride in strides])
    # Memory that says it is not its own: CuPy would give a window no `base`. It starts where the
    # array's does, by which formulas know what shares memory.
    memory = x.data.mem
    lent = cupy.cuda.UnownedMemory(memory.ptr, memory.size, x, x.data.device_id)
    start = MemoryPointer(lent, x.data.ptr - memory.ptr + offset * size)
    return cupy.ndarray(tuple(shape), x.dtype, start, byte_strides)


def broadcast_to(x: Any, shape: tuple) -> Any:
    return cupy.broadcast_to(x, tuple(shape))


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Any:
    if copy:
        return x.copy().reshape(shape)
    result = x.reshape(shape)
    if copy is False and result.data.ptr != x.data.ptr:
        raise ValueError("the array cannot be reshaped without a copy")
    return result


def expand_dims(x: Any, /, *, axis: int = 0) -> Any:
    return cupy.expand_dims(x, axis)


def _packed(x: Any) -> Any:
    """Row by row; `cupy.ascontiguousarray` would give zero-dim arrays an axis."""
    return x if x.flags.c_contiguous else x.copy(order="C")


def flip(x: Any, /, *, axis: Any = None) -> Any:
    return cupy.flip(x, axis).copy(order="C")  # tensors have no negative strides


_COPY = Kernel("copy.cu", "copy_forward", params=("PACKS",))
_ROWS = Kernel("gather.cu", "gather_rows", params=("I", "BYTES"))
_LARGE = 1 << 16  # bytes, from which a kernel copies faster than the runtime


def copy(x: Any) -> Any:
    size = x.nbytes
    if (made := to_row_major(x)) is not None:
        return made
    if size < _LARGE or not x.flags.c_contiguous or x.data.ptr % 16:
        return x.copy(order="C")
    made = cupy.empty(x.shape, x.dtype)
    _COPY[4](-(-size // (16 * 4 * 256)), 256, x, size, made)
    return made


_LAST, _FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
_MOST_JOINED = 8  # arrays that CuPy joins without a list of their addresses from the host


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    if len(arrays) > _MOST_JOINED and capturing():  # a copy from the host cannot be captured
        if axis is None:
            arrays, axis = [x.ravel() for x in arrays], 0
        return _joined(arrays, axis)
    if axis in (1, -3) and all([is_last(x) for x in arrays]):
        return cupy.concatenate([x.transpose(_LAST) for x in arrays], axis=3).transpose(_FIRST)
    return _packed(cupy.concatenate(arrays, axis=axis))


def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    if len(arrays) > _MOST_JOINED and capturing():
        return _joined([cupy.expand_dims(x, axis) for x in arrays], axis)
    return _packed(cupy.stack(arrays, axis=axis))


def _joined(arrays: Any, axis: int) -> Any:
    """What `cupy.concatenate` gives, by a copy for each array."""
    shape = list(arrays[0].shape)
    sizes = [x.shape[axis] for x in arrays]
    shape[axis] = sum(sizes)
    result = cupy.empty(shape, np.result_type(*[x.dtype for x in arrays]))
    lines, start = result.swapaxes(0, axis), 0
    for x, size in zip(arrays, sizes):
        lines[start : start + size] = x.swapaxes(0, axis)
        start += size
    return result


def unstack(x: Any, /, *, axis: int = 0) -> tuple:
    return tuple([x.take(i, axis) for i in range(x.shape[axis])])


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    if indices.size and not (x.size if axis is None else x.shape[axis]):
        raise IndexError("index is out of bounds for an axis with size 0")
    first = axis == 0 or (axis is None and x.ndim == 1)
    if first and x.flags.c_contiguous and indices.dtype.char in "ilq":
        return _rows_at(x, indices)
    size = x.size if axis is None else x.shape[axis]
    device_asserts.check_index(indices, -size, size)
    return x.take(indices, axis)


def _rows_at(x: Any, index: Any) -> Any:
    made = cupy.empty((*index.shape, *x.shape[1:]), x.dtype)
    if not made.size:
        return made
    rows, row = x.shape[0], x.nbytes // x.shape[0]
    places = row | x.data.ptr | 16
    width = places & -places  # bytes that divide a row and the address, at most 16
    packs = row // width
    across = min(32, power_above(packs))
    down = 256 // across
    kernel = _ROWS[index.dtype, width]
    kernel(
        ceil_div(index.size, down), (across, down),
        x, rows, packs, cupy.ascontiguousarray(index), index.size, made,
        device_asserts.report(),
    )  # fmt: skip
    return made


def _expect_in_nothing(x: Any, index: Any) -> None:
    """IndexError for indices into an axis without elements: CuPy would read or write there."""
    if not x.size:
        items = index if type(index) is tuple else (index,)
        host = [item.get() if type(item) is cupy.ndarray else item for item in items]
        np.empty(x.shape, np.bool_)[tuple(host)]


def getitem(x: Any, index: Any) -> Any:
    _expect_in_nothing(x, index)
    if type(index) is tuple and any([type(item) is cupy.ndarray for item in index]):
        device_asserts.check_items(x.shape, index)
        return _packed(x[index])
    if type(index) is cupy.ndarray and index.dtype.kind == "i" and index.ndim:
        return take(x, index, axis=0)
    return x[index]


_masked_fill = cupy.ElementwiseKernel(
    "bool mask, T value", "T x", "if (mask) x = value", "tlc_masked_fill"
)


def write_at(x: Any, index: Any, value: Any) -> None:
    if not isinstance(value, cupy.ndarray):  # CuPy would copy it from the host
        value = cupy.full((), value, x.dtype)
    if type(index) is cupy.ndarray and index.dtype.kind == "b":
        rest = x.ndim - index.ndim
        if index.shape == x.shape[: index.ndim] and value.ndim <= rest:
            _fill(x, index.reshape((*index.shape, *(1,) * rest)), value)
            return
    _expect_in_nothing(x, index)
    device_asserts.check_items(x.shape, index)
    x[index] = value


def _fill(x: Any, mask: Any, value: Any) -> None:
    """Write `value` where the mask holds; CuPy's own way counts that, and waits for the count."""
    value = value.astype(x.dtype, copy=False)
    if x.dtype.kind == "V":
        x, value = x.view(np.uint16), value.view(np.uint16)
    _masked_fill(mask, value, x)


def address(x: Any) -> int:
    return x.data.ptr


def check_index(index: Any, size: int, dim: int, *, negative: bool = False) -> None:
    """IndexError for any index into nothing; the device tells of what else is out of bounds."""
    if not size and index.size:
        raise IndexError(f"index is out of bounds for dimension {dim} with size 0")
    device_asserts.check_index(index, -size if negative else 0, size)

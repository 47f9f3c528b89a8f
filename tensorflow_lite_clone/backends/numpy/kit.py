"""NumPy's words beyond the array API standard, and corrections of those within it."""

from __future__ import annotations

from typing import Any

import numpy as np

NATIVE: dict[Any, Any] = {}  # DType -> numpy dtype, filled by the backend

_f32 = np.dtype(np.float32)


def _narrow(x: Any) -> bool:
    """Whether NumPy would accumulate `x` too coarsely (bfloat16 is no dtype of NumPy's own)."""
    return x.dtype.kind == "V"


def astype(x: Any, dtype: Any, *, copy: bool = False) -> Any:
    native = NATIVE.get(dtype, dtype)
    if x.dtype.kind == "c" and native.kind != "c":
        x = x.real
    return x.astype(native, copy=copy)


def copy(x: Any) -> Any:
    return np.array(x, order="C")


class _Window:
    """Another geometry over an array's memory, for `numpy.asarray`."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, interface: dict, owner: Any) -> None:
        self.__array_interface__ = interface
        self.owner = owner


def _window(x: Any, shape: tuple, byte_strides: tuple, byte_offset: int = 0) -> Any:
    # numpy.lib.stride_tricks does the same in three times the time
    interface = x.__array_interface__
    address, readonly = interface["data"]
    interface["data"] = (address + byte_offset, readonly)
    interface["shape"] = shape
    interface["strides"] = byte_strides
    result = np.asarray(_Window(interface, x))
    if result.dtype != x.dtype:  # bfloat16 has no letter in the interface
        result = result.view(x.dtype)
    return result


def as_strided(x: Any, shape: tuple, strides: tuple, offset: int = 0) -> Any:
    size = x.itemsize
    return _window(x, tuple(shape), tuple([s * size for s in strides]), offset * size)


def broadcast_to(x: Any, shape: tuple) -> Any:
    shift = len(shape) - x.ndim
    strides = [0] * shift
    for size, stride, wanted in zip(x.shape, x.strides, shape[shift:], strict=True):
        if size != wanted and size != 1:
            raise ValueError(f"cannot broadcast shape {x.shape} to {shape}")
        strides.append(stride if size == wanted else 0)
    return _window(np.asarray(x), tuple(shape), tuple(strides))


def sum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    native = NATIVE.get(dtype, dtype)
    if _narrow(x) and native is None:
        return np.add.reduce(x, axis, _f32, None, keepdims).astype(x.dtype)
    return np.add.reduce(x, axis, native, None, keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if _narrow(x):
        return np.mean(x, axis=axis, dtype=_f32, keepdims=keepdims).astype(x.dtype)
    return np.mean(x, axis=axis, keepdims=keepdims)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return np.maximum.reduce(x, axis, None, None, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return np.minimum.reduce(x, axis, None, None, keepdims)


def matmul(x: Any, y: Any) -> Any:
    result = np.matmul(x, y)
    return result if result.dtype == x.dtype else result.astype(x.dtype)


def getitem(x: Any, index: Any) -> Any:
    return x[index]


def index_put(x: Any, index: Any, value: Any) -> Any:
    result = np.array(x)
    result[index] = value
    return result


def index_add(x: Any, index: Any, value: Any) -> Any:
    result = np.array(x)
    np.add.at(result, index, value)
    return result

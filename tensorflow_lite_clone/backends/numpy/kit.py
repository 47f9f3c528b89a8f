"""NumPy's words beyond the array API standard, and corrections of those within it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.kit_reduce import (  # noqa: F401
    all,
    any,
    cumulative_logsumexp,
    cumulative_max,
    cumulative_min,
    cumulative_prod,
    cumulative_sum,
    max,
    mean,
    min,
    prod,
    sum,
)
from tensorflow_lite_clone.backends.numpy.kit_sort import (  # noqa: F401
    arg_kth,
    argsort,
    bincount,
    put_along_axis,
    searchsorted,
    sort,
    top_k,
)
from tensorflow_lite_clone.backends.numpy.native import NATIVE


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
    if type(x) is np.ndarray and x.flags.c_contiguous:
        return np.ndarray(shape, x.dtype, x, 0, strides)  # a sixth of _window's time
    return _window(np.asarray(x), tuple(shape), tuple(strides))


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

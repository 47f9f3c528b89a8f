"""Tensor maps: what Hopper's copy engine is told of an array, for the kernels of `wgmma.cuh`.

Facts: CUDA driver API, cuTensorMapEncodeTiled.
"""

from __future__ import annotations

import ctypes
from functools import cache, lru_cache
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.cupy.kernel import watch

_TYPES = {"float32": 7, "float16": 6, "bfloat16": 9, "float32 as tf32": 11}  # CUtensorMapDataType
_SWIZZLES = {0: 0, 128: 3}  # bytes -> CUtensorMapSwizzle
_PROMOTED_TO_256_BYTES = 3  # CU_TENSOR_MAP_L2_PROMOTION_L2_256B
#: The dtype of a map as a kernel's parameter.
TENSOR_MAP = np.dtype((np.void, 128))


@cache
def _encode() -> Any:
    function = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled
    function.restype = ctypes.c_int
    return function


def tensor_map(
    array: Any,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    box: tuple[int, ...],
    *,
    steps: tuple[int, ...] = (),
    swizzle: int = 128,
    rounded: bool = False,
    written: bool = False,
) -> Any:
    """The map of boxes of `box` elements of a tensor, innermost axis first.

    `shape` and `box` in elements, up to five axes; `strides` in elements, of all axes but the
    innermost (which is 1): multiples of 16 bytes. `steps`: every how many elements along an axis
    are copied. `swizzle`: 128, then the box's innermost axis is at most 128 bytes, or 0. `rounded`:
    float32 becomes tf32 on the way. `written`: a kernel writes the array through it, or else reads.
    What lies outside is zero. RuntimeError where the driver refuses.
    """
    key = array.dtype, shape, strides, box, steps, swizzle, rounded
    result = made(array.data.ptr, *key)
    if watch.maps is not None:
        watch.maps[result.tobytes()] = array.data.ptr, key, written
    return result


@lru_cache(4096)
def made(
    address: int, dtype: Any, shape: tuple, strides: tuple, box: tuple, steps: tuple, swizzle: int,
    rounded: bool,
) -> Any:  # fmt: skip
    """The map of an array at `address`."""
    rank, itemsize = len(shape), dtype.itemsize
    kind = f"{dtype.name} as tf32" if rounded else dtype.name
    steps = steps or (1,) * rank
    storage = np.zeros(192, np.uint8)  # the map must lie at a multiple of 64
    start = -storage.ctypes.data % 64
    status = _encode()(
        ctypes.c_void_p(storage.ctypes.data + start),
        ctypes.c_int(_TYPES[kind]),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * rank)(*shape),
        (ctypes.c_uint64 * rank)(*[stride * itemsize for stride in strides]),
        (ctypes.c_uint32 * rank)(*box),
        (ctypes.c_uint32 * rank)(*steps),
        ctypes.c_int(0),  # not interleaved
        ctypes.c_int(_SWIZZLES[swizzle]),
        ctypes.c_int(_PROMOTED_TO_256_BYTES),
        ctypes.c_int(0),  # outside: zeros
    )
    if status:
        raise RuntimeError(
            f"no tensor map of shape {shape}, strides {strides}, boxes of {box} by steps of "
            f"{steps}, {kind} at {address:#x}: the driver's error {status}"
        )
    return storage[start : start + 128].copy().view(TENSOR_MAP)

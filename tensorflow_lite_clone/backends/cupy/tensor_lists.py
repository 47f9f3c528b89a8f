"""Lists of tensors, and numbers, as kernels take them by value (`Tensors`, `Numbers`).

The structs are those of kernels/tensors.cuh. Everything is in the launch's arguments, so nothing is
copied to the device, and a launch can be captured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.arrays import ACCUMULATORS, is_dense
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.core.dynamic_scalar import DynamicScalar

THREADS = 256  # a block; the kernels are compiled for it
STEP_CHUNK, NORM_CHUNK = 4096, 65536  # bytes of a tensor for one block
_f32 = np.dtype(np.float32)

#: Arrays at one place of the lists, which lie in memory alike, and that place.
Row = tuple[int, tuple]


def rows(lists: Sequence[list], read: tuple[int, ...] = ()) -> dict[Any, list[Row]] | None:
    """The lists' places by dtype, without empty tensors; None when kernels cannot serve them.

    Arrays of the lists at the positions `read` may be copies, in the layout of the first list.
    """
    found: dict[Any, list[Row]] = {}
    for place, arrays in enumerate(zip(*lists, strict=True)):
        dtype = arrays[0].dtype
        if dtype not in ACCUMULATORS:
            return None
        alike: Any = arrays
        for x in arrays:
            if x.dtype is not dtype and x.dtype != dtype:
                return None
            if not x._c_contiguous:
                alike = None
        if alike is None:
            alike = _alike(arrays, read)
            if alike is None:
                return None
        if arrays[0].size:
            found.setdefault(dtype, []).append((place, alike))
    return found


def _alike(arrays: tuple, read: tuple[int, ...]) -> tuple | None:
    first = arrays[0]
    if not is_dense(first):
        if 0 not in read:
            return None
        first = cupy.ascontiguousarray(first)
    strides = _significant_strides(first)
    result = [first]
    for i, x in enumerate(arrays[1:], 1):
        if _significant_strides(x) != strides:
            if i not in read:
                return None
            memory = cupy.empty(first.size, first.dtype)
            copy = cupy.ndarray(first.shape, first.dtype, memory.data, first.strides)
            copy[...] = x
            x = copy
        result.append(x)
    return tuple(result)


def _significant_strides(x: Any) -> list[int]:
    return [stride for stride, n in zip(x.strides, x.shape, strict=True) if n > 1]


def batches(places: list[Row], lists: int, chunk: int) -> Iterator[tuple[np.ndarray, int]]:
    """Per launch the struct `Tensors<lists>` and its number of blocks of `chunk` elements."""
    most = _most(lists)
    for start in range(0, len(places), most):
        part = [arrays for _, arrays in places[start : start + most]]
        words, blocks = _sized(tuple([arrays[0].size for arrays in part]), lists, chunk)
        words = words.copy()
        words[: lists * most].reshape(lists, most)[:, : len(part)] = [
            [0 if x is None else x.data.ptr for x in column] for column in zip(*part, strict=True)
        ]
        yield words.view(f"V{words.nbytes}"), blocks


def _most(lists: int) -> int:
    """How many tensors a launch takes: as many as its arguments have room for."""
    return 3832 // (8 * lists + 12)


@lru_cache(1024)
def _sized(sizes: tuple[int, ...], lists: int, chunk: int) -> tuple[np.ndarray, int]:
    """The words of `Tensors<lists>` for tensors of these sizes, without addresses, and blocks."""
    most, count = _most(lists), len(sizes)
    words = np.zeros((lists + 1) * most + (most + 2) // 2, np.int64)
    words[lists * most : lists * most + count] = sizes
    ends = np.cumsum([-(-size // chunk) for size in sizes])
    integers = words[(lists + 1) * most :].view(np.int32)
    integers[1:count] = ends[:-1]
    integers[most] = count
    return words, int(ends[-1])


def launch(instance: Any, dtype: Any, places: list[Row], lists: int, *args: Any) -> None:
    """Launch a kernel on all places of one dtype, a block for every `STEP_CHUNK` bytes."""
    for tensors, blocks in batches(places, lists, STEP_CHUNK // dtype.itemsize):
        instance(blocks, THREADS, tensors, *args)


def numbers(dtype: Any, *values: Any) -> np.ndarray:
    """The struct `Numbers` for tensors of `dtype`: floats, dynamic scalars, 0-d float32 arrays.

    Taking a dynamic scalar's device value is a promise to launch.
    """
    accumulator = ACCUMULATORS[dtype]
    words = np.zeros(8 + accumulator.itemsize, np.int64)
    scalars = words[8:].view(accumulator)
    for i, value in enumerate(values):
        if value.__class__ is DynamicScalar:
            scalars[i] = value
            words[i] = value.device_value.data.ptr
        elif isinstance(value, cupy.ndarray):
            scalars[i] = np.nan  # equal to nothing: the kernel takes the cell
            words[i] = value.data.ptr
        else:
            scalars[i] = value
    return words.view(f"V{words.nbytes}")


def is_cell(value: Any) -> bool:
    """Whether a value is a float32 array of one element."""
    return value.__class__ is cupy.ndarray and value.dtype == _f32 and value.size == 1


def is_supported(lr: Any, found_inf: Any, *cells: list) -> bool:
    """Whether what lies on the device lies there as the kernels read it."""
    return (
        (lr.__class__ is not cupy.ndarray or is_cell(lr))
        and (found_inf is None or is_cell(found_inf))
        and all([is_cell(cell) for column in cells for cell in column])
    )


def launch_step(
    kernel: Kernel,
    template: tuple,
    lists: list[list],
    cells: list[list],
    values: Callable[[], tuple],
    flags: list[bool],
    *,
    lr: Any,
    found_inf: Any,
) -> Any:
    """What `kernels.steps.fused_step` runs; NotImplemented for what the kernel cannot serve."""
    found = rows(lists, read=(1,))
    if found is None or not is_supported(lr, found_inf, *cells):
        return NotImplemented
    given = values()  # not before: taking a device value is a promise to launch
    count = len(lists) + len(cells)
    for dtype, places in found.items():
        if cells:
            places = [(place, (*arrays, *[c[place] for c in cells])) for place, arrays in places]
        instance = kernel[(dtype, *template)]
        launch(instance, dtype, places, count, numbers(dtype, *given), found_inf, *flags)
    return None

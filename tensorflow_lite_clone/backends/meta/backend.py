"""The meta device's backend."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tensorflow_lite_clone.backends.base import Backend
from tensorflow_lite_clone.backends.meta.array import MetaArray
from tensorflow_lite_clone.backends.meta.kit import broadcast_to
from tensorflow_lite_clone.backends.meta.random import MetaGenerator
from tensorflow_lite_clone.backends.numpy.native import NATIVE
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.shape import contiguous_strides, expect_storage


class MetaBackend(Backend):
    """Arrays without elements."""

    name = "meta"
    device = Device("meta")
    xp = kit = MetaArray.kit
    array_type = MetaArray
    native = NATIVE
    dtypes = {native: dtype for dtype, native in NATIVE.items()}
    generator = MetaGenerator()

    def make_generator(self) -> Any:
        return self.generator

    def asarray(self, data: Any, dtype: DType | None = None) -> Any:
        if isinstance(data, MetaArray):
            return data if dtype is None else self.F.astype(data, dtype)
        return self.from_host(np.asarray(data, None if dtype is None else NATIVE[dtype]))

    def from_host(self, array: Any, non_blocking: bool = False) -> Any:
        return MetaArray(array.shape, array.dtype)

    def to_host(self, array: Any, non_blocking: bool = False) -> NoReturn:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    def receive(self, array: Any, source: Backend, non_blocking: bool = False) -> Any:
        return MetaArray(tuple(array.shape), array.dtype)

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        native = NATIVE[dtype]
        expect_storage(shape, native.itemsize)
        return MetaArray(tuple(shape), native)

    def write(self, target: Any, value: Any) -> None:
        if isinstance(value, MetaArray):
            broadcast_to(value, target.shape)  # raises where it does not

    def constant(self, value: complex, native_dtype: Any) -> Any:
        return MetaArray((), native_dtype)

    def strides(self, array: Any) -> tuple[int, ...]:
        steps: tuple[int, ...] = array.steps
        return steps

    def is_contiguous(self, array: Any) -> bool:
        if not array.size:
            return True
        plain = contiguous_strides(array.shape)
        pairs = zip(array.shape, array.steps, plain)
        return all([n == 1 or step == expected for n, step, expected in pairs])

    def owns_memory(self, array: Any) -> bool:
        return isinstance(array, MetaArray) and array.base is None


_backend = MetaBackend()


def backend(index: int) -> Backend:
    """The meta device; there is one, whatever the index."""
    return _backend

"""The meta device's backend."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tensorflow_lite_clone.backends.base import Backend
from tensorflow_lite_clone.backends.meta.array import MetaArray
from tensorflow_lite_clone.backends.meta.primitives import broadcast_to
from tensorflow_lite_clone.backends.meta.random import MetaGenerator
from tensorflow_lite_clone.backends.numpy.native import NATIVE
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.shape import contiguous_strides
from tensorflow_lite_clone.core.strides import dense_strides


class MetaBackend(Backend):
    """Arrays without elements."""

    name = "meta"
    device = Device("meta")
    xp = primitives = MetaArray.primitives
    array_type = MetaArray
    has_values = False
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
        steps = [stride // array.itemsize for stride in array.strides]
        return MetaArray(array.shape, array.dtype, dense_strides(array.shape, steps))

    def to_host(self, array: Any, non_blocking: bool = False) -> NoReturn:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    def number(self, array: Any) -> NoReturn:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")

    def receive(self, array: Any, source: Backend, non_blocking: bool = False) -> Any:
        shape = tuple(array.shape)
        return MetaArray(shape, array.dtype, dense_strides(shape, source.strides(array)))

    def data_pointer(self, array: Any) -> int:
        return array.offset * array.dtype.itemsize

    def shared(self, root: Any, view: Any) -> NoReturn:
        raise RuntimeError("_share_fd_: only available on CPU")

    def is_shared(self, array: Any) -> bool:
        return False

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return MetaArray(tuple(shape), NATIVE[dtype])

    def write(self, target: Any, value: Any) -> None:
        if isinstance(value, MetaArray):
            shape = value.shape
            while len(shape) > target.ndim and shape[0] == 1:
                shape = shape[1:]
            broadcast_to(MetaArray(shape, value.dtype), target.shape)  # raises where it does not

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

"""The strict device's backend: namespace, primitives and generator lifted from NumPy's."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.backends.base import Backend
from tensorflow_lite_clone.backends.numpy import primitives as numpy_kit
from tensorflow_lite_clone.backends.numpy.backend import NATIVE
from tensorflow_lite_clone.backends.numpy.random import Generator
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.dispatch import capture
from tensorflow_lite_clone.dispatch.primitives import CONSTANTS, PRIMITIVES
from tests.strict_backend.array import StrictArray, lifted, rewrap, unwrap


class _Lifted:
    """The functions of a module over strict arrays; constants and dtypes as they are."""

    def __init__(self, module: Any, names: frozenset[str] | None) -> None:
        self._module, self._names = module, names

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or (self._names is not None and name not in self._names):
            raise AttributeError(f"the strict device has no '{name}'")
        value = getattr(self._module, name)
        if isinstance(value, ModuleType):  # the standard's linalg and fft
            word: Any = _Lifted(value, None)
        elif isinstance(value, type) or not callable(value):
            return value
        else:
            word = lifted(value)
        setattr(self, name, word)
        return word


class _LiftedGenerator:
    """The CPU's random streams as strict arrays."""

    def __init__(self) -> None:
        self._source = Generator()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._source, name)
        return lifted(value) if callable(value) else value

    def into(self, array: Any) -> Any:
        return self

    def get_state(self) -> Any:
        return self._source.get_state()  # states live on the host

    def set_state(self, state: Any) -> None:
        self._source.set_state(state)


backends.register("strict", lambda index: backend(index))  # before its device is named


class StrictBackend(Backend):
    """NumPy behind a wall."""

    name = "strict"
    device = Device("strict", 0)
    xp = _Lifted(np, PRIMITIVES.keys() | CONSTANTS)
    primitives = _Lifted(numpy_kit, None)
    array_type = StrictArray
    native = NATIVE
    dtypes = {native: dtype for dtype, native in NATIVE.items()}

    def __init__(self) -> None:
        super().__init__()
        self.generator = _LiftedGenerator()

    def make_generator(self) -> Any:
        return _LiftedGenerator()

    def asarray(self, data: Any, dtype: DType | None = None) -> Any:
        return rewrap(np.asarray(unwrap(data), None if dtype is None else NATIVE[dtype]))

    def from_host(self, array: Any, non_blocking: bool = False) -> Any:
        capture.crossing("copies from the host", array.nbytes)
        return StrictArray(np.array(array))

    def to_host(self, array: Any, non_blocking: bool = False) -> Any:
        host = np.array(unwrap(array))
        capture.crossing("reads a value back", host.nbytes)
        return host

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return StrictArray(np.empty(shape, NATIVE[dtype]))

    def write(self, target: Any, value: Any) -> None:
        target._hidden[...] = unwrap(value)

    def constant(self, value: complex, native_dtype: Any) -> Any:
        if isinstance(value, int) and native_dtype.kind in "iu":
            return StrictArray(np.array(value, np.int64).astype(native_dtype))
        return StrictArray(np.array(value, native_dtype))

    def strides(self, array: Any) -> tuple[int, ...]:
        hidden = unwrap(array)
        return tuple(stride // hidden.itemsize for stride in hidden.strides)

    def is_contiguous(self, array: Any) -> bool:
        return unwrap(array).flags.c_contiguous

    def owns_memory(self, array: Any) -> bool:
        return isinstance(array, StrictArray) and array._hidden.base is None


_backend = StrictBackend()


def backend(index: int) -> Backend:
    """The one strict device."""
    return _backend

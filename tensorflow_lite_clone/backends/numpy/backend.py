"""The CPU as a backend: NumPy arrays."""

from __future__ import annotations

import os
from functools import cached_property
from importlib.util import find_spec
from operator import add, iadd
from sys import getrefcount
from typing import Any

import ml_dtypes
import numpy as np

from tensorflow_lite_clone.backends.base import Backend
from tensorflow_lite_clone.backends.numpy import memory, primitives
from tensorflow_lite_clone.backends.numpy.blocks import chunked
from tensorflow_lite_clone.backends.numpy.float8 import FLOAT8_NATIVE
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.limits import as_int64
from tensorflow_lite_clone.dispatch import hooks


def _references() -> int:
    """What `getrefcount` counts where only a view and a variable hold the view's memory.

    Python's versions differ in whether they count the argument.
    """
    array = np.empty(2)[:1]
    memory = array.base
    return getrefcount(memory)


_REFERENCES = _references()

# PyTorch never warns about infinities and NaNs; NumPy would on every log(0).
np.seterr(all="ignore")
memory.configure_malloc()
memory.translate_errors()

NATIVE = dtypes.Natives(
    {
        dtype: np.dtype(ml_dtypes.bfloat16 if dtype is dtypes.bfloat16 else dtype.name)
        for dtype in dtypes.ALL
    }
)
NATIVE.update(FLOAT8_NATIVE)
primitives.NATIVE.update(NATIVE)
# Whether kernels are compiled, see `backends.numba`.
_NUMBA = os.environ.get("TENSORFLOW_LITE_CLONE_NUMBA") != "0" and find_spec("numba") is not None


class NumpyBackend(Backend):
    """Arrays in host memory."""

    name = "numpy"
    device = Device("cpu")
    xp = np
    primitives = primitives
    array_type = np.ndarray
    native = NATIVE
    dtypes = {native: dtype for dtype, native in NATIVE.items()}
    accelerators = ("numba",) if _NUMBA else ()
    rounds_numbers = False

    def __init__(self) -> None:
        super().__init__()
        self._constants: dict[tuple, Any] = {}

    @cached_property
    def graphs(self) -> Any:
        # Imported when something is compiled.
        from tensorflow_lite_clone.backends.numpy.graphs import Graphs

        return Graphs(self)

    def watch(self, captures: int) -> None:
        """Let what is called for arrays be looked up anew, with so many captures more.

        While there are any it goes on the tape of the thread that captures.
        """
        from tensorflow_lite_clone.backends.numpy import recording

        with hooks.changing:
            self.captures += captures
            if self.captures == captures:
                vars(self).update(recording.methods(self))
                recording.writes.__enter__()
            elif not self.captures:
                for name in recording.methods(self):
                    del vars(self)[name]
                recording.writes.__exit__()
            self.add = self.guarded(add)
            self.add_to = recording.written(iadd) if self.captures else iadd
            self.forget()
            self.F.forget()
            hooks.forget()

    @property
    def generator(self) -> Any:
        # Imported on the first draw: numpy.random takes a tenth of the start-up time.
        from tensorflow_lite_clone.backends.numpy import random

        return random.default_generator

    def make_generator(self) -> Any:
        from tensorflow_lite_clone.backends.numpy import random

        return random.Generator()

    def asarray(self, data: Any, dtype: DType | None = None) -> Any:
        return np.asarray(data, None if dtype is None else NATIVE[dtype])

    def from_host(self, array: Any, non_blocking: bool = False) -> Any:
        return array

    def to_host(self, array: Any, non_blocking: bool = False) -> Any:
        return array

    def shared(self, root: Any, view: Any) -> tuple[Any, Any]:
        # multiprocessing takes as long to import as all the rest.
        from tensorflow_lite_clone.backends.numpy.shared import moved

        return moved(root, view)

    def is_shared(self, array: Any) -> bool:
        from tensorflow_lite_clone.backends.numpy.shared import memory_of

        return memory_of(array) is not None

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return np.empty(shape, NATIVE[dtype])

    def write(self, target: Any, value: Any) -> None:
        if target.dtype.names is not None:  # a dtype of eight bits
            value = primitives.astype(np.asarray(value), target.dtype)
        target[...] = value

    def constant(self, value: complex, native_dtype: Any) -> Any:
        # Converting a Python number costs more than adding eight of them, so arrays of numbers
        # seen before are kept; 0.0 and -0.0, which are equal keys, under their signs.
        key: tuple = (value, native_dtype)
        if not value and type(value) is not int:
            key = (str(value), native_dtype)
        try:
            return self._constants[key]
        except KeyError:
            pass
        try:
            if native_dtype.names is None:
                array = np.array(value, native_dtype)
            else:
                array = primitives.astype(np.array(value), native_dtype)
        except OverflowError:  # torch lets integers wrap around, if they have 64 bits at most
            array = np.array(as_int64(value), np.int64).astype(native_dtype)
        array.setflags(write=False)
        if value == value:
            if len(self._constants) > 1000:
                self._constants.clear()
            self._constants[key] = array
        return array

    def large(self, call: Any, *arrays: Any) -> Any:
        return chunked(call, *arrays)

    def strides(self, array: Any) -> tuple[int, ...]:
        itemsize = array.itemsize
        return tuple([stride // itemsize for stride in array.strides])

    def is_contiguous(self, array: Any) -> bool:
        return array.flags.c_contiguous

    def owns_memory(self, array: Any) -> bool:
        # it is none of ours if a gradient is on its way to another device
        if not isinstance(array, np.ndarray):
            return False
        memory = array.base
        if memory is None:
            return True
        # A new array in another shape: nobody but `array` (and this function) holds its memory.
        return (
            type(memory) is np.ndarray
            and memory.base is None
            and memory.size == array.size
            and array.flags.c_contiguous
            and getrefcount(memory) <= _REFERENCES
        )


_cpu = NumpyBackend()


def backend(index: int) -> Backend:
    """The CPU; there is one, whatever the index."""
    return _cpu

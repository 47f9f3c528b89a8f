"""A CUDA device as a backend: CuPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from operator import add, iadd
from typing import Any

import cupy
import cupyx
import numpy as np
from cupy.cuda.runtime import getDevice as get_device

from tensorflow_lite_clone.backends.base import Backend
from tensorflow_lite_clone.backends.cupy import device_asserts, memory, primitives, runtime
from tensorflow_lite_clone.backends.cupy.arrays import inverse, memory_order
from tensorflow_lite_clone.backends.cupy.events import EventPool
from tensorflow_lite_clone.backends.cupy.fusion import deferred
from tensorflow_lite_clone.backends.cupy.fusion.deferred import chain
from tensorflow_lite_clone.backends.cupy.fusion.formula import formula, in_place
from tensorflow_lite_clone.backends.cupy.graphs import Graphs
from tensorflow_lite_clone.backends.cupy.native import NATIVE
from tensorflow_lite_clone.backends.cupy.random import Generator
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType, bfloat16
from tensorflow_lite_clone.core.limits import as_int64
from tensorflow_lite_clone.core.shape import expect_storage
from tensorflow_lite_clone.dispatch import capture, hooks
from tensorflow_lite_clone.dispatch.op import TABLE, is_op, multiplies_matrices
from tensorflow_lite_clone.dispatch.table import overrides

#: Ops that compute nothing, or by words that sum in float32 themselves
_AS_THEY_ARE = ("transfer", "clone", "sum", "mean")
_f32 = np.dtype(np.float32)
_bf16 = NATIVE[bfloat16]


class CupyBackend(Backend):
    """Arrays in the memory of one CUDA device."""

    name = "cupy"
    xp = cupy
    primitives = primitives
    array_type = cupy.ndarray
    lays = True
    native = NATIVE
    dtypes = {native: dtype for dtype, native in NATIVE.items()}

    def __init__(self, index: int, is_single: bool) -> None:
        self.device = Device("cuda", index)
        self.index = index
        self.alone = is_single  # the machine has no other device
        self._generator: Any = None
        self._formulas: dict[Any, Any] = {}
        self._waiting = 0  # captures in which pointwise kernels wait for each other
        self.graphs = Graphs(index, lambda: self.generator, self.deferring)
        self.events = EventPool(index)
        memory.install()
        device_asserts.prepare()
        super().__init__()
        self._look_up(0)
        cupyx.seterr(linalg="raise")  # singular matrices, as in PyTorch, which reads that back too

    def _look_up(self, captures: int) -> None:
        """Let what is called for arrays be looked up anew, with so many captures more."""
        with hooks.changing:
            self._waiting += captures
            added = self._formula("add", _sum, add)
            add_to = self._in_place(added)
            iadd_to = self.foreign(iadd)
            self.add = self.guarded(added)
            self.add_to = self.guarded(lambda x, y: x if add_to(x, y) else iadd_to(x, y))
            super().forget()
            self.F.forget()
            hooks.forget()

    def forget(self) -> None:
        super().forget()
        self._formulas.clear()

    @contextmanager
    def deferring(self) -> Iterator[None]:
        """A block in which this thread's pointwise kernels wait for those that follow them."""
        self._look_up(1)
        chain.on, chain.here = True, self.here
        hooks.around_gradient.append(deferred.backward)
        hooks.on_launch.append(deferred.launching)
        try:
            yield
            chain.flush()
        finally:
            chain.drop()
            hooks.around_gradient.remove(deferred.backward)
            hooks.on_launch.remove(deferred.launching)
            self._look_up(-1)

    def foreign(self, call: Callable[..., Any], is_view: bool = False) -> Callable[..., Any]:
        if not self._waiting or not callable(call) or isinstance(call, type):
            return call
        return deferred.viewing(call) if is_view else deferred.around(call)

    def _formula(self, name: str, body: Any, generic: Any, kept: tuple[int, ...] = ()) -> Any:
        """`formula`, the same one for the same body; as it waits for others, where it does."""
        key = name, body, generic is None
        made = self._formulas.get(key)
        if made is None:
            made = self._formulas[key] = formula(name, body, generic, kept)
        return deferred.deferring(made) if self._waiting else made

    def _in_place(self, made: Any) -> Any:
        return deferred.deferring_in_place(made) if self._waiting else in_place(made)

    def here(self) -> Any:
        """A context in which this device is CuPy's current one."""
        return nullcontext() if self.alone else cupy.cuda.Device(self.index)

    def guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        if self.alone or not callable(call) or isinstance(call, type):
            return call
        index = self.index

        def on_device(*args: Any, **kwargs: Any) -> Any:
            if get_device() == index:
                return call(*args, **kwargs)
            with cupy.cuda.Device(index):
                return call(*args, **kwargs)

        return on_device

    def adapted(self, op: Any, generic: Callable[..., Any]) -> Callable[..., Any]:
        """bfloat16 formulas run in float32 and are rounded once, as PyTorch's kernels do.

        CuPy would widen them half-way, wherever a Python float occurs. What is composed of matrix
        products is not a formula: it runs as it is written, and each primitive in it takes the
        operands' dtype.
        """
        if getattr(op, "view", False) or op in [TABLE[name] for name in _AS_THEY_ARE]:
            return generic
        if multiplies_matrices(op):
            return generic
        kept = getattr(op, "auxiliary_outputs", ())

        def call(*arrays: Any, **parameters: Any) -> Any:
            if "dtype" in parameters or not any([_is_bfloat16(a) for a in arrays]):
                return generic(*arrays, **parameters)
            result = generic(*[_widened(a) for a in arrays], **parameters)
            if type(result) is not tuple:
                return _rounded(result)
            return tuple([r if i in kept else _rounded(r) for i, r in enumerate(result)])

        return call

    def fused(
        self, name: str, body: Any, generic: Callable[..., Any], kept: tuple[int, ...] = ()
    ) -> Any:
        op = TABLE.get(name)
        if is_op(op) and (op.view or op.variadic):
            return generic
        if is_op(op) and len(op.inputs) == 2:  # one may be a number
            generic = _of_arrays(generic)
        return self.guarded(self._formula(name, body, generic, kept))

    def gradient(self, function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__qualname__.rpartition("<locals>.")[2].replace(".", "_")
        name = "gradient" if "<" in name else name
        plain = _of_arrays(function)
        faster = self._formula(name, function, partial(plain, self.F))
        if self._waiting:
            return lambda F, *arrays, **parameters: faster(*arrays, **parameters)

        def gradient(F: Any, *arrays: Any, **parameters: Any) -> Any:
            if faster.formula.refused:
                self.gradients[function] = plain
            return faster(*arrays, **parameters)

        return gradient

    def writer(self, op: Any) -> Any:
        plain = super().writer(op)
        if plain is not None and self._waiting:
            plain = deferred.writing(plain)
        if op.view or op.variadic or (op.name, self.name) in overrides:
            return self.guarded(plain)
        direct = self._in_place(self._formula(op.name, op.forward, None))
        if plain is None:
            return self.guarded(direct)

        def write(x: Any, *arrays: Any, **parameters: Any) -> Any:
            return direct(x, *arrays, **parameters) or plain(x, *arrays, **parameters)

        return self.guarded(write)

    @property
    def generator(self) -> Any:
        if self._generator is None:
            self._generator = self.make_generator()
        return self._generator

    def make_generator(self) -> Any:
        with self.here():
            return Generator(self)

    def asarray(self, data: Any, dtype: DType | None = None) -> Any:
        with self.here():
            native = None if dtype is None else NATIVE[dtype]
            if isinstance(data, (np.generic, int, float, complex)):
                # filled by a kernel: a copy from the host cannot be captured in a graph
                kind = native or np.asarray(data).dtype
                value: Any = data
                return cupy.full((), float(value) if kind.kind == "V" else value, kind)
            if isinstance(data, cupy.ndarray):
                chain.flush()
                return data if native is None else data.astype(native, copy=False)
            host = np.asarray(data, native)
            capture.crossing("copies from the host", host.nbytes)
            # what is no number is handed back, for the caller to say so
            return cupy.array(host, order="C") if host.dtype in self.dtypes else host

    def from_host(self, array: Any, non_blocking: bool = False) -> Any:
        capture.crossing("copies from the host", array.nbytes)
        order = memory_order(array)
        packed = array if order is None else array.transpose(order)
        with self.here():
            if non_blocking and packed.flags.c_contiguous and memory.is_pinned(packed):
                made = memory.upload(packed)
            else:
                made = cupy.array(packed, order="C")
        return made if order is None else made.transpose(inverse(order))

    def to_host(self, array: Any, non_blocking: bool = False) -> Any:
        capture.crossing("reads a value back", array.nbytes)
        chain.flush()
        order = memory_order(array)
        packed = array if order is None else array.transpose(order)
        with self.here():
            if non_blocking:
                made = memory.download(packed)
            else:
                made = packed.get(order="C")
                device_asserts.raise_reported()
        return made if order is None else made.transpose(inverse(order))

    def receive(self, array: Any, source: Backend, non_blocking: bool = False) -> Any:
        if not isinstance(source, CupyBackend):
            return super().receive(array, source, non_blocking)
        capture.crossing("copies from another device", array.nbytes)
        chain.flush()
        order = memory_order(array)
        packed = array if order is None else array.transpose(order)
        with source.here():
            packed = packed if packed.flags.c_contiguous else packed.copy(order="C")
        made = memory.from_peer(packed, source.index, self.index)
        return made if order is None else made.transpose(inverse(order))

    def pinned(self, array: Any) -> Any:
        order = memory_order(array)
        if order is None:
            return memory.pinned_copy(array)
        return memory.pinned_copy(array.transpose(order)).transpose(inverse(order))

    def is_pinned(self, array: Any) -> bool:
        return memory.is_pinned(array)

    def lend(self, array: Any, stream: Any, index: int | None) -> None:
        chain.flush()
        with self.here():
            runtime.lend(array, stream, index)

    def settled(self, array: Any) -> Any:
        made = self.F.copy(array)
        with self.here():
            runtime.let_all_wait()
        return made

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        native = NATIVE[dtype]
        expect_storage(shape, native.itemsize)
        with self.here():
            return cupy.empty(shape, native)

    def write(self, target: Any, value: Any) -> None:
        chain.flush()
        chain.wrote(target)
        with self.here():
            if value.__class__ is cupy.ndarray and (
                target.dtype == np.uint8 or value.dtype.kind == "c" != target.dtype.kind
            ):
                value = primitives.astype(value, target.dtype)
            target[...] = value

    def constant(self, value: complex, native_dtype: Any) -> Any:
        try:
            return native_dtype.type(value)
        except OverflowError:  # integers wrap around
            return np.asarray(as_int64(value), np.int64).astype(native_dtype)[()]

    def strides(self, array: Any) -> tuple[int, ...]:
        itemsize = array.itemsize
        return tuple([stride // itemsize for stride in array.strides])

    def is_contiguous(self, array: Any) -> bool:
        return array._c_contiguous  # `flags` makes an object first

    def owns_memory(self, array: Any) -> bool:
        if array.__class__ is not cupy.ndarray:
            return False  # a gradient on its way to another device
        return array.base is None and array.data.mem.__class__ is not cupy.cuda.UnownedMemory

    def watch_memory(self, listener: Callable[[int, int], None]) -> Callable[[], None]:
        return memory.listen(self.index, listener)

    def synchronize(self) -> None:
        capture.crossing("waits for the device")
        cupy.cuda.Device(self.index).synchronize()
        device_asserts.raise_reported()


def _sum(F: Any, x: Any, y: Any) -> Any:
    return x + y


def _of_arrays(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call` with numbers of bfloat16 made arrays, without which CuPy does not know them."""

    def with_arrays(*values: Any, **parameters: Any) -> Any:
        for value in values:
            if value.__class__ is _bf16.type:
                values = tuple([_as_array(value) for value in values])
                break
        return call(*values, **parameters)

    return with_arrays


def _as_array(value: Any) -> Any:
    return cupy.full((), float(value), _bf16) if value.__class__ is _bf16.type else value


def _is_bfloat16(value: Any) -> bool:
    """Whether a value is an array of bfloat16, or a list that holds one."""
    if value.__class__ is cupy.ndarray:
        return bool(value.dtype == _bf16)
    return value.__class__ is list and any([_is_bfloat16(x) for x in value])


def _widened(value: Any) -> Any:
    if value.__class__ is list:
        return [_widened(x) for x in value]
    return value.astype(_f32) if _is_bfloat16(value) else value


def _rounded(value: Any) -> Any:
    if value.__class__ is cupy.ndarray and value.dtype == _f32:
        return value.astype(_bf16)
    return value

"""The protocol between the framework and a device.

A backend is an array namespace that follows the array API standard (`xp`), a namespace of the few
primitives that the standard lacks (`primitives`), and the class below. Everything else is generic.
What `primitives` defines besides, where needed, are corrected functions of the standard;
`document` of the records in `dispatch.primitives` says what is expected of it.

Its arrays have `shape`, `dtype` (NumPy's dtypes), `ndim`, `size`, `strides` (only asked whether
some are 0), operators and basic indexing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import add, iadd
from typing import Any

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.raw import Raw

#: The elements of its first array from which on a pointwise op is given to `Backend.large`.
MANY = 1 << 20


class _Made(dict):
    """What a function makes of the keys, made when first asked for."""

    def __init__(self, make: Any) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, key: Any) -> Any:
        with hooks.changing:
            made = self[key] = self.make(key)
        return made


class Backend:
    """One device. `F` is the namespace over its arrays that ops are written in."""

    name: str  # the folder's name; overrides are registered under it
    device: Device
    xp: Any
    primitives: Any
    array_type: type
    dtypes: dict[Any, DType]  # native dtype -> DType
    native: dict[DType, Any]  # DType -> native dtype
    generator: Any  # the default random generator, see backends.numpy.random.Generator
    graphs: Any = None  # how work is captured and replayed, see backends.cupy.graphs.Graphs
    events: Any = None  # how device time is measured, see backends.cupy.events.EventPool
    captures = 0  # that write calls on a tape, see backends.numpy.recording
    accelerators: tuple[str, ...] = ()  # names of more overrides for it; the last is asked first
    lays = False  # whether results may be channels_last where nobody asked, see storage.LazyStorage
    batched = False  # whether its arrays are those of a function under `func.vmap`
    dispatches = False  # whether its arrays are tensors of classes with `__torch_dispatch__`
    alone = True  # whether `guarded` gives back the call itself
    rounds_numbers = True  # whether a number that scales half floats is rounded as they are, first
    has_values = True  # whether arrays have elements: on the meta device they are shapes alone

    def __init__(self) -> None:
        #: What is called in place of the gradient functions of ops, of one input and of several,
        #: and what does ops in place.
        self.gradients = _Made(lambda function: self.gradient(function))
        self.joint_gradients = _Made(lambda function: self.joint_gradient(function))
        self.writers = _Made(lambda op: self.writer(op))
        self.F = Raw(self)
        #: ``x + y`` and ``x += y`` for gradients, which come together outside of any op.
        self.add, self.add_to = self.guarded(add), self.guarded(iadd)

    def asarray(self, data: Any, dtype: DType | None = None) -> Any:
        """A native array of `data` (a native array, host array, scalar or nested sequence)."""
        raise NotImplementedError

    def from_host(self, array: Any, non_blocking: bool = False) -> Any:
        """A native array of a NumPy array's values; may share memory on a host device.

        With `non_blocking` the copy of an array in pinned memory may run beside the program.
        """
        raise NotImplementedError

    def to_host(self, array: Any, non_blocking: bool = False) -> Any:
        """A NumPy array of a native array's values; may share memory on a host device.

        With `non_blocking` the values may be there only when the device is in step again.
        """
        raise NotImplementedError

    def receive(self, array: Any, source: Backend, non_blocking: bool = False) -> Any:
        """A copy of another backend's array on this device."""
        return self.from_host(source.to_host(array, non_blocking), non_blocking)

    def pinned(self, array: Any) -> Any:
        """A NumPy array's copy in page-locked memory of this device's host."""
        raise RuntimeError(f"cannot pin memory for '{self.device}': it has no such memory")

    def is_pinned(self, array: Any) -> bool:
        """Whether a NumPy array lies in page-locked memory."""
        return False

    def shared(self, root: Any, view: Any) -> tuple[Any, Any]:
        """An array and a view of its memory, both moved to memory that other processes see."""
        raise NotImplementedError

    def is_shared(self, array: Any) -> bool:
        """Whether an array lies in memory that other processes see: always on a device."""
        return True

    def lend(self, array: Any, stream: Any, index: int | None) -> None:
        """Keep an array's memory, once nobody holds it, until a stream's work of then is done.

        `index` is the number of the stream's device, None for the array's own.
        """

    def settled(self, array: Any) -> Any:
        """A row-major copy that the program did not ask for, and may use on every stream."""
        return self.F.copy(array)

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        """An uninitialised array."""
        raise NotImplementedError

    def write(self, target: Any, value: Any) -> None:
        """Copy `value` (an array that broadcasts, or a number) into `target`, casting."""
        raise NotImplementedError

    def constant(self, value: complex, native_dtype: Any) -> Any:
        """A Python number as an operand beside arrays of `native_dtype`; never written to.

        Integers that the dtype does not hold wrap around.
        """
        raise NotImplementedError

    def large(self, call: Any, *arrays: Any) -> Any:
        """``call(*arrays)`` of a pointwise op, which threads may do in parts."""
        return call(*arrays)

    def data_pointer(self, array: Any) -> int:
        """The address of the first element, as programs are told it."""
        address: int = self.F.address(array)
        return address

    def strides(self, array: Any) -> tuple[int, ...]:
        """Strides in elements."""
        raise NotImplementedError

    def is_contiguous(self, array: Any) -> bool:
        """Whether elements lie in row-major order without gaps."""
        raise NotImplementedError

    def owns_memory(self, array: Any) -> bool:
        """Whether `array` is no view of another array."""
        raise NotImplementedError

    def differs(self, array: Any) -> bool:
        """Whether the array has values of its own for every sample of `func.vmap`."""
        return False

    def synchronize(self) -> None:
        """Wait until all work queued on the device is done."""

    def watch_memory(self, listener: Any) -> Any:
        """Call ``listener(bytes, address)`` when memory is taken, and with negative bytes when it
        is given back, until the function that this gives is called; None where only arrays tell.
        """
        return None

    def make_generator(self) -> Any:
        """A new random generator for this device."""
        raise NotImplementedError

    def guarded(self, call: Any) -> Any:
        """`call` as it must be called on this device: a machine may have several of its kind.

        Words of F, ops and composites are guarded; what else computes with arrays must be.
        """
        return call

    def adapted(self, op: Any, generic: Any) -> Any:
        """The generic form of an op or composite, as this device has to run it."""
        return generic

    def fused(self, name: str, body: Any, generic: Any, kept: tuple[int, ...] = ()) -> Any:
        """`generic`, the guarded form over arrays of a formula ``body(F, ...)``, or a faster one.

        Results at the places `kept` have a dtype of their own.
        """
        return generic

    def numbers(self, array: Any) -> Any:
        """A host array whose `tolist` gives Python's numbers, of an array of any dtype."""
        host = self.to_host(array)
        return host.astype("float32") if host.dtype.kind == "V" else host

    def number(self, array: Any) -> Any:
        """The Python number that is the one element of an array: the host waits for it."""
        return self.numbers(array).item()

    def foreign(self, call: Callable[..., Any], is_view: bool = False) -> Callable[..., Any]:
        """What runs in place of `call` over arrays, which `fused` has made no faster form of."""
        return call

    def gradient(self, function: Any) -> Any:
        """A gradient ``function(F, g, ...)``, or a faster form of it for arrays."""
        return function

    def joint_gradient(self, function: Any) -> Any:
        """A gradient ``function(F, g, ...)`` for several inputs, as it is called with arrays."""
        return function

    def drawn(self, source: Any) -> Any:
        """A source of random numbers, as it is drawn from outside of ops."""
        return source

    def forget(self) -> None:
        """Drop what was made of formulas: an override may serve a part of them from now on."""
        self.gradients.clear()
        self.joint_gradients.clear()
        self.writers.clear()

    def writer(self, op: Any) -> Any:
        """The guarded ``call(x, *arrays, **parameters)`` that does a pointwise op in x's memory.

        None where there is none. It may return False instead, having done nothing.
        """
        write = getattr(op, "assign", None) or op.write
        if write is None:
            return None
        return self.guarded(write if write is not op.write else partial(write, self.F))

    def __repr__(self) -> str:
        return f"<backend {self.name} for {self.device}>"

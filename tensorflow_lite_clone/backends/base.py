"""The protocol between the framework and a device.

A backend is an array namespace that follows the array API standard (`xp`), a module of the few
words the standard lacks (`kit`), and the class below. Everything else is generic.

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
#: What every kit defines besides, where needed, corrected words of the standard.
KIT = {
    "astype": "(x, dtype, *, copy=False): dtype is native or a DType",
    "as_strided": "(x, shape, strides, offset=0): a view; strides and offset in elements from "
    "x's first element",
    "getitem": "(x, index): like x[index], for any mix of slices, integers, None and arrays",
    "write_at": "(x, index, value): x[index] = value in x's memory; for forwards alone, as the "
    "two below",
    "add_at": "(x, index, value): x[index] += value in x's memory, repeated indices summed",
    "combine_at": "(x, index, value, *, how): likewise for multiply, maximum and minimum",
    "check_index": "(index, size, dim, *, negative=False): IndexError when an index is out of "
    "bounds; may be left to the device",
    "bitcast": "(x, dtype): the same bytes in another native dtype, a view",
    "address": "(x): where the first element lies",
    "copy": "(x): a contiguous copy",
    "sum": "(x, axis, dtype, keepdims): two-byte floats are accumulated in float32 here and in "
    "mean and prod",
    "argsort": "(x, *, axis, descending, stable), as the standard has it; NaN is largest; so sort",
    "arg_kth": "(x, k, *, axis): where the k-th smallest (from 0) is; the axis stays, of length 1",
    "top_k": "(x, k, *, axis, largest): the k largest or smallest, in order, and their places",
    "put_along_axis": "(values, index, *, axis, size): zeros of length `size` along the axis with "
    "the values at the places; the inverse of take_along_axis",
    "searchsorted": "(x1, x2, *, side, sorter): also for rows of the same leading shape",
    "bincount": "(x, weights, *, minlength): weights may be None",
    "check_labels": "(labels, classes, ignored): IndexError for class indices out of range; and "
    "check_range(x, low, high, message): RuntimeError; a device may raise them later",
    "cumulative_max": "(x, *, axis), cumulative_min, cumulative_logsumexp: scans",
    "exp2": "(x), (x, y): fmax, fmin, fmod, gcd, lcm, logaddexp2: as NumPy has them",
    "floor_divide": "(x, y), remainder, fmod: as Python at infinities, where the standard prefers "
    "others; a host raises RuntimeError for an integer divided by zero, a device need not",
    "pow": "(x, y): as the standard's, but integers to negative powers are truncated",
    "sgn": "(x): as the standard's sign, but real NaNs have sign 0; booleans are their own",
    "clip": "(x, min, max): as the standard's; NaN stays NaN",
    "frexp": "(x): mantissa and exponent, int32",
    "make_complex": "(real, imag): infinities and NaNs stay in their part",
    "erf": "(x), erfc, erfcx, erfinv, lgamma, digamma, ndtri, log_ndtr, i0, i0e, i1, "
    "i1e, polygamma (x, *, n)",
    "j0": "(x), j1, y0, y1, k0, k0e, k1, k1e, airy_ai: float32 and float64 only; as PyTorch at "
    "infinity",
    "igamma": "(a, x), igammac (a, x), zeta (s, q): two floating arrays of one dtype; as PyTorch "
    "at infinity",
    "polynomial": "(x, n, *, kind): kind is a family and a letter, such as 'hermite_he'",
    "cholesky": "(x): lower factors, of the lower triangles, and info; info, here and below, is "
    "int32, per matrix: 0, or the place (from 1) of the pivot that did not allow to go on",
    "lu_factor": "(x): L (without its diagonal) and U in one array, pivots (int32, from 1) as "
    "LAPACK's getrf chooses them, and info",
    "lu_permutation": "(pivots, size): the row of A, int64, that each row of L U is",
    "solve": "(a, b): x with a x = b and info; b has columns, shapes before the matrices broadcast",
    "solve_triangular": "(a, b, *, upper, unitriangular): x; no complaint about zeros",
    "ldl_factor": "(x, *, hermitian): L and D in one array, of the lower triangle, pivots as "
    "LAPACK's sytrf has them, and info",
    "ldl_solve": "(ld, pivots, b, *, hermitian): x for what ldl_factor gave",
    "eigen": "(x): the complex eigenvalues and eigenvectors of square matrices; eigenvalues(x); "
    "ValueError for infinities and NaN",
    "geqrf": "(x): LAPACK's QR decomposition, the matrices and tau",
    "singular_values": "(x): those of matrices, falling",
}


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
    kit: Any
    array_type: type
    dtypes: dict[Any, DType]  # native dtype -> DType
    native: dict[DType, Any]  # DType -> native dtype
    generator: Any  # the default random generator, see backends.numpy.random.Generator
    graphs: Any = None  # how work is captured and replayed, see backends.cupy.graphs.Graphs
    marks: Any = None  # how device time is measured, see backends.cupy.marks.Marks
    captures = 0  # that write calls on a tape, see backends.numpy.recording
    accelerators: tuple[str, ...] = ()  # names of more overrides for it; the last is asked first
    lays = False  # whether its results may be channels_last where nobody asked, see storage.Free
    batched = False  # whether its arrays are those of a function under `func.vmap`
    alone = True  # whether `guarded` gives back the call itself

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

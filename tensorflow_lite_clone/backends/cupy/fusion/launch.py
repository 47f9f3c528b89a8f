"""Launches of pointwise kernels, prepared once for the dtypes, shapes and strides of operands."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from struct import Struct
from threading import Lock
from typing import Any

import cupy
import numpy as np
from cupy import ndarray
from cupy.cuda import alloc, get_current_stream
from cupy.cuda.runtime import free
from cupy_backends.cuda.api.driver import CUDADriverError
from cupy_backends.cuda.api.driver import launchKernel as launch

from tensorflow_lite_clone.backends.cupy import kit
from tensorflow_lite_clone.backends.cupy.fusion.expression import (
    FLOAT32,
    Namespace,
    Trace,
    Unchanged,
    trace,
)
from tensorflow_lite_clone.backends.cupy.fusion.layout import Walk, reach, walk, width
from tensorflow_lite_clone.backends.cupy.fusion.source import BLOCK, Form, write
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.kernels.sources import Source, package_folder

_F = Namespace(cupy, kit)
_launches = hooks.launches
_OPTIONS = ("-std=c++17",)
_INVALID_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT of the driver
_LARGE = 1 << 18  # elements from which on a thread takes several packs
_MOST_PLANS = 4096  # of one formula; then it begins anew
_MOST_FAILURES = 8  # after which a formula that never was pointwise is not traced any more
_CODES = {"b": "?", "f4": "f", "f8": "d", "i1": "b", "i2": "h", "i4": "i", "i8": "q"}
_CODES |= {f"u{size}": code for size, code in (("1", "B"), ("2", "H"), ("4", "I"), ("8", "Q"))}


def _code(dtype: Any) -> str:
    """How `struct` packs a number of a dtype."""
    return "?" if dtype.kind == "b" else _CODES[dtype.kind + str(dtype.itemsize)]


@cache
def _header() -> str:
    return Source(package_folder() / "pointwise.cuh").text


@cache
def _function(name: str, code: str) -> Any:
    """CuPy's kernel of a source, compiled."""
    text = code.replace('#include "pointwise.cuh"', _header())
    kernel = cupy.RawModule(code=text, options=_OPTIONS).get_function(name)
    kernel.num_regs  # noqa: B018  compiles now
    return kernel


class Plan:
    """A kernel with all of its arguments but the addresses of arrays and the numbers given."""

    __slots__ = (
        "_address", "_dtype", "_extra", "_grid", "_keep", "_lock", "_name", "_nbytes", "_pack",
        "_places", "_results", "_shape", "_strides", "other",
    )  # fmt: skip

    other: Plan | None  # for memory that is not aligned to 16 bytes

    def __init__(self, name: str, made: Trace, kinds: tuple, walked: Walk, form: Form) -> None:
        self.other = None
        self._name = name
        self._results = [(dtype, walked.count * dtype.itemsize) for dtype in form.results]
        self._dtype, self._nbytes = self._results[0]
        self._shape = walked.shape
        contiguous = _contiguous(walked.shape)
        self._strides = None if walked.strides == contiguous else walked.strides
        used = [symbol.value for symbol in made.operands]
        arrays = [place for place in used if not form.numbers[place]]
        numbers = [place for place in used if form.numbers[place]]
        self._places = (tuple(arrays), tuple(numbers))
        if not walked.count:
            self._address = 0
            return
        text = write(name, made, form)
        self._address = _function(text.name, text.code).kernel.ptr
        per_block = BLOCK * form.width * form.packs
        self._grid = -(-walked.count // per_block)
        codes = "P" * (len(arrays) + len(form.results))
        dtypes = {symbol.value: symbol.dtype for symbol in made.operands}
        codes += "".join([_code(dtypes[place]) for place in numbers])
        front = Struct("@" + codes)
        self._pack = front.pack_into
        static: list[Any] = [value for _, value in text.constants]
        codes += "".join([_BY_TYPE[kind] for kind, _ in text.constants]) + "q"
        static.append(walked.count)
        if not form.flat:
            index = "q" if form.wide else "i"
            sizes = list(walked.sizes[:-1])
            if sizes:
                sizes[0] //= form.width
            codes += index * len(sizes)
            static += sizes
            for steps, kept in zip(walked.steps, form.steps):
                given = [step for step, kind in zip(steps, kept) if kind == 2]
                codes += index * len(given)
                static += given
        whole = Struct("@" + codes)
        buffer = ctypes.create_string_buffer(whole.size)
        blank = [0] * (len(arrays) + len(form.results) + len(numbers))
        whole.pack_into(buffer, 0, *blank, *static)
        size = ctypes.c_size_t(whole.size)
        # CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END of cuda.h
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 0)
        self._keep = buffer, size, extra
        self._extra = ctypes.addressof(extra)
        self._lock = Lock()  # from packing to the end of the launch

    def empty(self, dtype: Any, nbytes: int) -> Any:
        """A new result."""
        if self._strides is None:
            return ndarray(self._shape, dtype)
        itemsize = dtype.itemsize
        strides = [step * itemsize for step in self._strides]
        return ndarray(self._shape, dtype, alloc(nbytes), strides)

    def run(self, arrays: tuple) -> Any:
        """The result, or the tuple of results."""
        if len(self._results) == 1:
            made = self.empty(self._dtype, self._nbytes)
            self.into(arrays, (made,))
            return made
        several = tuple([self.empty(dtype, nbytes) for dtype, nbytes in self._results])
        self.into(arrays, several)
        return several

    def into(self, arrays: tuple, results: tuple) -> None:
        """Compute into arrays that are there."""
        if not self._address:
            return
        places, numbers = self._places
        values = [arrays[place].data.ptr for place in places]
        for result in results:
            values.append(result.data.ptr)
        if self.other is not None:
            bits = 0
            for value in values:
                bits |= value
            if bits & 15:
                self.other.into(arrays, results)
                return
        for place in numbers:
            values.append(arrays[place])
        launched = ()
        if _launches:
            launched = [told(self._name, "", (self._grid,), (BLOCK,)) for told in _launches]
        stream = get_current_stream().ptr
        with self._lock:
            self._pack(self._keep[0], 0, *values)
            try:
                launch(self._address, self._grid, 1, 1, BLOCK, 1, 1, 0, stream, 0, self._extra)
            except CUDADriverError as error:
                if error.status != _INVALID_CONTEXT:
                    raise
                free(0)  # this thread has not used the device before: now it has
                launch(self._address, self._grid, 1, 1, BLOCK, 1, 1, 0, stream, 0, self._extra)
        for end in launched:
            end()


_BY_TYPE = {
    "bool": "?", "float": "f", "double": "d", "signed char": "b", "short": "h", "int": "i",
    "long long": "q", "unsigned char": "B", "unsigned short": "H", "unsigned int": "I",
    "unsigned long long": "Q",
}  # fmt: skip


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


class Formula:
    """A formula with its traces and plans on one device; calling it is `call`."""

    def __init__(
        self, name: str, body: Callable[..., Any], generic: Callable[..., Any], kept: tuple
    ) -> None:
        self.name, self.body, self.generic, self.kept = name, body, generic, kept
        self.plans: dict[Any, Plan | None] = {}
        self._traces: dict[Any, Trace | None] = {}
        self._failures = 0
        self.refused = False  # it is not pointwise

    def plan(self, key: Any, arrays: tuple, parameters: dict, out: Any = None) -> Plan | None:
        """The plan for operands, None where the generic form has to run; kept under `key`."""
        if len(self.plans) >= _MOST_PLANS:
            self.plans.clear()
        made = self.plans[key] = self._prepare(arrays, parameters, out)
        return made

    def _prepare(self, arrays: tuple, parameters: dict, out: Any) -> Plan | None:
        kinds: list[Any] = []
        for value in arrays:
            if value is None:
                kinds.append(None)
            elif value.__class__ is ndarray or isinstance(value, np.generic):
                kinds.append(value.dtype)
                if value.dtype.kind == "V" and value.__class__ is not ndarray:
                    return None
            else:
                return None
        given = [value for value in arrays if value.__class__ is ndarray]
        if not given:
            return None
        made = self._traced(tuple(kinds), parameters)
        if made is None:
            return None
        numbers = tuple([isinstance(value, np.generic) for value in arrays])
        narrow = self._narrow(kinds)
        results = []
        for place, symbol in enumerate(made.results):
            dtype = symbol.dtype
            if dtype == FLOAT32 and narrow is not None and place not in self.kept:
                dtype = narrow
            results.append(dtype)
        operands = [
            value
            for value in (arrays[s.value] for s in made.operands)
            if value.__class__ is ndarray
        ]
        shapes = [value.shape for value in operands]
        strides = [tuple([step // value.itemsize for step in value.strides]) for value in operands]
        where = None
        if out is not None:
            if len(results) > 1 or out.dtype != results[0]:
                return None
            where = out.shape, tuple([step // out.itemsize for step in out.strides])
            if any([not step and size > 1 for size, step in zip(*where)]):
                return None
        walked = walk(shapes, strides, len(results), where)
        if where is not None and walked.shape != out.shape:
            return None
        itemsizes = [value.itemsize for value in operands] + [dtype.itemsize for dtype in results]
        steps = tuple(
            [tuple([step if step in (0, 1) else 2 for step in own]) for own in walked.steps]
        )
        many = width(walked, itemsizes)
        runs = sum([own == (1,) for own in steps[: len(operands)]])
        packs = max(1, 4 // max(runs, 1)) if walked.flat and walked.count >= _LARGE else 1
        form = Form(
            tuple(kinds), tuple(results), numbers, steps, len(walked.sizes), many, packs,
            reach(walked) >= 1 << 31,
        )  # fmt: skip
        plan = Plan(self.name, made, tuple(kinds), walked, form)
        if many > 1:
            plan.other = Plan(
                self.name, made, tuple(kinds), walked, form._replace(width=1, packs=1)
            )
        return plan

    def _narrow(self, kinds: list) -> Any:
        """The two-byte float that all floating operands are of, or None."""
        floats = {kind for kind in kinds if kind is not None and kind.kind in "fV"}
        only = floats.pop() if len(floats) == 1 else None
        return only if only is not None and only.itemsize == 2 else None

    def _traced(self, kinds: tuple, parameters: dict) -> Trace | None:
        key = (kinds, *_fixed(parameters))
        try:
            return self._traces[key]
        except KeyError:
            pass
        if len(self._traces) >= _MOST_PLANS:
            self._traces.clear()
        widened = "dtype" not in parameters
        floats = {kind for kind in kinds if kind is not None and kind.kind in "fV"}
        made: Trace | None = None
        mixed = len(floats) > 1 and any([kind.itemsize == 2 for kind in floats])
        try:
            if not mixed:
                made = trace(self.body, _F, kinds, parameters, widened=widened)
        except Unchanged:
            self.refused = True
        except Exception:  # whatever it is, the generic form says it again
            made = None
        if made is None and not mixed:
            self._failures += 1
            known = [entry for entry in self._traces.values() if entry is not None]
            self.refused = self.refused or (self._failures >= _MOST_FAILURES and not known)
        self._traces[key] = made
        return made


def _fixed(parameters: dict) -> tuple:
    """Parameters as a key; equal numbers of different types, and signed zeros, are told apart."""
    return tuple([(name, type(v), v or repr(v)) for name, v in parameters.items()])


def formula(
    name: str, body: Callable[..., Any], generic: Callable[..., Any], kept: tuple = ()
) -> Callable[..., Any]:
    """`generic` (over arrays), as one kernel wherever `body`, the same over ``F``, is pointwise.

    Results of float32 at the places `kept` are not rounded for two-byte operands.
    """
    made = Formula(name, body, generic, kept)
    plans = made.plans

    def call(*arrays: Any, **parameters: Any) -> Any:
        if made.refused:
            return generic(*arrays, **parameters)
        key: Any = tuple(
            [
                (a.dtype, a.shape, a.strides) if a.__class__ is ndarray else a.__class__
                for a in arrays
            ]
        )
        if parameters:
            key = (*key, *_fixed(parameters))
        try:
            plan = plans[key]
        except KeyError:
            plan = made.plan(key, arrays, parameters)
        except TypeError:  # a parameter that has no hash
            plan = None
        if plan is None:
            return generic(*arrays, **parameters)
        return plan.run(arrays)

    call.formula = made  # type: ignore[attr-defined]
    return call


def into(call: Any, out: Any, *arrays: Any, **parameters: Any) -> bool:
    """Let what `formula` gave write its one result into `out`; False if it cannot."""
    made = call.formula
    if made.refused:
        return False
    key: Any = [
        (a.dtype, a.shape, a.strides) if a.__class__ is ndarray else a.__class__
        for a in (out, *arrays)
    ]
    try:
        key = ("into", *key, *_fixed(parameters))
        plan = made.plans[key]
    except KeyError:
        plan = made.plan(key, arrays, parameters, out)
    except TypeError:
        plan = None
    if plan is None:
        return False
    memory = out.data.mem
    for value in arrays:
        if value is not out and value.__class__ is ndarray and value.data.mem is memory:
            return False  # elements might be overwritten before they are read
    plan.into(arrays, (out,))
    return True

"""Launches of pointwise kernels, prepared once for the dtypes, shapes and strides of operands."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial
from math import prod
from struct import Struct
from threading import Lock
from typing import Any

import cupy
import numpy as np
from cupy import ndarray
from cupy.cuda import alloc, get_current_stream

from tensorflow_lite_clone.backends.cupy import kit
from tensorflow_lite_clone.backends.cupy.fusion.expression import (
    FLOAT32,
    Namespace,
    Trace,
    Unchanged,
    operands_of,
    trace,
)
from tensorflow_lite_clone.backends.cupy.fusion.layout import (
    Walk,
    contiguous,
    reach,
    walk,
    width,
)
from tensorflow_lite_clone.backends.cupy.fusion.source import BLOCK, Form, Text, c_type, write
from tensorflow_lite_clone.backends.cupy.kernel import OPTIONS, launch_packed
from tensorflow_lite_clone.backends.cupy.native import NATIVE
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.kernels.sources import Source, package_folder

_F = Namespace(cupy, kit)
_launches = hooks.launches
LARGE = 1 << 18  # elements from which on a thread takes several packs
_MOST_RUNS = 4096  # that are kept of one formula; then it begins anew
#: C type -> how `struct` packs it; its native alignment is that of CUDA's parameters
_BY_TYPE = {
    "bool": "?", "float": "f", "double": "d", "signed char": "b", "short": "h", "int": "i",
    "long long": "q", "unsigned char": "B", "unsigned short": "H", "unsigned int": "I",
    "unsigned long long": "Q",
}  # fmt: skip
#: Classes of what kernels take; arrays of subclasses are more than their strides tell
_SERVED = frozenset([ndarray, *[native.type for native in NATIVE.values()]])
_MOST_FAILURES = 8  # after which a formula that never was pointwise is not traced any more


def _code(dtype: Any) -> str:
    """How `struct` packs a number of a dtype."""
    return _BY_TYPE[c_type(dtype)]


@cache
def _header() -> str:
    return Source(package_folder() / "pointwise.cuh").text


@cache
def _function(name: str, code: str) -> Any:
    """CuPy's kernel of a source, compiled."""
    text = code.replace('#include "pointwise.cuh"', _header())
    kernel = cupy.RawModule(code=text, options=OPTIONS).get_function(name)
    kernel.num_regs  # noqa: B018  compiles now
    return kernel


def _launcher(name: str, text: Text, front: str, static: Struct, values: list, blocks: int) -> Any:
    """A function that launches a kernel, of the arguments that `front` packs.

    Those that `static` packs after them stay what `values` are.
    """
    address = _function(text.name, text.code).kernel.ptr
    buffer = ctypes.create_string_buffer(static.size)
    moving = Struct("@" + front)
    static.pack_into(buffer, 0, *[0] * len(front), *values)
    size = ctypes.c_size_t(static.size)
    # CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END of cuda.h
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 0)
    extra_at, pack = ctypes.addressof(extra), moving.pack_into
    lock = Lock()  # from packing to the end of the launch

    def fire(*arguments: Any) -> None:
        launched = _launches and [told(name, "", (blocks,), (BLOCK,)) for told in _launches]
        stream = get_current_stream().ptr
        with lock:
            pack(buffer, 0, *arguments)
            launch_packed(address, blocks, 1, 1, BLOCK, 1, 1, 0, stream, 0, extra_at)
        for end in launched:
            end()

    fire.keeps = size, extra  # type: ignore[attr-defined]  what the addresses are of
    return fire


def prepared(name: str, made: Trace, walked: Walk, form: Form) -> Any:
    """A function of addresses (of operands, then results) and numbers that runs a trace."""
    used = [symbol.value for symbol in made.operands]
    numbers = [symbol for symbol in made.operands if form.numbers[symbol.value]]
    front = "P" * (len(used) - len(numbers) + len(form.results))
    front += "".join([_code(symbol.dtype) for symbol in numbers])
    text = write(name, made, form)
    codes = "".join([_BY_TYPE[kind] for kind, _ in text.constants]) + "q"
    values: list[Any] = [*[value for _, value in text.constants], walked.count]
    if not form.flat:
        sizes = list(walked.sizes[:-1])
        if sizes:
            sizes[0] //= form.width
        values += sizes
        for steps, kept in zip(walked.steps, form.steps):
            values += [step for step, kind in zip(steps, kept) if kind == 2]
        codes += ("q" if form.wide else "i") * (len(values) - len(codes))
    blocks = -(-walked.count // (BLOCK * form.width * form.packs))
    return _launcher(name, text, front, Struct("@" + front + codes), values, blocks)


def _late(*arguments: Any) -> Any:
    """What `prepared` gives, prepared when it is first called."""
    made: list[Any] = []

    def fire(*values: Any) -> None:
        if not made:
            made.append(prepared(*arguments))
        made[0](*values)

    return fire


def new_array(shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None) -> Any:
    """An uninitialised result, contiguous, or with strides in elements that leave no gaps."""
    if strides is None:
        return ndarray(shape, dtype)
    itemsize = dtype.itemsize
    nbytes = itemsize * prod(shape)
    return ndarray(shape, dtype, alloc(nbytes), [step * itemsize for step in strides])


class Plan:
    """What is ready to be launched for operands of certain dtypes, shapes and strides.

    ``run(*operands)`` gives the result or results, ``into(operands, results)`` writes them.
    """

    __slots__ = ("_fire", "_other", "_places", "into", "run")

    def __init__(self, name: str, made: Trace, walked: Walk, form: Form) -> None:
        used = [symbol.value for symbol in made.operands]
        self._places = (
            [place for place in used if not form.numbers[place]],
            [place for place in used if form.numbers[place]],
        )
        self._other = None  # for memory that is not aligned to 16 bytes
        strides = None if walked.strides == contiguous(walked.shape) else walked.strides
        news = [partial(new_array, walked.shape, dtype, strides) for dtype in form.results]
        if not walked.count:
            self.into = lambda operands, results: None
        else:
            self._fire = prepared(name, made, walked, form)
            if form.width > 1:
                self._other = _late(name, made, walked, form._replace(width=1, packs=1))
            self.into = self._into
        self.run = self._runner(news, form, walked.count)

    def _into(self, operands: tuple, results: tuple) -> None:
        places, numbers = self._places
        values = [operands[place].data.ptr for place in places]
        values += [result.data.ptr for result in results]
        fire = self._fire
        if self._other is not None and any([value & 15 for value in values]):
            fire = self._other
        fire(*values, *[operands[place] for place in numbers])

    def _runner(self, news: list, form: Form, count: int) -> Any:
        if len(news) > 1:

            def several(*operands: Any) -> tuple:
                results = tuple([new() for new in news])
                self.into(operands, results)
                return results

            return several
        new = news[0]
        if new.args[2] is None:
            new = partial(ndarray, *new.args[:2])  # which takes no detours
        if count and self._places == ([0], []) and len(form.numbers) == 1:
            fire, other = self._fire, self._other or self._fire

            def one(x: Any) -> Any:
                result = new()
                address = x.data.ptr
                (other if address & 15 else fire)(address, result.data.ptr)
                return result

            return one
        if count and self._places == ([0], [1]) and len(form.numbers) == 2:
            fire, other = self._fire, self._other or self._fire

            def scaled(x: Any, y: Any) -> Any:
                result = new()
                address = x.data.ptr
                (other if address & 15 else fire)(address, result.data.ptr, y)
                return result

            return scaled
        if count and self._places == ([0, 1], []) and len(form.numbers) == 2:
            fire, other = self._fire, self._other or self._fire

            def two(x: Any, y: Any) -> Any:
                result = new()
                a, b = x.data.ptr, y.data.ptr
                (other if (a | b) & 15 else fire)(a, b, result.data.ptr)
                return result

            return two

        def any_(*operands: Any) -> Any:
            result = new()
            self.into(operands, (result,))
            return result

        return any_


class Formula:
    """A formula on one device: its traces by dtypes, what runs it by dtypes, shapes and strides."""

    def __init__(
        self,
        name: str,
        body: Callable[..., Any],
        generic: Callable[..., Any],
        kept: tuple,
        like: int | None = None,
    ) -> None:
        self.name, self.body, self.generic, self.kept = name, body, generic, kept
        self.like = like
        self.runs: dict[Any, Any] = {}
        self._traces: dict[Any, Trace | None] = {}
        self._failures = 0
        self.refused = False  # it is not pointwise

    def prepare(self, key: Any, arrays: tuple, parameters: dict, out: Any = None) -> Any:
        """What gives the results, the generic form if need be; from now on under `key`.

        With `out` what writes into such an array, None if nothing does.
        """
        if len(self.runs) >= _MOST_RUNS:
            self.runs.clear()
        formed = self.formed(arrays, parameters, out)
        plan = None if formed is None else Plan(self.name, *formed)
        if out is None:
            run = self.generic if plan is None else plan.run
        else:
            run = None if plan is None else plan.into
        self.runs[key] = run
        return run

    def formed(
        self, arrays: tuple, parameters: dict, out: Any = None
    ) -> tuple[Trace, Walk, Form] | None:
        """What a plan for these operands (and the result `out`) is made of; None without one."""
        if not all([a is None or isinstance(a, (ndarray, np.generic)) for a in arrays]):
            return None
        kinds = tuple([None if value is None else value.dtype for value in arrays])
        shapes = tuple([None if value is None else value.shape for value in arrays])
        made = self._traced(kinds, shapes, parameters)
        if made is None:
            return None
        used = [arrays[symbol.value] for symbol in made.operands]
        operands = [value for value in used if value.__class__ is ndarray]
        if not operands or any([value.__class__ not in _SERVED for value in used]):
            return None
        narrow = None if "dtype" in parameters else _narrow(kinds)
        if self.like is not None:
            narrow = kinds[self.like]
        results = tuple(
            [
                narrow if narrow and symbol.dtype == FLOAT32 and place not in self.kept
                else symbol.dtype
                for place, symbol in enumerate(made.results)
            ]
        )  # fmt: skip
        where = None if out is None else (out.shape, _steps(out))
        if where is not None and (len(results) > 1 or out.dtype != results[0] or _shares(*where)):
            return None
        # Gradients lie as what they are gradients of, not as what they come from.
        leader = int(made.names[0] == "g" and len(operands) > 1)
        each = [value.shape for value in operands]
        walked = walk(each, [_steps(value) for value in operands], len(results), where, leader)
        if where is not None and walked.shape != out.shape:
            return None
        if len(results) > 1 and any(
            [
                np.broadcast_shapes(*[shapes[symbol.value] for symbol in operands_of((result,))])
                != walked.shape
                for result in made.results
            ]
        ):
            return None
        steps = tuple(
            [tuple([step if step in (0, 1) else 2 for step in own]) for own in walked.steps]
        )
        runs = [own for own in steps[: len(operands)] if own == (1,)]
        large = walked.flat and walked.count >= LARGE
        form = Form(
            operands=kinds,
            results=results,
            numbers=tuple([isinstance(value, np.generic) for value in arrays]),
            steps=steps,
            axes=len(walked.sizes),
            width=width(walked, [value.itemsize for value in (*operands, *results)]),
            packs=max(1, 4 // max(len(runs), 1)) if large else 1,
            wide=reach(walked) >= 1 << 31,
        )
        return made, walked, form

    def _traced(self, kinds: tuple, shapes: tuple, parameters: dict) -> Trace | None:
        key: Any = (kinds, *_fixed(parameters))
        for known in (key, (key, shapes)):
            if known in self._traces:
                return self._traces[known]
        if len(self._traces) >= _MOST_RUNS:
            self._traces.clear()
        widened = "dtype" not in parameters
        floats = _floats(kinds)
        made: Trace | None = None
        mixed = len(floats) > 1 and any([kind.itemsize == 2 for kind in floats])
        mixed = mixed and self.like is None
        try:
            if not mixed:
                made = trace(self.body, _F, kinds, shapes, parameters, widened=widened)
        except Unchanged:
            self.refused = True
        except Exception:  # whatever it is, the generic form says it again
            made = None
        if made is None and not mixed:
            self._failures += 1
            known = [entry for entry in self._traces.values() if entry is not None]
            self.refused = self.refused or (self._failures >= _MOST_FAILURES and not known)
        self._traces[(key, shapes) if made is not None and made.by_shape else key] = made
        return made


def _floats(kinds: tuple) -> set:
    return {kind for kind in kinds if kind is not None and kind.kind in "fV"}


def _narrow(kinds: tuple) -> Any:
    """The two-byte float that all floating operands are of, or None."""
    floats = _floats(kinds)
    only = floats.pop() if len(floats) == 1 else None
    return only if only is not None and only.itemsize == 2 else None


def _steps(array: Any) -> tuple[int, ...]:
    """Strides in elements."""
    itemsize = array.itemsize
    return tuple([stride // itemsize for stride in array.strides])


def _shares(shape: tuple, steps: tuple) -> bool:
    """Whether several elements share a place in memory."""
    return any([not step and size > 1 for size, step in zip(shape, steps)])


def _fixed(parameters: dict) -> tuple:
    """Parameters as a key; equal numbers of different types, and signed zeros, are told apart."""
    return tuple([(name, type(v), v or repr(v)) for name, v in parameters.items()])


def formula(
    name: str,
    body: Callable[..., Any],
    generic: Callable[..., Any],
    kept: tuple = (),
    like: int | None = None,
) -> Callable[..., Any]:
    """`generic` (over arrays), as one kernel wherever `body`, the same over ``F``, is pointwise.

    Results of float32 at the places `kept` are not rounded for two-byte operands. `like`: results
    of float32 are rounded to the dtype of this operand, whatever the others are of.
    """
    made = Formula(name, body, generic, kept, like)
    runs = made.runs

    def call(*arrays: Any, **parameters: Any) -> Any:
        if made.refused:
            return generic(*arrays, **parameters)
        try:
            key = _key(arrays, parameters)
            run = runs[key]
        except KeyError:
            run = made.prepare(key, arrays, parameters)
        except TypeError:  # a parameter that has no hash
            run = generic
        if parameters and run is not generic:
            return run(*arrays)
        return run(*arrays, **parameters)

    def of_one(x: Any, **parameters: Any) -> Any:
        if parameters:
            return call(x, **parameters)
        try:
            run = runs[x.__class__, x.dtype, x.shape, x.strides]
        except (KeyError, AttributeError):
            return call(x)
        return run(x)

    def of_two(x: Any, y: Any, **parameters: Any) -> Any:
        if parameters:
            return call(x, y, **parameters)
        try:
            run = runs[
                x.__class__, x.dtype, x.shape, x.strides, y.__class__, y.dtype, y.shape, y.strides
            ]
        except (KeyError, AttributeError):
            return call(x, y)
        return run(x, y)

    several = body.__code__.co_flags & 4  # it takes *args
    chosen: Any = {2: of_one, 3: of_two}.get(0 if several else body.__code__.co_argcount, call)
    chosen.formula = made
    return chosen


def in_place(call: Any) -> Callable[..., bool]:
    """``write(x, *operands, **parameters)``: what `formula` gave, of x and the operands, into x.

    It gives False, and does nothing, where that cannot be done element by element.
    """
    made = call.formula
    runs = made.runs

    def write(x: Any, *others: Any, **parameters: Any) -> bool:
        if made.refused:
            return False
        try:
            key = x.dtype, x.shape, x.strides, *_key(others, parameters)
            run = runs[key]
        except KeyError:
            run = made.prepare(key, (x, *others), parameters, x)
        except TypeError:  # a parameter that has no hash
            return False
        if run is None:
            return False
        if others:
            memory = x.data.mem
            for value in others:
                if value.__class__ is ndarray and value.data.mem is memory and value is not x:
                    return False  # elements might be overwritten before they are read
        run((x, *others), (x,))
        return True

    return write


def _key(arrays: tuple, parameters: dict) -> tuple:
    key: list[Any] = []
    for value in arrays:
        kind = value.__class__
        if kind is ndarray or isinstance(value, np.generic):
            key += (kind, value.dtype, value.shape, value.strides)
        else:
            key.append(kind)
    return (*key, *_fixed(parameters))

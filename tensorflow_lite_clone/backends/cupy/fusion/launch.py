"""Launches of pointwise kernels, prepared once for the dtypes, shapes and strides of operands."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from math import prod
from struct import Struct
from threading import Lock
from typing import Any

import cupy
from cupy import ndarray
from cupy.cuda import alloc, get_current_stream

from tensorflow_lite_clone.backends.cupy.arrays import ceil_div, power_above
from tensorflow_lite_clone.backends.cupy.device_facts import here
from tensorflow_lite_clone.backends.cupy.fusion.layout import Walk
from tensorflow_lite_clone.backends.cupy.fusion.source import (
    BLOCK,
    RESIDENT,
    Form,
    Text,
    c_type,
    write,
)
from tensorflow_lite_clone.backends.cupy.kernel import (
    OPTIONS,
    CUDADriverError,
    launch,
    launch_again,
    unknown,
)
from tensorflow_lite_clone.backends.cupy.signature import CODES
from tensorflow_lite_clone.core.shape import contiguous_strides
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.fuse.formula import Trace
from tensorflow_lite_clone.kernels.sources import Source, package_folder

_launches = hooks.on_launch
_ROWS = 8  # that a thread sums at least
#: Each is called with a kernel before it is launched, while `hooks.on_launch` are told of it.
on_generated_launch: list[Callable[[Text], None]] = []


@cache
def header() -> str:
    """The header that generated kernels include, with its own."""
    return Source(package_folder() / "pointwise.cuh").text


@cache
def _function(name: str, code: str) -> Any:
    """CuPy's kernel of a source, compiled."""
    text = code.replace('#include "pointwise.cuh"', header())
    kernel = cupy.RawModule(code=text, options=OPTIONS).get_function(name)
    kernel.num_regs  # noqa: B018  compiles now
    return kernel


def launcher(name: str, text: Text, front: str, static: Struct, values: list, blocks: int) -> Any:
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

    def fire(*arguments: Any, kept: Any = (size, extra)) -> None:  # to which addresses lead
        launched: Any = ()
        if _launches:
            for watcher in tuple(on_generated_launch):
                watcher(text)
            launched = hooks.tell_launch(text.name, "", (blocks,), (BLOCK,))
        unknown()
        stream = get_current_stream().ptr
        with lock:
            pack(buffer, 0, *arguments)
            try:
                launch(address, blocks, 1, 1, BLOCK, 1, 1, 0, stream, 0, extra_at)
            except CUDADriverError as error:
                launch_again(error, address, blocks, 1, 1, BLOCK, 1, 1, 0, stream, 0, extra_at)
        for end in launched:
            end()

    return fire


def _front(made: Trace, form: Form, sums: int = 0) -> str:
    """How addresses and numbers are packed."""
    kinds = ["P" for symbol in made.operands if not form.numbers[symbol.value]]
    kinds += ["P"] * (len(form.results) + sums)
    kinds += [CODES[c_type(s.dtype)] for s in made.operands if form.numbers[s.value]]
    return "".join(kinds)


def prepared(name: str, made: Trace, walked: Walk, form: Form) -> Any:
    """A function of addresses (of operands, then results) and numbers that runs a trace."""
    front = _front(made, form)
    text = write(name, made, form)
    codes = "".join([CODES[kind] for kind, _ in text.constants]) + "q"
    values: list[Any] = [*[value for _, value in text.constants], walked.elements]
    blocks = ceil_div(walked.elements, BLOCK * form.width * form.packs)
    if not form.flat:
        sizes = list(walked.sizes)
        if form.axes > 1:
            sizes[0] //= form.width
        values += sizes[:-1]
        if form.packs > 1:
            apart = ceil_div(sizes[-1], form.packs)
            values += [sizes[-1], apart]
            blocks = ceil_div(prod(sizes[:-1]) * apart, BLOCK)
        for steps, kept in zip(walked.steps, form.steps):
            values += [step for step, kind in zip(steps, kept) if kind == 2]
        codes += ("q" if form.wide else "i") * (len(values) - len(codes))
    return launcher(name, text, front, Struct("@" + front + codes), values, blocks)


def prepared_sums(name: str, made: Trace, walked: Walk, form: Form) -> tuple[Any, int]:
    """As `prepared`, for a trace that gives sums as well, and into how many parts rows are cut.

    The array of sums, after the results, is of shape (columns, parts, sums), in float32.
    """
    text = write(name, made, form)
    columns, rows = walked.sizes
    groups = columns // form.width
    across = min(32, power_above(groups))
    tiles = ceil_div(groups, across)
    parts = ceil_div(rows, _ROWS * (BLOCK // across))
    chunk = ceil_div(rows, max(1, min(RESIDENT * here().processors // tiles, parts)))
    parts = ceil_div(rows, chunk)
    front = _front(made, form, 1)
    codes = "".join([CODES[kind] for kind, _ in text.constants]) + "q"
    values: list[Any] = [*[value for _, value in text.constants], walked.elements]
    values += [groups, rows, across, parts, chunk]
    values += [steps[1] for steps in walked.steps if steps[1]]
    codes += "i" * (len(values) - len(codes))
    return launcher(name, text, front, Struct("@" + front + codes), values, tiles * parts), parts


def _late(*arguments: Any) -> Any:
    """What `prepared` gives, prepared when it is first called."""
    made: list[Any] = []

    def fire(*values: Any) -> None:
        if not made:
            made.append(prepared(*arguments))
        made[0](*values)

    return fire


def maker(shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...]) -> Callable[[], Any]:
    """A function that gives new arrays for results; strides are in elements and leave no gaps."""
    shape, dtype, nbytes, steps = room(shape, dtype, strides)
    return lambda: ndarray(shape, dtype, alloc(nbytes), steps)


def room(shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...]) -> tuple:
    """Shape, dtype, bytes and strides in bytes (None: row-major) of a new array for a result."""
    steps: Any = None
    if strides != contiguous_strides(shape):
        steps = [step * dtype.itemsize for step in strides]
    return shape, dtype, prod(shape) * dtype.itemsize, steps


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
        news = [maker(walked.shape, dtype, walked.strides) for dtype in form.results]
        if not walked.elements:
            self.into = lambda operands, results: None
        else:
            self._fire = prepared(name, made, walked, form)
            if form.width > 1:
                self._other = _late(name, made, walked, form._replace(width=1, packs=1))
            self.into = self._into
        self.run = self._runner(news, form, walked)

    def _into(self, operands: tuple, results: tuple) -> None:
        places, numbers = self._places
        values = [operands[place].data.ptr for place in places]
        values += [result.data.ptr for result in results]
        fire = self._fire
        if self._other is not None and any([value & 15 for value in values]):
            fire = self._other
        fire(*values, *[operands[place] for place in numbers])

    def _runner(self, news: list, form: Form, walked: Walk) -> Any:
        if len(news) > 1:

            def several(*operands: Any) -> tuple:
                results = tuple([new() for new in news])
                self.into(operands, results)
                return results

            return several
        new = news[0]
        shape, dtype, nbytes, strides = room(walked.shape, form.results[0], walked.strides)
        # The most frequent calls take no detours.
        places = self._places if walked.elements and len(form.numbers) < 3 else None
        if places is not None:
            fire, other = self._fire, self._other or self._fire
        if places == ([0], []):

            def one(x: Any, *unused: Any) -> Any:
                result = ndarray(shape, dtype, alloc(nbytes), strides)
                address = x.data.ptr
                (other if address & 15 else fire)(address, result.data.ptr)
                return result

            return one
        if places == ([0], [1]):

            def scaled(x: Any, y: Any) -> Any:
                result = ndarray(shape, dtype, alloc(nbytes), strides)
                address = x.data.ptr
                (other if address & 15 else fire)(address, result.data.ptr, y)
                return result

            return scaled
        if places == ([0, 1], []):

            def two(x: Any, y: Any) -> Any:
                result = ndarray(shape, dtype, alloc(nbytes), strides)
                a, b = x.data.ptr, y.data.ptr
                (other if (a | b) & 15 else fire)(a, b, result.data.ptr)
                return result

            return two

        def any_(*operands: Any) -> Any:
            result = new()
            self.into(operands, (result,))
            return result

        return any_

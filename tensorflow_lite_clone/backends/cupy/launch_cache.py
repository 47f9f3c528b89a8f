"""Launchers that decide once: what they did for arrays that lie in one way is done again at once.

A launcher looks at dtypes, layouts and sizes, takes memory and launches kernels. All of that takes
the host several times as long as the launches alone, and follows from how its arrays lie. So the
`cached_launches` of a launcher are noted at its second call for such arrays: which memory it took,
which kernels it launched on what, and what it gave. Later calls take the memory and launch them.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable
from functools import wraps
from struct import Struct
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from cupy import ndarray
from cupy.cuda import (
    MemoryPointer,
    alloc,
    get_allocator,
    get_current_stream,
    using_allocator,
)
from cupy.cuda.runtime import getDevice as get_device

from tensorflow_lite_clone.backends.cupy import device_asserts, tensor_maps
from tensorflow_lite_clone.backends.cupy.fusion.deferred import chain
from tensorflow_lite_clone.backends.cupy.kernel import (
    CUDADriverError,
    launch,
    launch_again,
    unknown,
    watch,
)
from tensorflow_lite_clone.backends.cupy.signature import CODES
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.core.shape import contiguous_strides
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.result_layout import conversions

_MAX_PLANS = 4096  # that are kept of one launcher; then it begins anew
_ALIGNMENT = 127  # lower bits of addresses that launchers may choose by
_MAX_MAPS = 256  # tensor maps that are kept of one argument
_launches = hooks.on_launch


class Offset(NamedTuple):
    """Where something lies: so many bytes from the start of an operand or of memory taken."""

    base: int
    offset: int


class _NotReplayable(Exception):
    """The launcher did something that cannot be done again by what was seen."""


def cached_launches(launcher: Callable[..., Any]) -> Callable[..., Any]:
    """`launcher(F, *arrays, **parameters)`, an override, remembered.

    It must follow from dtypes, shapes, strides, parameters and `flags`, and do all its work by
    kernels of `.cu` files. What is noticed, and not remembered: copies of operands and zeros that
    CuPy makes, matrix products, generated kernels, addresses within structs. What CuPy computes
    into memory that a kernel is then said to write is not noticed: the launcher says `unknown()`.
    """
    plans: dict[Any, Any] = {}

    @wraps(launcher)
    def call(F: Any, *arrays: Any, **parameters: Any) -> Any:
        # Somebody looks at each launch (another launcher that is watched, too), or puts it off.
        if _launches or watch.launches is not None or chain.on or not flags.remember_launches:
            return launcher(F, *arrays, **parameters)
        key: list[Any] = [get_device(), flags.cudnn_allow_tf32, flags.free_layouts]
        bases = []
        for array in arrays:
            if array.__class__ is ndarray:
                address = array.data.ptr
                bases.append(address)
                key += (array.dtype, array.shape, array.strides, address & _ALIGNMENT)
            elif array is None:
                bases.append(0)
                key.append(None)
            else:
                return launcher(F, *arrays, **parameters)
        try:
            found = (*key, *parameters.items())
            plan = plans.get(found)
        except TypeError:  # a parameter that has no hash
            return launcher(F, *arrays, **parameters)
        if plan.__class__ is _LaunchPlan and plan.is_valid():
            return plan(arrays, bases)
        if plan is None or len(plans) >= _MAX_PLANS:
            if len(plans) >= _MAX_PLANS:
                plans.clear()
            plans[found] = _FIRST
            return launcher(F, *arrays, **parameters)
        if plan is _NOT_CACHED:
            return launcher(F, *arrays, **parameters)
        trace = _LaunchTrace(arrays)
        result = trace.watch(launcher, F, arrays, parameters)
        try:
            plans[found] = trace.plan(result)
        except _NotReplayable:
            plans[found] = _NOT_CACHED
        return result

    return call


_FIRST, _NOT_CACHED = object(), object()


class _TrackedBuffer(MemoryPointer):
    """Memory that a watched launcher took, which says when CuPy fills it with zeros."""

    def memset_async(self, *args: Any, **kwargs: Any) -> None:
        unknown()
        super().memset_async(*args, **kwargs)


class _LaunchTrace:
    """What a launcher was seen to do."""

    def __init__(self, arrays: tuple) -> None:
        self.spans = [(0, 0) if array is None else _span(array) for array in arrays]
        self.inputs = arrays
        self.memory: list[Any] = []
        self.launches: list[tuple] = []
        self.maps: dict[bytes, tuple] = {}
        self.conversions: Counter[str] = Counter()

    def watch(self, launcher: Any, F: Any, arrays: tuple, parameters: dict) -> Any:
        """What the launcher gives."""
        before, take = conversions.copy(), get_allocator()

        def allocate(size: int) -> Any:
            pointer = take(size)
            pointer = _TrackedBuffer(pointer.mem, pointer.ptr - pointer.mem.ptr)
            self.memory.append(pointer)
            self.spans.append((pointer.ptr, pointer.ptr + size))
            return pointer

        watch.launches, watch.maps = self.launches, self.maps
        try:
            with using_allocator(allocate):
                result = launcher(F, *arrays, **parameters)
        finally:
            watch.launches = watch.maps = None
        self.conversions = conversions - before
        return result

    def plan(self, result: Any) -> _LaunchPlan:
        """How to do it again; raises _NotReplayable where that is not known."""
        written = set(range(len(self.inputs)))
        launches = []
        for instance, grid, block, args, shared in self.launches:
            if instance is None:
                raise _NotReplayable
            launches.append(self._launch(instance, grid, block, args, shared, written))
        outputs = result if result.__class__ is tuple else (result,)
        results = [self._result(value, written) for value in outputs]
        buffers = [found[0] for found in results if found.__class__ is tuple]
        if len(set(buffers)) < len(buffers):
            raise _NotReplayable  # whoever asks whether two results are one array would be told no
        sizes = [end - start for start, end in self.spans[len(self.inputs) :]]
        form = tuple if result.__class__ is tuple else None
        kernels = {id(instance.kernel.source): instance for instance, *_ in self.launches}
        versions = [(instance, instance.version) for instance in kernels.values()]
        return _LaunchPlan(versions, launches, sizes, results, form, self.conversions)

    def _launch(
        self, instance: Any, grid: tuple, block: tuple, args: tuple, shared: int, written: set
    ) -> _Launch:
        values: list[Any] = []
        for parameter, value in zip(instance.parameters, args):
            if parameter.pointer and (value is None or device_asserts.is_report(value)):
                values.append(("P", 0 if value is None else value.data.ptr))
            elif parameter.pointer:
                values.append(self._accessed(value.data.ptr, written, not parameter.constant))
            elif parameter.type in CODES:
                values.append((CODES[parameter.type], value))
            elif value.dtype == tensor_maps.TENSOR_MAP:
                values.append([self._map(one.tobytes(), written) for one in value.reshape(-1)])
            else:
                encoding = value.tobytes()
                words = np.frombuffer(encoding, np.int64, len(encoding) // 8)
                if any([start <= word < end for word in words for start, end in self.spans]):
                    raise _NotReplayable  # an address, which will be another one
                values.append((f"{len(encoding)}s", encoding))
        return _Launch(instance, (*grid, 1, 1)[:3], (*block, 1, 1)[:3], shared, values)

    def _map(self, encoded: bytes, written: set) -> tuple[Offset, tuple]:
        """A tensor map: where its array is, and the rest of what it says."""
        if encoded not in self.maps:
            raise _NotReplayable
        address, encoding, writes = self.maps[encoded]
        return self._accessed(address, written, writes), encoding

    def _accessed(self, address: int, written: set, writes: bool) -> Offset:
        """Where something is that a kernel writes or else reads."""
        offset = self._locate(address)
        if writes:
            written.add(offset.base)
        elif offset.base not in written:
            raise _NotReplayable  # somebody else has filled it
        return offset

    def _locate(self, address: int) -> Offset:
        found = [
            Offset(base, address - start)
            for base, (start, end) in enumerate(self.spans)
            if start <= address < end
        ]
        if len(found) != 1:
            raise _NotReplayable  # memory that is nobody's, or that two operands share
        return found[0]

    def _result(self, value: Any, written: set) -> Any:
        if value is None:
            return None
        for index, array in enumerate(self.inputs):
            if value is array:
                return index
        if value.__class__ is not ndarray or not value.size:
            raise _NotReplayable
        base, offset = self._locate(value.data.ptr)
        if base < len(self.inputs) or base not in written:
            raise _NotReplayable
        row_major = tuple([step * value.itemsize for step in contiguous_strides(value.shape)])
        strides = None if value.strides == row_major else value.strides
        return base - len(self.inputs), offset, value.shape, value.dtype, strides


def _span(array: Any) -> tuple[int, int]:
    """Where an array begins and ends in memory."""
    steps = [(n - 1) * step for n, step in zip(array.shape, array.strides)]
    if not array.size:
        return 0, 0
    start = array.data.ptr + sum([step for step in steps if step < 0])
    return start, array.data.ptr + sum([step for step in steps if step > 0]) + array.itemsize


class _Launch:
    """One launch, of which only addresses are not known yet."""

    def __init__(self, instance: Any, grid: tuple, block: tuple, shared: int, values: list) -> None:
        self.places: list[Offset] = []
        self.maps: list[tuple[Offset, tuple, dict]] = []
        rest: list[tuple[str, Any]] = []
        at: list[tuple[int, int]] = []  # per argument, which of three parts and which place in it
        for value in values:
            if value.__class__ is Offset:
                at.append((0, len(self.places)))
                self.places.append(value)
            elif value.__class__ is list:
                at.append((1, len(self.maps)))
                self.maps += [(index, map_, {}) for index, map_ in value]
            else:
                at.append((2, len(rest)))
                rest.append(value)
        moving = "@" + "P" * len(self.places) + "128s" * len(self.maps)
        offsets, codes = [], moving
        for code, _ in rest:
            codes += code
            offsets.append(Struct(codes).size - Struct(code).size)
        whole = Struct(codes)
        self.buffer = ctypes.create_string_buffer(max(whole.size, 1))
        zeros = [0] * len(self.places) + [b""] * len(self.maps)
        whole.pack_into(self.buffer, 0, *zeros, *[value for _, value in rest])
        self.pack = Struct(moving).pack_into
        start, maps_at = ctypes.addressof(self.buffer), 8 * len(self.places)
        addresses = [
            start + (8 * index, maps_at + 128 * index, offsets[index] if part == 2 else 0)[part]
            for part, index in at
        ]
        self._addresses = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        self.shape = (instance.address, *grid, *block, shared)
        self.address = ctypes.addressof(self._addresses)
        self.lock = Lock()  # from packing to the end of the launch

    def map_bytes(self, bases: list[int]) -> list[bytes]:
        """The tensor maps for what lies at `bases`."""
        found = []
        for (base, offset), encoding, known in self.maps:
            address = bases[base] + offset
            encoded = known.get(address)  # once: another thread may clear what is known
            if encoded is None:
                if len(known) >= _MAX_MAPS:
                    known.clear()
                encoded = known[address] = tensor_maps.made(address, *encoding).tobytes()
            found.append(encoded)
        return found


class _LaunchPlan(NamedTuple):
    """What a launcher does for arrays that lie in one way."""

    kernels: list[tuple[Any, int]]  # one of each source, and the source's version
    launches: list[_Launch]
    sizes: list[int]  # of the memory that it takes, in bytes
    results: list[Any]  # None, the place of an operand, or an array in the memory taken
    form: Any
    conversions: Counter[str]

    def is_valid(self) -> bool:
        """Whether the kernels are as they were."""
        for instance, version in self.kernels:
            if instance.current_version() != version:
                return False
        return True

    def __call__(self, arrays: tuple, bases: list[int]) -> Any:
        memory = [alloc(size) for size in self.sizes]
        bases += [pointer.ptr for pointer in memory]
        stream = get_current_stream().ptr
        for one in self.launches:
            values: list[Any] = [bases[base] + offset for base, offset in one.places]
            if one.maps:
                values += one.map_bytes(bases)
            with one.lock:
                one.pack(one.buffer, 0, *values)
                try:
                    launch(*one.shape, stream, one.address, 0)
                except CUDADriverError as error:
                    launch_again(error, *one.shape, stream, one.address, 0)
        if self.conversions:
            conversions.update(self.conversions)
        results = []
        for result in self.results:
            if result.__class__ is tuple:
                index, offset, shape, dtype, strides = result
                pointer = memory[index] + offset if offset else memory[index]
                result = ndarray(shape, dtype, pointer, strides)
            elif result is not None:
                result = arrays[result]
            results.append(result)
        return results[0] if self.form is None else tuple(results)

"""Formulas that wait over arrays in the host's memory, where NumPy stands in for kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np
import pytest

from tensorflow_lite_clone.backends.cupy.fusion import deferred, joining, source
from tensorflow_lite_clone.backends.cupy.fusion.formula import formula
from tensorflow_lite_clone.fuse.symbol import in_order


class Owned(cupy.cuda.UnownedMemory):
    """Memory that counts as this package's own."""


def host(array: Any) -> np.ndarray:
    """What NumPy sees in an array's memory."""
    whole = (ctypes.c_char * array.data.mem.size).from_address(array.data.mem.ptr)
    offset = array.data.ptr - array.data.mem.ptr
    return np.ndarray(array.shape, array.dtype, whole, offset, array.strides)


def computed(made: Any, operands: tuple) -> list[np.ndarray]:
    """What NumPy makes of a trace."""
    values: dict[int, Any] = {}
    for symbol in in_order(made.results):
        inner = [values[id(operand)] for operand in symbol.operands]
        if symbol.name == "operand":
            value = operands[symbol.value]
            value = (host(value) if isinstance(value, cupy.ndarray) else value).astype(symbol.dtype)
        elif symbol.name == "number":
            value = symbol.dtype.type(symbol.value)
        elif symbol.name == "astype":
            value = inner[0].astype(symbol.dtype)
        else:
            value = getattr(np, symbol.name)(*inner)
        values[id(symbol)] = value
    return [values[id(symbol)] for symbol in made.results]


class Computed:
    """In place of a plan."""

    def __init__(self, name: str, made: Any, walked: Any, form: Any) -> None:
        source.write(name, made, form)
        self.made = made

    def into(self, operands: tuple, results: tuple) -> None:
        for value, result in zip(computed(self.made, operands), results, strict=True):
            host(result)[...] = value


class Summed:
    """In place of sums on the device; `kernels` has what each read and wrote."""

    kernels: list[tuple[int, int]] = []
    partial: Any = None

    def launch(self, name: str, made: Any, walked: Any, form: Any, given: Any, out: Any) -> None:
        source.write(name, made, form)
        values = computed(made, given)
        for value, result in zip(values, out):
            host(result)[...] = value
        self.partial = np.stack([value.sum((0, 2, 3)) for value in values[len(out) :]], 1)
        whole = [s for s in made.operands if given[s.value].size == walked.elements]
        self.kernels.append((len(whole), len(out)))


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The chain, while formulas wait and arrays lie in the host's memory."""
    buffers = []  # which the tests look at when nobody holds them any more

    def allocate(size: int) -> Any:
        held = np.full(size // 4 + 8, np.nan, np.float32)
        buffers.append(held)
        at = -(-held.ctypes.data // 16) * 16
        memory = Owned(at, max(size, 1), held, 0)
        return cupy.cuda.MemoryPointer(memory, 0)

    monkeypatch.setattr(joining, "Plan", Computed)
    monkeypatch.setattr(deferred, "Sums", Summed)
    Summed.kernels.clear()
    monkeypatch.setattr("tensorflow_lite_clone.backends.cupy.fusion.launch.alloc", allocate)
    with cupy.cuda.using_allocator(allocate):
        deferred.chain.on = True
        yield deferred.chain
        deferred.chain.drop()


def given(*values: float) -> Any:
    """A new array of these numbers."""
    array = cupy.ndarray((len(values),), np.float32)
    host(array)[...] = values
    return array


def no_generic(*arrays: Any, **parameters: Any) -> Any:
    """In place of what runs where there is no formula."""
    raise AssertionError("a formula that is not pointwise")


def waiting(body: Any) -> Any:
    """A formula that waits."""
    return deferred.deferring(formula("body", body, no_generic))


def in_place(body: Any) -> Any:
    """One that writes into its first operand."""
    return deferred.deferring_in_place(formula("body", body, None))


class Rectified:
    """A rectified array, made of `x` and one number a channel, and the gradient that comes back."""

    def __init__(self, chain: Any, last: bool = True) -> None:
        self.x, self.g, self.more = [self.picture(last) for _ in range(3)]
        self.shift = given(*np.linspace(-1, 1, 4)).reshape(1, 4, 1, 1)
        self.y = waiting(lambda F, x, b: F.maximum(x - b, 0))(self.x, self.shift)
        chain.flush()
        self.mask = waiting(lambda F, g, y: F.where(y > 0, g, 0))

    def picture(self, last: bool) -> Any:
        shape = (9, 6, 5, 4) if last else (9, 4, 6, 5)
        array = given(*np.random.default_rng().standard_normal(9 * 4 * 6 * 5)).reshape(shape)
        return array.transpose(0, 3, 1, 2) if last else array

    def sums(self, chain: Any, g: Any) -> Any:
        arrays = g, self.x, self.shift
        return chain.sums("sums", lambda F, g, x, b: (g, g * (x - b)), arrays, ())

    def expected(self, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        masked = np.where(host(self.y) > 0, g, 0)
        slopes = masked * (host(self.x) - host(self.shift))
        return masked, np.stack([masked.sum((0, 2, 3)), slopes.sum((0, 2, 3))], 1)

"""Tensors as MPI takes them: memory, a number of elements, their type. MPI has been started."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from tensorflow_lite_clone.core.dtypes import bfloat16, bool_, float16
from tensorflow_lite_clone.tensor import Tensor


def flat(tensor: Tensor) -> Any:
    """The tensor's own elements in one dimension."""
    return tensor._storage.array.reshape(-1)


def words(tensor: Tensor) -> Any:
    """The elements as integers, of which MPI knows all: for what is only moved."""
    elements = flat(tensor)
    return elements.view(f"u{min(elements.itemsize, 8)}")


def numbers(tensor: Tensor) -> Any:
    """The elements as MPI can reduce them: in place, but of two-byte floats a wider copy."""
    elements = flat(tensor)
    if tensor.dtype in (float16, bfloat16):
        return elements.astype("f4")
    return elements.view("u1") if tensor.dtype is bool_ else elements


def _place(array: Any) -> int:
    return array.__array_interface__["data"][0]


class Row:
    """Arrays one after the other in one memory: their own where they lie so, else other memory,
    which with `filled` is a copy.
    """

    def __init__(self, arrays: Sequence[Any], *, filled: bool) -> None:
        from mpi4py import MPI

        self.counts = [part.size for part in arrays]
        self.starts = list(accumulate(self.counts, initial=0))
        self.code = MPI.Datatype.fromcode(arrays[0].dtype.char)
        width = arrays[0].itemsize
        starts = [start * width for start in self.starts]
        self._parts = [(part, start) for part, start in zip(arrays, starts) if part.size]
        places = {_place(part) - start for part, start in self._parts}
        self._own = range(0)  # the addresses of the arrays, where they are the memory
        self.memory: Any
        if len(places) == 1:
            place = places.pop()
            self._own = range(place, place + starts[-1])
            self.memory = MPI.buffer.fromaddress(place, starts[-1])
        elif filled:
            self.memory = b"".join([part.view("u1") for part in arrays])
        else:
            self.memory = bytearray(starts[-1])

    def even(self) -> list[Any]:
        """For collectives whose parts are of one size."""
        return [self.memory, self.counts[0], self.code]

    def uneven(self) -> list[Any]:
        """For collectives whose parts have sizes of their own."""
        return [self.memory, self.counts, self.starts[:-1], self.code]

    def hand_out(self) -> None:
        """Write what came to the arrays."""
        if not self._own:
            for part, start in self._parts:
                part.view("u1")[...] = memoryview(self.memory)[start : start + part.nbytes]

    def beside(self, array: Any) -> Any:
        """An array to send while this is received, a copy if it is a part: MPI wants them apart."""
        return array.copy() if self._meets(array) else array

    def leave(self, arrays: Sequence[Any]) -> None:
        """Be a copy, if arrays to be received while this is sent are parts."""
        if any([self._meets(array) for array in arrays]):
            self.memory = bytes(self.memory)

    def _meets(self, array: Any) -> bool:
        start, stop = _place(array), _place(array) + array.nbytes
        return max(start, self._own.start) < min(stop, self._own.stop)

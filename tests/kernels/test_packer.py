"""Arguments of kernels in the buffer that the driver reads."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cupy")

import cupy

from tensorflow_lite_clone.backends.cupy.signature import Packer
from tensorflow_lite_clone.kernels.signature import Parameter


def at(packer: Any, place: int, dtype: Any) -> np.ndarray:
    """What lies where the driver is told that an argument is."""
    address = (ctypes.c_void_p * (place + 1)).from_address(packer.address)[place]
    dtype = np.dtype(dtype)
    return np.frombuffer((ctypes.c_char * dtype.itemsize).from_address(address), dtype, 1)[0]


def test_arguments_are_packed_where_their_addresses_say() -> None:
    kinds = ["float", "int", "long long", "bool", "float", "double"]
    found = [Parameter("n", kind, i == 0) for i, kind in enumerate(kinds)]
    packer = Packer(found)
    assert packer.pack((None, 3, 5, True, 1.5, 2.5))
    values = [at(packer, place, code) for place, code in enumerate("Piq?fd")]
    assert values == [0, 3, 5, True, 1.5, 2.5]
    for wrong in [(None, 3.0, 5, True, 1.5, 2.5), (None, 1 << 31, 5, True, 1.5, 2.5), (None, 3)]:
        assert not packer.pack(wrong)
    assert packer.pack((None, np.int64(4), 5, False, 1, 2))
    assert [at(packer, 1, "i"), at(packer, 5, "d")] == [4, 2.0]


def test_structs_are_packed_whole() -> None:
    struct = Parameter("tensors", "Tensors<2>", False)
    pointer, whole = Parameter("x", "float", True), Parameter("n", "int", False)
    words = np.arange(3).view("V24")
    packer = Packer([pointer, whole, struct, whole])
    assert packer.pack((None, 5, words, 7))
    assert at(packer, 2, "3i8").tolist() == [0, 1, 2]
    assert [at(packer, 1, "i"), at(packer, 3, "i")] == [5, 7]
    assert not packer.pack((None, 5, np.arange(2).view("V16"), 7))
    assert not packer.pack((None, 5, 5, 7))


def test_arrays_of_another_dtype_are_not_packed() -> None:
    packer = Packer([Parameter("x", "float", True), Parameter("y", "void", True)])
    memory = cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(4096, 8, None, 0), 0)
    one, other = [cupy.ndarray((), dtype, memory) for dtype in (np.float32, np.int32)]
    assert packer.pack((one, other))
    assert at(packer, 0, "P") == at(packer, 1, "P") == 4096
    assert not packer.pack((other, one))
    assert packer.pack((None, one))
    assert at(packer, 0, "P") == 0


def test_an_array_is_no_number() -> None:
    packer = Packer([Parameter("a", "double", False)])
    assert packer.pack((np.float64(1.5),))
    memory = cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(4096, 8, None, 0), 0)
    assert not packer.pack((cupy.ndarray((), np.float64, memory),))

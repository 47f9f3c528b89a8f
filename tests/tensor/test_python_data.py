"""What tensors are made of: kinds of entries, memory that is shared or not, what is refused."""

from __future__ import annotations

import array
import collections

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc


class Sequence:
    def __init__(self, *entries):
        self.entries = entries

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, place):
        return self.entries[place]


class Interface:
    """Names an address, as a type of arrays does that NumPy knows nothing of."""

    memory = np.arange(3)

    @property
    def __array_interface__(self):
        return self.memory.__array_interface__


class Array:
    def __array__(self, dtype=None, copy=None):
        return np.arange(3)


class Integer(int):
    pass


DATA = {
    "bytearray": bytearray(b"ab"),
    "memoryview": memoryview(b"ab"),
    "array.array": array.array("f", [1.5, 2]),
    "deque": collections.deque([1, 2]),
    "range": range(3),
    "sequence": Sequence(1, 2.5),
    "sequences": [Sequence(1, 2), Sequence(3, 4)],
    "subclass": [Integer(3), 1],
    "first is empty": [[], [1]],
    "last is empty": [[1], []],
    "ragged": [[1, 2], [3]],
    "deeper": [[[1]], [2]],
    "scalar beside list": [1, [2]],
    "2**63": [1, 1 << 63],
    "2**64 beside a float": [1 << 64, 1.5],
    "10**400": [10**400, 1.0],
    "float32 of NumPy": [np.float32(1.5)],
    "bool of NumPy": [np.bool_(True)],
    "integers of NumPy": [np.int8(3), np.uint8(200)],
    "interface": Interface(),
    "interfaces": [Interface()],
    "array method": Array(),
    "string": ["a"],
    "None": [1, None],
    "set": {1, 2},
    "dict": {0: 1},
    "generator": (entry for entry in ()),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "every other": np.arange(6.0)[::2],
    "broadcast": np.broadcast_to(np.array([1.0, 2.0]), (3, 2)),
    "odd strides": np.zeros(2, [("a", "i1"), ("b", "f4")])["b"],
    "reversed": np.arange(3)[::-1],
    "big-endian": np.array([1], ">i4"),
    "datetime": np.array(["2020-01-01"], "M8[D]"),
    "objects": np.array([1, 2.5], object),
}


def outcome(lib, call):
    try:
        made = call(lib)
    except (RuntimeError, ValueError, TypeError, OverflowError) as error:
        kinds = (RuntimeError, ValueError, TypeError, OverflowError)
        return next(kind for kind in kinds if isinstance(error, kind))
    return str(made.dtype).split(".")[-1], tuple(made.shape), made.stride(), made.tolist()


@pytest.mark.filterwarnings("ignore:The given")
@pytest.mark.parametrize("name", DATA)
def test_values_dtypes_and_strides(name):
    data = DATA[name]
    for word in (None, "float32", "int64", "uint8", "bool", "complex64"):
        for function in ("tensor", "as_tensor"):

            def make(lib, function=function, word=word):
                return getattr(lib, function)(data, dtype=word and getattr(lib, word))

            assert outcome(tlc, make) == outcome(torch, make), (function, word)


@pytest.mark.parametrize("make", [bytearray, lambda data: memoryview(bytearray(data))])
def test_numbers_are_copied(make):
    data = make(b"abc")
    x = tlc.tensor(data, dtype=tlc.uint8)
    x[0] = 0
    assert data[0] == ord("a")


def test_no_address_is_taken_from_an_object():
    for call in (tlc.tensor, tlc.as_tensor, tlc.asarray, tlc.Tensor, tlc.zeros(1).new_tensor):
        for data in (Interface(), [Interface()], [[1], [Interface()]]):
            with pytest.raises((RuntimeError, TypeError)):
                call(data)


def test_dlpack_export_invalid_requests_raise():
    with pytest.raises(ValueError, match="negative strides"):
        tlc.from_dlpack(np.arange(3.0)[::-1])
    for lib in (torch, tlc):
        with pytest.raises(AssertionError, match="stream should be None on cpu"):
            lib.ones(2, device="cpu").__dlpack__(stream=1)
        with pytest.raises(TypeError, match="stream must be"):
            lib.ones(2, device="cpu").__dlpack__(stream="x")


def test_bytes_as_wider_elements_begin_where_such_an_element_may():
    for lib in (torch, tlc):
        with pytest.raises(RuntimeError, match="storage_offset\\(\\) must be divisible by 4"):
            lib.arange(8, dtype=lib.uint8)[1:5].view(lib.int32)
        assert np.float32(1) in lib.arange(3)
        with pytest.raises(RuntimeError, match="could not retrieve buffer"):
            lib.frombuffer(np.asfortranarray(np.ones((2, 3))), dtype=lib.uint8)
        for source in (1.5, "a"):
            with pytest.raises(RuntimeError):
                lib.UntypedStorage(source)

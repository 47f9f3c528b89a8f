"""Devices, layouts and memory formats that are none, and numbers before comparisons."""

from __future__ import annotations

import pytest
import torch

import tensorflow_lite_clone as tlc

CASES = {
    "device": lambda lib: lib.device("bogus"),
    "device of a factory": lambda lib: lib.zeros(2, device="CPU"),
    "device index": lambda lib: lib.device("cpu", True),
    "to": lambda lib: lib.zeros(2).to("float32"),
    "layout": lambda lib: lib.zeros(2, layout="strided"),
    "memory format": lambda lib: lib.zeros(2).contiguous(memory_format=1),
    "memory format of a factory": lambda lib: lib.empty(2, memory_format="x"),
    "dtype": lambda lib: lib.zeros(2, dtype="float32"),
    "number first": lambda lib: lib.eq(1, lib.zeros(2)),
    "number first in fmod": lambda lib: lib.fmod(1, lib.zeros(2)),
    "array second": lambda lib: lib.ne(lib.zeros(2), lib.zeros(2).numpy()),
    "narrow by a vector": lambda lib: lib.zeros(4).narrow(0, lib.tensor([1]), 2),
    "narrow by a bool": lambda lib: lib.zeros(4).narrow(0, lib.tensor(True), 2),
    "transpose by a bool": lambda lib: lib.zeros(2, 3).transpose(True, 0),
    "view of a fraction": lambda lib: lib.zeros(6).view(2.0, 3),
    "sum over a bool": lambda lib: lib.zeros(2, 3).sum(True),
    "mixed norm": lambda lib: lib.nn.functional.layer_norm(
        lib.zeros(2, 3), (3,), lib.zeros(3).double()
    ),
    "norm of integers": lambda lib: lib.nn.functional.layer_norm(lib.zeros(2, 3).long(), (3,)),
    "mixed einsum": lambda lib: lib.einsum("ij,kj->ik", lib.zeros(2, 3), lib.zeros(2, 3).double()),
    "mixed cross": lambda lib: lib.linalg.cross(lib.zeros(3), lib.zeros(3).double()),
    "reflected without a tensor": lambda lib: lib.Tensor.__radd__(2, 3),
    "complex into real": lambda lib: lib.zeros(2).masked_fill(
        lib.tensor([True, False]), lib.tensor(1j)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused_with_the_same_type(name: str) -> None:
    kinds = []
    for library in (torch, tlc):
        with pytest.raises(Exception) as caught:
            CASES[name](library)
        kinds.append(caught.type)
    assert issubclass(kinds[1], kinds[0]), kinds


def test_zero_dim_tensors_are_numbers() -> None:
    for library in (torch, tlc):
        x = library.ones(3)
        assert library.addcmul(x, x, x, value=library.tensor(2.0)).tolist() == [3.0, 3.0, 3.0]
        assert library.topk(x, library.tensor(2)).values.tolist() == [1.0, 1.0]

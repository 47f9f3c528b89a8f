"""The older format, in which the bytes come behind the tensors: nothing else is ever shown."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc

OLD = {"_use_new_zipfile_serialization": False}
PATTERN = 0xA7


@pytest.fixture
def poisoned():
    """A function that fills memory which is free now, and likely to be given out next."""

    def poison():
        for size in (16, 32, 48, 64, 96, 128, 512, 4096, 40_000, 2_000_000):
            blocks = [np.full(size, PATTERN, np.uint8) for _ in range(8)]
            del blocks

    return poison


def saved(value, library=torch, **options):
    stream = io.BytesIO()
    library.save(value, stream, **options)
    stream.seek(0)
    return stream


def tensors(lib):
    z = lib.tensor([[1 + 2j, 3 - 1j], [0.5j, -2]])
    return {
        "conjugate": z.conj(),
        "transposed": z.T.conj(),
        "imaginary": z.clone().conj().imag,
        "negative": lib._neg_view(z.real.clone()) if lib is torch else -z.real,
        "beside": [z, z.conj(), z[0].conj()],
        "zero": lib.zeros(4, dtype=lib.complex64).conj(),
        "parameter": lib.nn.Parameter(z.conj()),
        "large": lib.full((300, 300), 1 - 1j).conj(),
        "empty": lib.zeros(0, dtype=lib.complex64).conj(),
        "double": z.to(lib.complex128).conj(),
        "required": z.clone().conj().detach().requires_grad_(),
    }


def values(result):
    return {
        name: [x.resolve_conj().resolve_neg().detach().tolist() for x in value]
        if type(value) is list
        else value.resolve_conj().resolve_neg().detach().tolist()
        for name, value in result.items()
    }


@pytest.mark.parametrize("weights_only", (True, False))
@pytest.mark.parametrize("form", ({}, OLD), ids=("zip", "legacy"))
@pytest.mark.parametrize("writer", (torch, tlc), ids=("theirs", "ours"))
@pytest.mark.filterwarnings("ignore:weights_only=False")
def test_conjugates_and_negatives(writer, form, weights_only, poisoned):
    data = saved(tensors(writer), writer, **form).getvalue()
    expected = values(tensors(torch))
    for _ in range(10):
        poisoned()
        result = tlc.load(io.BytesIO(data), map_location="cpu", weights_only=weights_only)
        assert values(result) == expected
    assert result["required"].requires_grad and result["parameter"].requires_grad
    assert result["required"].is_leaf and not result["conjugate"].requires_grad


def test_conjugates_on_another_place(poisoned):
    """What `map_location` gives is filled with the bytes, and settled then."""
    data = saved({"a": tensors(torch)["conjugate"]}, **OLD).getvalue()
    for place in ("cpu", tlc.device("cpu"), lambda storage, _: storage.clone()):
        poisoned()
        result = tlc.load(io.BytesIO(data), map_location=place)
        assert result["a"].tolist() == [[1 - 2j, 3 + 1j], [-0.5j, -2]]


class Looks:
    """Sees its state while the file is read."""

    seen: list = []

    def __setstate__(self, state):
        Looks.seen += [state["x"].tolist(), bytes(state["x"].untyped_storage().tolist())]


@pytest.mark.filterwarnings("ignore:weights_only=False")
def test_what_is_seen_before_the_bytes_are_read(poisoned):
    """Zeros, in PyTorch whatever was in the memory."""
    value = Looks()
    value.x = tlc.ones(1000)
    data = saved(value, tlc, **OLD).getvalue()
    for _ in range(10):
        poisoned()
        Looks.seen.clear()
        with tlc.serialization.safe_globals([Looks]):
            tlc.load(io.BytesIO(data), map_location="cpu")
        tlc.load(io.BytesIO(data), weights_only=False, map_location="cpu")
        assert Looks.seen == [[0.0] * 1000, bytes(4000)] * 2


@pytest.mark.parametrize("form", ({}, OLD), ids=("zip", "legacy"))
def test_files_that_are_cut_show_nothing(form, poisoned):
    """What a `map_location` keeps of a file that ends early is zeros or the file's bytes."""
    data = saved({"x": tlc.ones(200).to(tlc.uint8)}, tlc, **form).getvalue()
    for size in range(0, len(data), 29):
        poisoned()
        kept = []

        def keep(storage, location, kept=kept):
            kept.append(storage)
            return storage

        with pytest.raises((pickle.UnpicklingError, RuntimeError, EOFError)):
            tlc.load(io.BytesIO(data[:size]), map_location=keep)
        assert all([set(storage.tolist()) <= {0, 1} for storage in kept])


def test_data_that_is_left_out_is_zeros(poisoned):
    stream = saved([tlc.ones(1000)], tlc)
    for _ in range(10):
        poisoned()
        with tlc.serialization.skip_data():
            stream.seek(0)
            assert tlc.load(stream, map_location="cpu")[0].count_nonzero().item() == 0

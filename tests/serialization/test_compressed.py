"""Tensors in compressed rows and columns in files, between both libraries, and in copies."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.serialization.pickles import archive, integer, tensor, text
from tests.sparse.against_torch import described

LIBRARIES = {"ours": tlc, "theirs": torch}
pytestmark = pytest.mark.filterwarnings("ignore:Sparse", "ignore:TypedStorage")


def matrix(lib):
    return lib.tensor([[1.0, 2, 0, 0], [0, 0, 0, 0], [0, 3, 0, 4]])


TENSORS = {
    "csr": lambda lib: matrix(lib).to_sparse_csr(),
    "csc": lambda lib: matrix(lib).half().to_sparse_csc(),
    "bsr": lambda lib: matrix(lib).to_sparse_bsr((1, 2)),
    "bsc": lambda lib: matrix(lib).to_sparse_bsc((3, 2)),
    "batch": lambda lib: lib.stack([matrix(lib), matrix(lib)]).to_sparse_csr(),
    "vectors": lambda lib: lib.stack([matrix(lib), matrix(lib)], -1).to_sparse_csr(1),
    "int32": lambda lib: lib.sparse_csr_tensor(
        lib.tensor([0, 2]).int(), lib.tensor([0, 1]).int(), [1.0, 2.0], (1, 3)
    ),
    "in no order": lambda lib: lib.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 3)),
    "twice": lambda lib: lib.sparse_csr_tensor([0, 3], [1, 1, 1], [1.0, 2.0, 3.0], (1, 2)),
    "none": lambda lib: lib.zeros(2, 3).to_sparse_csr(),
    "learned": lambda lib: matrix(lib).to_sparse_csr().requires_grad_(),
}


@pytest.mark.parametrize("name", TENSORS)
def test_files(name):
    for form in ({}, {"_use_new_zipfile_serialization": False}):
        found = []
        for writer in LIBRARIES.values():
            for lib in LIBRARIES.values():
                stream = io.BytesIO()
                writer.save({"x": TENSORS[name](writer)}, stream, **form)
                stream.seek(0)
                x = lib.load(stream, map_location="cpu")["x"]
                found.append([described(x, lib), x.requires_grad])
        assert found[0][1] is (name == "learned")
        assert found == [found[0]] * 4


def test_copies():
    x = TENSORS["csr"](tlc)
    x.note = ["mine"]
    for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert described(made, tlc) == described(x, tlc) and made.note == x.note
    copy.deepcopy(x).values().zero_()
    assert x.sum().item() == 10


# -- from an attacker -----------------------------------------------------------------------------

FLOATS = tensor(0, (2,), (1,))[2:-1]


def longs(size: tuple, stride: tuple, start: int = 0) -> bytes:
    """A tensor over the four int64 numbers 0, 5, -1, 2**40."""
    return tensor(start, size, stride, "1")[2:-1].replace(b"FloatStorage", b"LongStorage")


def sparse(starts: bytes, columns: bytes, values: bytes, size: tuple) -> bytes:
    layout = b"ctorch.serialization\n_get_layout\n" + text("torch.sparse_csr") + b"\x85R"
    sizes = b"(" + b"".join([integer(n) for n in size]) + b"t"
    parts = b"(" + starts + columns + values + sizes + b"t"
    return b"\x80\x02ctorch._utils\n_rebuild_sparse_tensor\n(" + layout + parts + b"tR."


NONE = tensor(0, (0,), (1,))[2:-1]
WRONG = {
    "starts beyond the end": sparse(longs((2,), (1,)), longs((2,), (0,)), FLOATS, (1, 3)),
    "columns outside": sparse(longs((2,), (0,)), longs((0,), (1,)), FLOATS, (1, 3)),
    "floats": sparse(FLOATS, FLOATS, FLOATS, (1, 3)),
    "other rows": sparse(longs((2,), (0,)), longs((0,), (1,)), NONE, (5, 3)),
    "a vector": sparse(longs((2,), (0,)), longs((0,), (1,)), NONE, (3,)),
    "no tensors": sparse(b"K\x01", b"K\x01", b"K\x01", (1, 3)),
    "no values": sparse(longs((2,), (0,)), longs((0,), (1,)), b"N", (1, 3)),
    "negative sizes": sparse(longs((2,), (0,)), longs((0,), (1,)), NONE, (1, -3)),
}
NUMBERS = (0).to_bytes(8, "little") + (5).to_bytes(8, "little") + b"\xff" * 8 + b"\x01" * 8


@pytest.mark.parametrize("case", WRONG)
def test_indices_that_do_not_fit_are_refused(case):
    storages = {"_0": bytes(16), "_1": NUMBERS}
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        tlc.load(archive(WRONG[case], **storages))
    fitting = sparse(longs((2,), (0,)), longs((0,), (1,)), NONE, (1, 3))
    assert tlc.load(archive(fitting, **storages)).shape == (1, 3)

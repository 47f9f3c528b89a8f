"""Sparse tensors in files, between both libraries, and in copies."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.serialization.pickles import archive, integer, tensor, text

LIBRARIES = {"ours": tlc, "theirs": torch}
FORMS = {"zip": {}, "legacy": {"_use_new_zipfile_serialization": False}}
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks", "ignore:TypedStorage")

TENSORS = {
    "twice": lambda lib: lib.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [3.0, 4.0, 5.0], (2, 3)),
    "coalesced": lambda lib: TENSORS["twice"](lib).coalesce(),
    "vectors": lambda lib: lib.sparse_coo_tensor([[2, 0]], [[1.0, 2.0], [3.0, 4.0]], (3, 2)),
    "whole": lambda lib: lib.sparse_coo_tensor([[1, 0]], [7, 8], (4,)),
    "complex": lambda lib: lib.sparse_coo_tensor([[1, 0]], [7 + 1j, 8], (4,)),
    "bfloat16": lambda lib: TENSORS["vectors"](lib).to(lib.bfloat16),
    "uint16": lambda lib: lib.sparse_coo_tensor(
        [[1, 0]], lib.tensor([7, 8], dtype=lib.uint16), (4,)
    ),
    "none": lambda lib: lib.sparse_coo_tensor(
        lib.zeros(2, 0, dtype=lib.int64), lib.zeros(0), (2, 3)
    ),
    "learned": lambda lib: TENSORS["twice"](lib).requires_grad_(),
}


def described(x):
    return (
        type(x).__name__.replace("SparseTensor", "Tensor"),
        str(x.layout),
        str(x.dtype),
        list(x.shape),
        x.is_coalesced(),
        x.requires_grad,
        x._indices().tolist(),
        x._values().tolist(),
    )


def stream_of(library, value, **options):
    stream = io.BytesIO()
    library.save(value, stream, **options)
    stream.seek(0)
    return stream


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("writer", LIBRARIES)
@pytest.mark.parametrize("reader", LIBRARIES)
def test_files(writer, reader, form, name):
    """With weights_only; the requirement of a gradient is not kept, as in PyTorch."""
    if form == "legacy" and name == "uint16" and reader == "theirs":
        pytest.skip("PyTorch reads no legacy files with uint16, its own either")
    written = TENSORS[name](LIBRARIES[writer])
    stream = stream_of(LIBRARIES[writer], {"a": [written, written]}, **FORMS[form])
    first, second = LIBRARIES[reader].load(stream, map_location="cpu", weights_only=True)["a"]
    assert first is second
    expected = TENSORS[name](LIBRARIES[reader]).detach()
    assert described(first) == described(expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("writer", LIBRARIES)
@pytest.mark.parametrize("reader", LIBRARIES)
def test_buffers_and_attributes(writer, reader, form):
    def module(lib, name):
        made = lib.nn.Linear(2, 2)
        made.register_buffer("graph", TENSORS[name](lib).detach())
        return made

    lib = LIBRARIES[writer]
    noted = TENSORS["twice"](lib)
    noted.note = {"of": "mine"}
    value = {"state": module(lib, "coalesced").state_dict(), "noted": noted}
    result = LIBRARIES[reader].load(stream_of(lib, value, **FORMS[form]), map_location="cpu")
    assert result["noted"].note == {"of": "mine"}
    fresh = module(LIBRARIES[reader], "none")
    fresh.load_state_dict(result["state"])
    assert described(fresh.graph) == described(TENSORS["coalesced"](LIBRARIES[reader]))


def test_files_share_memory():
    x = tlc.sparse_coo_tensor([[1, 0]], [7.0, 8.0], (4,))
    whole, values = tlc.load(stream_of(tlc, [x, x._values()]), map_location="cpu")
    values.zero_()
    assert whole._values().tolist() == [0, 0]


@pytest.mark.parametrize("name", sorted(set(TENSORS) - {"uint16"}))  # PyTorch does not pickle it
def test_copies(name):
    def script(lib):
        x = TENSORS[name](lib)
        x.note = ["mine"]
        copies = copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))
        same, again = copy.deepcopy([x, x])
        assert same is again
        return [(described(y), y.note, y.note is x.note) for y in copies]

    assert script(tlc) == script(torch)


def test_a_sparse_tensor_takes_no_dense_one():
    for lib in (tlc, torch):
        x = TENSORS["twice"](lib)
        with pytest.raises(RuntimeError):
            x.copy_(lib.ones(2, 3))
        assert described(x) == described(TENSORS["twice"](lib))


# -- from an attacker -----------------------------------------------------------------------------


def sparse(indices: bytes, values: bytes, size: tuple, more: bytes = b"\x89") -> bytes:
    layout = b"ctorch.serialization\n_get_layout\n" + text("torch.sparse_coo") + b"\x85R"
    sizes = b"(" + b"".join([integer(n) for n in size]) + b"t"
    parts = b"(" + indices + values + sizes + more + b"t"
    return b"\x80\x02ctorch._utils\n_rebuild_sparse_tensor\n(" + layout + parts + b"tR."


def longs(size: tuple, stride: tuple) -> bytes:
    """A tensor over the four int64 numbers 0, 5, -1, 2**40."""
    made = tensor(0, size, stride, "1")[2:-1]
    return made.replace(b"FloatStorage", b"LongStorage")


FLOATS = tensor(0, (2,), (1,))[2:-1]
WRONG = {
    "outside": sparse(longs((1, 2), (2, 1)), FLOATS, (5,)),
    "negative": sparse(longs((1, 2), (2, 2)), FLOATS, (5,)),
    "of no size": sparse(longs((1, 2), (2, 0)), FLOATS, (0,)),
    "floats": sparse(FLOATS, FLOATS, (5,)),
    "one-dimensional": sparse(longs((2,), (0,)), FLOATS, (5,)),
    "fewer values": sparse(longs((1, 3), (0, 0)), FLOATS, (5,)),
    "more sizes": sparse(longs((1, 2), (0, 0)), FLOATS, (5, 2)),
    "other sizes": sparse(longs((1, 2), (0, 0)), tensor(0, (2, 2), (2, 1))[2:-1], (5, 3)),
    "negative sizes": sparse(longs((1, 2), (0, 0)), FLOATS, (-5,)),
    "no tensors": sparse(b"K\x01", b"K\x01", (5,)),
    "no values": sparse(longs((1, 2), (0, 0)), b"N", (5,)),
    "more parts": sparse(longs((1, 2), (0, 0)), FLOATS, (5,), b"\x89\x89"),
    "no parts": b"\x80\x02ctorch._utils\n_rebuild_sparse_tensor\n(N)tR.",
}


@pytest.mark.parametrize("name", WRONG)
def test_load_inconsistent_sparse_tensors_raises(name):
    stream = archive(WRONG[name], _0=bytes(16), _1=tlc.tensor([0, 5, -1, 2**40]).numpy().tobytes())
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        tlc.load(stream, map_location="cpu")


def test_enormous_sizes_take_no_memory():
    good = sparse(longs((1, 2), (0, 0)), FLOATS, (2**62,))
    stream = archive(good, _0=bytes(16), _1=bytes(32))
    assert tlc.load(stream, map_location="cpu").shape == (2**62,)


def test_indices_that_show_one_number_many_times():
    many = 1 << 40
    values = tensor(0, (many,), (0,))[2:-1]
    stream = archive(sparse(longs((1, many), (0, 0)), values, (5,)), _0=bytes(16), _1=bytes(32))
    with pytest.raises(pickle.UnpicklingError, match="copies more than it contains"):
        tlc.load(stream, map_location="cpu")


def test_indices_of_legacy_files_are_checked():
    """They come behind the pickle."""
    x = tlc.sparse_coo_tensor([[1, 0]], [7.0, 8.0], (4,))
    stream = stream_of(tlc, x, **FORMS["legacy"])
    data = stream.getvalue()
    here = tlc.tensor([1, 0]).numpy().tobytes()
    there = tlc.tensor([1, 4]).numpy().tobytes()
    assert data.count(here) == 1
    with pytest.raises(RuntimeError, match="index outside of its size"):
        tlc.load(io.BytesIO(data.replace(here, there)), map_location="cpu")

"""Files with tensors of kinds that are not here: the error says which, and where."""

from __future__ import annotations

import io
import pickle
import warnings

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.serialization.pickles import archive

FORMS = {"zip": {}, "legacy": {"_use_new_zipfile_serialization": False}}


def four_bits():
    scales = torch.ones(2)
    return torch.quantize_per_channel(torch.ones(2, 2), scales, torch.zeros(2), 0, torch.quint4x2)


KINDS = {
    "four bits": (four_bits, "a quantized tensor"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(2)]), "a nested tensor"),
    "complex32": (lambda: torch.ones(2, dtype=torch.complex32), "of the dtype torch.complex32"),
    "dtype": (lambda: torch.complex32, "of the dtype torch.complex32"),
    "sparse parameter": (lambda: torch.nn.Parameter(torch.eye(2).to_sparse()), "a sparse param"),
}


def written(value, **options):
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(value, stream, **options)
    stream.seek(0)
    return stream


@pytest.mark.filterwarnings("ignore")  # PyTorch's of such tensors, and ours of weights_only=False
@pytest.mark.parametrize("weights_only", (True, False))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", KINDS)
def test_kinds(name, form, weights_only):
    make, kind = KINDS[name]
    if form == "legacy" and name == "complex32":
        pytest.skip("PyTorch does not save it in this format")
    good = torch.ones(2)
    for value, path in (
        (make(), "the object"),
        ({"a": {"w": good}, "b": [good, (make(),)]}, "['b'][1][0]"),
        ({"model": {"fc.weight": make()}, "epoch": 3}, "['model']['fc.weight']"),
        ({"a": {}, "b": make(), 7: good}, "['b']"),
        ([{3: make()}], "[0][3]"),
    ):
        stream = written(value, **FORMS[form])
        with pytest.raises(pickle.UnpicklingError) as caught:
            tlc.load(stream, weights_only=weights_only)
        message = str(caught.value)
        assert f"not supported here: {path} is {kind}" in message
        assert "weights_only" not in message  # it would not help


def test_load_error_lists_five_foreign_tensors():
    stream = written({f"q{n}": four_bits() for n in range(8)})
    with pytest.raises(pickle.UnpicklingError) as caught:
        tlc.load(stream)
    message = str(caught.value)
    assert message.count("is a quantized tensor") == 5 and message.endswith("; and 3 more")


FUNCTION = b"ctorch._utils\n_rebuild_nested_tensor\n"
HOSTILE = {
    "state": FUNCTION + b")R}b",
    "as a key": b"}" + FUNCTION + b")RK\x01s",
    "in a set": b"cbuiltins\nset\n(]" + FUNCTION + b"atR",
    "of itself": b"]q\x00h\x00a" + FUNCTION + b"a",
    "deep": b"]" * 50_000 + FUNCTION + b"a" * 50_000,
    "long key": b"}X\x00\x00\x10\x00" + b"k" * 0x100000 + FUNCTION + b"s",
    "shared": FUNCTION + b"q\x00" + b"h\x00\x86q\x00" * 60,
    "dropped": b"]" + FUNCTION + b"0",
    "an attribute": b"ccollections\nOrderedDict\n)R}X\x01\x00\x00\x00a" + FUNCTION + b"sb",
    "items": FUNCTION + b"K\x01K\x02s",
    "list of items": FUNCTION + b"(K\x01e",
    "new object": FUNCTION + b")\x81",
    "name of a storage": b"(" + FUNCTION * 5 + b"tQ",
    "size": b"ctorch\nSize\n(" + FUNCTION + b"tR",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_of_an_attacker(name):
    with pytest.raises(pickle.UnpicklingError) as caught:
        tlc.load(archive(b"\x80\x02" + HOSTILE[name] + b"."))
    assert len(str(caught.value)) < 2000

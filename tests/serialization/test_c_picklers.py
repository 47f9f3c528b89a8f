"""Storages in ordinary pickles and copies, and `save` through a pickler in C, as cloudpickle's."""

from __future__ import annotations

import copy
import io
import pickle
import types
import warnings
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc

BOTH = pytest.mark.parametrize("lib", [torch, tlc], ids=["torch", "here"])


class Pickler(pickle.Pickler):
    """Pickles functions by what they return: as cloudpickle does, it has a say in what it knows."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, types.LambdaType) and obj.__name__ == "<lambda>":
            return str, (obj(),)
        return NotImplemented


SIMPLE = types.SimpleNamespace(__name__="simple", Pickler=Pickler, Unpickler=pickle.Unpickler)


def typed(x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x.storage()


@BOTH
def test_saved_by_a_pickler_in_c(lib: Any) -> None:
    x = lib.arange(6.0)
    layer = lib.nn.Linear(2, 2)
    layer.tied, layer.text = layer.weight, lambda: "a lambda"
    layer.kinds = [lib.float16, lib.device("cpu"), lib.Size([2]), lib.sparse_coo]
    layer.narrow = lib.nn.Parameter(lib.ones(2, dtype=lib.bfloat16))
    given = {"layer": layer, "x": x, "part": x[2:4], "storage": typed(lib.ones(2))}
    file = io.BytesIO()
    lib.save(given, file, pickle_module=SIMPLE)
    file.seek(0)
    found = lib.load(file, weights_only=False)
    again = found["layer"]
    assert again.tied is again.weight and again.text == "a lambda"
    assert again.kinds == layer.kinds
    assert lib.equal(again.weight, layer.weight) and lib.equal(again.narrow, layer.narrow)
    found["x"][3] = 50.0
    assert found["part"].tolist() == [2.0, 50.0]
    assert found["storage"].tolist() == [1.0, 1.0]


@BOTH
def test_typed_storages_are_pickled(lib: Any) -> None:
    x = lib.arange(3, dtype=lib.int16)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        found = pickle.loads(pickle.dumps(typed(x), protocol=protocol))
        assert (found.tolist(), found.dtype) == ([0, 1, 2], lib.int16)


def test_untyped_storages_are_pickled() -> None:
    """PyTorch's pickle refers to a dtype that they have not, and fails."""
    x = tlc.arange(6.0)
    storage = x.untyped_storage()
    one, other = pickle.loads(pickle.dumps((storage, x[2:].untyped_storage())))
    assert one.tolist() == other.tolist() == storage.tolist()
    assert one.fill_(0).nbytes() == 24 and x[1] == 1.0
    meta = pickle.loads(pickle.dumps(tlc.empty(5, device="meta").untyped_storage()))
    assert (meta.nbytes(), meta.device.type) == (20, "meta")


@BOTH
def test_copies_share_what_was_shared(lib: Any) -> None:
    x = lib.arange(6.0)
    storage, other, whole, part = copy.deepcopy((x.untyped_storage(), typed(x), x, x[2:4]))
    storage.fill_(0)
    assert whole.tolist() == [0.0] * 6 and part.tolist() == [0.0] * 2 == other.tolist()[:2]
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    x.untyped_storage().resize_(40)
    bits, part, whole = copy.deepcopy((x.view(lib.int32), x[2:4], x))
    bits.fill_(0)
    assert whole.tolist() == [0.0] * 6 and part.tolist() == [0.0] * 2
    for source in (x.untyped_storage(), typed(x)):
        copied = copy.copy(source)
        assert copied.data_ptr() != x.data_ptr() and copied.tolist() == source.tolist()

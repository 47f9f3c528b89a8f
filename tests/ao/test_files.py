"""Files of quantized models: PyTorch's are read here, and those written here by PyTorch."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.ao.models import LIBRARIES, leaves, random

pytestmark = pytest.mark.filterwarnings("ignore")  # of `weights_only=False`, and PyTorch's
MODELS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda lib: made(lib, lib.nn.Linear(6, 5)),
    "no bias": lambda lib: made(lib, lib.nn.Linear(6, 5, bias=False)),
    "float16": lambda lib: made(lib, lib.nn.Linear(6, 5), lib.float16),
    "channels": lambda lib: lib.ao.quantization.quantize_dynamic(
        lib.nn.Sequential(lib.nn.Linear(6, 5)),
        {lib.nn.Linear: lib.ao.quantization.per_channel_dynamic_qconfig},
    ),
    "LSTM": lambda lib: made(lib, lib.nn.LSTM(6, 5, 2, bidirectional=True)),
    "GRU of float16": lambda lib: made(lib, lib.nn.GRU(6, 5), lib.float16),
    "LSTMCell": lambda lib: made(lib, lib.nn.LSTMCell(6, 5)),
    "RNNCell": lambda lib: made(lib, lib.nn.RNNCell(6, 5, nonlinearity="relu")),
}
SAFE = ("linear", "no bias", "float16", "channels")  # the others name a class in C++


def made(lib: Any, module: Any, dtype: Any = None) -> Any:
    return lib.ao.quantization.quantize_dynamic(lib.nn.Sequential(module), dtype=dtype or lib.qint8)


def answer(lib: Any, model: Any, name: str) -> list[Any]:
    x = random(3, 6) if "Cell" in name else random(3, 2, 6)
    with lib.no_grad():
        return leaves(model(lib.tensor(x)))


def through_a_file(value: Any, writer: Any, reader: Any, weights_only: bool, **options: Any) -> Any:
    stream = io.BytesIO()
    writer.save(value, stream, **options)
    stream.seek(0)
    return reader.load(stream, weights_only=weights_only)


def expect_equal(found: list[Any], expected: list[Any]) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


# PyTorch itself does not read its older format: it packs weights whose bytes are not there yet.
@pytest.mark.parametrize(
    ("reader", "zipped"),
    [(tlc, True), (tlc, False), (torch, True)],
    ids=["by us", "older, by us", "by PyTorch"],
)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("writer", LIBRARIES, ids=["ours", "PyTorch's"])
def test_states_and_models(writer: Any, reader: Any, name: str, zipped: bool) -> None:
    model = MODELS[name](writer)
    expected = answer(writer, model, name)
    options = {"_use_new_zipfile_serialization": zipped}
    for weights_only in [True, False] if name in SAFE else [False]:
        state = through_a_file(model.state_dict(), writer, reader, weights_only, **options)
        again = MODELS[name](reader)
        again.load_state_dict(state)
        expect_equal(answer(reader, again, name), expected)
        assert repr(again) == repr(model)
    whole = through_a_file(model, writer, reader, False, **options)
    expect_equal(answer(reader, whole, name), expected)


@pytest.mark.parametrize("name", MODELS)
def test_states_have_the_same_entries(name: str) -> None:
    states = [MODELS[name](lib).state_dict() for lib in LIBRARIES]
    assert [*states[0]] == [*states[1]]
    assert states[0]._metadata == states[1]._metadata
    for a, b in zip(*[state.values() for state in states], strict=True):
        if isinstance(b, tuple):
            assert [part is None for part in a] == [part is None for part in b]
            assert a[0].shape == b[0].shape and str(a[0].dtype) == str(b[0].dtype)
        elif isinstance(b, torch.Tensor):
            assert a.tolist() == b.tolist() and str(a.dtype) == str(b.dtype)


@pytest.mark.parametrize("name", MODELS)
def test_copies(name: str) -> None:
    model = MODELS[name](tlc)
    expected = answer(tlc, model, name)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        for a, b in zip(answer(tlc, again, name), expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["LSTM", "LSTMCell"])
def test_classes_in_c_are_not_weights(name: str) -> None:
    for lib in LIBRARIES:
        with pytest.raises(pickle.UnpicklingError, match="ScriptObject"):
            through_a_file(MODELS[name](lib).state_dict(), lib, lib, True)


def test_another_class_in_c() -> None:
    with pytest.raises(NotImplementedError, match="no class __torch__"):
        tlc.ScriptObject().__setstate__(((), "__torch__.Other"))


def test_an_attribute_of_a_quantized_tensor() -> None:
    q = tlc.quantize_per_tensor(tlc.ones(2), 0.5, 0, tlc.qint8)
    q.note = "kept"
    assert through_a_file(q, tlc, tlc, True).note == "kept" == copy.deepcopy(q).note


def test_a_view_keeps_its_memory() -> None:
    q = tlc.quantize_per_tensor(tlc.tensor(random(3, 4)), 0.1, 0, tlc.quint8)
    again = through_a_file([q, q.t()], tlc, torch, True)
    assert again[0].int_repr().tolist() == q.int_repr().tolist()
    assert again[1].int_repr().tolist() == q.t().int_repr().tolist()


@pytest.mark.parametrize("weights_only", [True, False])
def test_float_zero_points_are_not_here(weights_only: bool) -> None:
    q = torch.quantize_per_channel(torch.ones(2, 2), torch.ones(2), torch.zeros(2), 0, torch.quint8)
    with pytest.raises((pickle.UnpicklingError, TypeError), match=r"are not of torch.float64"):
        through_a_file(q, torch, tlc, weights_only)

"""Weights in .npz files, laid out as Chainer's serializers lay them out."""

from __future__ import annotations

import errno
import gc
import io

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import nn, optim
from tensorflow_lite_clone.serialization import load_npz, save_npz
from tests.device import DEVICE


def network(seed: int) -> nn.Module:
    tlc.manual_seed(seed)
    layers = nn.ModuleDict({"body": nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))})
    return layers.to(DEVICE)


def same(a, b) -> bool:
    return set(a) == set(b) and all(
        a[k].dtype == b[k].dtype and a[k].tolist() == b[k].tolist() for k in a
    )


@pytest.mark.parametrize("compression", [True, False])
def test_modules(compression, tmp_path):
    one, other = network(0), network(1)
    one["body"](tlc.randn(4, 3, device=DEVICE))
    save_npz(tmp_path / "m.npz", one, compression)
    with np.load(tmp_path / "m.npz") as arrays:
        assert sorted(arrays.files) == sorted(name.replace(".", "/") for name in one.state_dict())
        assert arrays["body/0/weight"].tolist() == one["body"][0].weight.tolist()
    assert not same(one.state_dict(), other.state_dict())
    load_npz(tmp_path / "m.npz", other)
    assert same(one.state_dict(), other.state_dict())


def test_parts_and_missing_names(tmp_path):
    one, part = network(0), nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).to(DEVICE)
    save_npz(tmp_path / "m.npz", one)
    load_npz(tmp_path / "m.npz", part, path="body/")
    assert same(one["body"].state_dict(), part.state_dict())
    with pytest.raises(KeyError, match="0/weight is not a file in the archive"):
        load_npz(tmp_path / "m.npz", part)
    before = part[0].weight.tolist()
    load_npz(tmp_path / "m.npz", part, strict=False)
    assert part[0].weight.tolist() == before


@pytest.mark.parametrize("kind", ["Adam", "SGD"])
def test_optimizers(kind):
    def trained(steps: int):
        model = network(0)["body"]
        options = {"momentum": 0.9} if kind == "SGD" else {"betas": (0.8, 0.95)}
        optimizer = getattr(optim, kind)(model.parameters(), lr=0.5, **options)
        for _ in range(steps):
            optimizer.zero_grad()
            model(tlc.ones(2, 3, device=DEVICE) * tlc.tensor([[1.0], [2.0]], device=DEVICE)).pow(
                3
            ).sum().backward()
            optimizer.step()
        return optimizer

    stream = io.BytesIO()
    one, fresh = trained(2), trained(0)
    one.param_groups[0]["lr"] = 0.25
    save_npz(stream, one)
    stream.seek(0)
    load_npz(stream, fresh)
    mine, loaded = one.state_dict(), fresh.state_dict()
    assert mine["param_groups"] == loaded["param_groups"]
    assert loaded["param_groups"][0]["lr"] == 0.25 and mine["state"]
    assert set(mine["state"]) == set(loaded["state"])
    for key, entry in mine["state"].items():
        assert same(entry, loaded["state"][key])


@pytest.mark.parametrize("name", ["bool", "uint8", "int64", "float16", "bfloat16", "complex64"])
def test_dtypes(name):
    x = tlc.tensor([[0, 1, 2], [3, 4, 5]], dtype=getattr(tlc, name), device=DEVICE)
    stream = io.BytesIO()
    save_npz(stream, {"a": x, "b.c": x[:, 1]})
    stream.seek(0)
    target = {"a": tlc.zeros_like(x), "b.c": tlc.zeros(2, dtype=x.dtype, device=DEVICE)}
    load_npz(stream, target)
    assert same(target, {"a": x, "b.c": x[:, 1]}) and target["a"].device == x.device


def test_nothing_is_executed(tmp_path):
    np.savez(tmp_path / "bad.npz", a=np.array([print], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        load_npz(tmp_path / "bad.npz", {"a": tlc.zeros(1)})
    with pytest.raises(TypeError, match="not builtin_function"):
        save_npz(tmp_path / "new.npz", {"a": print})
    assert not (tmp_path / "new.npz").exists()


def test_the_first_of_several_archives_in_a_stream():
    stream = io.BytesIO(b"before")
    stream.seek(6)
    for number in (1.0, 2.0):
        save_npz(stream, {"x": tlc.full((3,), number)})
    stream.write(b"behind")
    stream.seek(6)
    state = {"x": tlc.zeros(3)}
    load_npz(stream, state)
    assert state["x"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("room", range(0, 400, 57))
def test_a_stream_that_breaks(room, recwarn):
    class Full(io.BytesIO):
        def write(self, data):
            if self.tell() + len(data) > room:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data)

    with pytest.raises(OSError, match="No space left"):
        save_npz(Full(), {"x": tlc.arange(100.0)}, compression=False)
    gc.collect()
    assert not recwarn  # such as that of an exception in ZipFile.__del__

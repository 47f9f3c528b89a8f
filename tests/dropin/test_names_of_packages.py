"""What packages ask of PyTorch's lesser rooms: equal to PyTorch, or refused with a reason."""

from __future__ import annotations

import json

import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import fx, profiler
from tensorflow_lite_clone.nn.parallel import scatter_gather


def test_schedule():
    for given in (
        {"wait": 1, "warmup": 1, "active": 2, "repeat": 2},
        {"wait": 0, "warmup": 1, "active": 1},
    ):
        ours, theirs = profiler.schedule(**given), torch.profiler.schedule(**given)
        assert [ours(i).name for i in range(12)] == [theirs(i).name for i in range(12)]


def test_profile(tmp_path):
    with profiler.profile(record_shapes=True) as profiled:
        with profiler.record_function("mine"):
            tlc.ones(3, 2) @ tlc.ones(2, 4)
        tlc.ones(2) + 1
    sums = {event.key: event for event in profiled.key_averages()}
    assert sums["mine"].count == 1 and sums["add"].count == 1
    assert sums["mine"].cpu_time_total >= sums["mine"].self_cpu_time_total > 0
    assert "mine" in profiled.key_averages().table(sort_by="cpu_time_total", row_limit=5)
    profiled.export_chrome_trace(str(tmp_path / "trace.json"))
    found = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [event for event in found if event["ph"] == "X"]
    assert [span["name"] for span in spans][0] == "mine"
    tlc.ones(2) + 1
    assert len(profiled.events()) == len(spans)


def marked(x):
    return x


def test_fx_marks_and_refuses():
    code = "def f(x):\n    return x\nassert wrap(f) is f and wrap('len') == 'len'"
    exec(code, {"wrap": fx.wrap})
    for lib in (fx, torch.fx):
        with pytest.raises(NotImplementedError):
            lib.wrap(marked)
        with pytest.raises(RuntimeError):
            lib.wrap(3)
    with pytest.raises(NotImplementedError):
        fx.symbolic_trace(tlc.nn.Linear(1, 1))


def test_scatter_gather():
    value = {"x": tlc.arange(4), "y": 3}
    pieces = scatter_gather.scatter((value,), ["cpu", "cpu"])
    assert [piece[0]["x"].tolist() for piece in pieces] == [[0, 1], [2, 3]]
    assert scatter_gather.gather([piece[0]["x"] for piece in pieces], -1).tolist() == [0, 1, 2, 3]
    assert scatter_gather.gather([tlc.tensor(1), tlc.tensor(2)], -1).tolist() == [1, 2]


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_limits_of_float8(name):
    ours, theirs = tlc.finfo(getattr(tlc, name)), torch.finfo(getattr(torch, name))
    for limit in ("bits", "max", "min", "eps", "tiny", "resolution"):
        assert getattr(ours, limit) == getattr(theirs, limit)


def test_functions_that_are_never_captured_call_each_other():
    inner = tlc.compiler.disable(lambda x: x + 1)
    outer = tlc.compiler.disable(lambda x: inner(x) * 2)
    assert outer(tlc.ones(1)).item() == 4 and outer(tlc.ones(1)).item() == 4


def test_aten_names_are_the_functions():
    assert tlc.ops.aten.add.Tensor(tlc.ones(1), 2).item() == 3
    assert tlc.ops.aten.add.Tensor is tlc.ops.aten.add.Tensor
    with pytest.raises(NotImplementedError):
        tlc.ops.aten._to_copy.default(tlc.ones(1))
    assert not hasattr(tlc.ops.aten, "nonsense")

"""A batch over several devices of one process."""

from __future__ import annotations

import copy
from importlib import import_module

import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn.parallel import (
    DataParallel,
    _functions,
    comm,
    data_parallel,
    gather,
    parallel_apply,
    replicate,
    scatter,
)
from tests import pair_backend  # noqa: F401  (two devices without a GPU)
from tests.device import DEVICE

PLACES = [
    pytest.param(("pair:0", "pair:1"), id="pair"),
    pytest.param((0, 1), id="cuda", marks=[pytest.mark.cuda, pytest.mark.multi_gpu]),
]
pytestmark = pytest.mark.skipif(DEVICE == "strict", reason="the devices are the test's own")


class Model(nn.Module):
    """Layers with statistics, and one that is used twice; the outputs are nested."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.twice = nn.Linear(4, 4)
        self.again = self.twice
        self.register_buffer("calls", tlc.zeros(()))

    def forward(self, x, *, scale=1.0):
        self.calls += 1
        h = self.again(self.twice(self.norm(self.first(x))).tanh())
        return {"h": h * scale, "sizes": (h.sum(), None)}


def home(place):
    return tlc.device("cuda", place) if isinstance(place, int) else tlc.device(place)


def close(one, other):
    assert tlc.allclose(one.cpu(), other.cpu(), 1e-10, 1e-12)


@pytest.mark.parametrize("places", PLACES)
def test_gradients_and_statistics(places):
    model = Model().double()
    halves = model, copy.deepcopy(model)
    x = tlc.randn(5, 3, dtype=tlc.float64)
    whole = DataParallel(copy.deepcopy(model).to(home(places[0])), places, dim=0)
    results = [half(part, scale=2.0) for half, part in zip(halves, x.chunk(2), strict=True)]
    sum(result["h"].pow(2).sum() for result in results).backward()
    for _ in range(2):
        whole.zero_grad()
        given = x.to(home(places[0])).requires_grad_()
        result = whole(given, scale=2.0)
        result["h"].pow(2).sum().backward()
        if whole.module.calls == 1:
            # Buffers of the first device's copy are the module's own.
            close(whole.module.norm.running_mean, model.norm.running_mean)
    assert result["h"].device == home(places[0])
    close(result["h"], tlc.cat([each["h"] for each in results]))
    close(result["sizes"][0], tlc.stack([each["sizes"][0] for each in results]))
    assert result["sizes"][1] is None and given.grad.shape == (5, 3)
    for name, parameter in whole.module.named_parameters():
        expected = sum(half.get_parameter(name).grad for half in halves)
        assert parameter.grad.device == home(places[0])
        close(parameter.grad, expected)


@pytest.mark.parametrize("places", PLACES)
def test_replicas(places):
    model = Model().to(home(places[1]))
    copies = replicate(model, places)
    assert [c.first.weight.device for c in copies] == [home(place) for place in places]
    assert copies[1].first.weight is model.first.weight
    assert copies[0].twice is copies[0].again and copies[0].twice.weight is copies[0].again.weight
    assert list(copies[0].parameters()) == [] and len(list(model.parameters())) == 6
    assert copies[0].calls.device == home(places[0])
    assert not replicate(model, places, detach=True)[0].first.weight.requires_grad
    inputs = [tlc.ones(2, 3, device=home(place)) for place in places]
    one, other = parallel_apply(copies, inputs, devices=places)
    close(one["h"], other["h"])
    (one["h"].sum().to(home(places[1])) + other["h"].sum()).backward()
    assert model.first.bias.grad is not None


@pytest.mark.parametrize("places", PLACES)
def test_fewer_samples_than_devices(places):
    model = nn.Linear(2, 2).to(home(places[0]))
    x = tlc.ones(1, 2, device=home(places[0]))
    close(DataParallel(model, places)(x), model(x))
    close(data_parallel(model, x, places, output_device=places[1]), model(x))
    assert data_parallel(model, x, places, output_device=places[1]).device == home(places[1])
    assert [piece.device for piece in scatter(x.expand(4, 2), places)] == [
        home(place) for place in places
    ]
    assert gather([x, x], places[1]).device == home(places[1])


@pytest.mark.parametrize("places", PLACES)
def test_errors(places):
    class Failing(nn.Module):
        def forward(self, x):
            raise KeyError("the model's own")

    with pytest.raises(KeyError, match="the model's own") as caught:
        DataParallel(Failing(), places)(tlc.ones(4, device=home(places[0])))
    layer, replica = caught.value.__notes__
    assert layer.startswith("In layer Failing: ")
    assert replica == f"raised in replica 0 on device {home(places[0])}"
    elsewhere = DataParallel(nn.Linear(2, 2).to(home(places[1])), places)
    with pytest.raises(RuntimeError, match=r"found one of them on device: \w+:1"):
        elsewhere(tlc.ones(2, 2))
    with pytest.raises(AssertionError, match="number of modules 1 is not equal"):
        parallel_apply([nn.ReLU()], [1, 2])


def test_one_device_and_none():
    model = nn.Linear(2, 2)
    x = tlc.ones(3, 2)
    close(DataParallel(copy.deepcopy(model), [])(x), model(x))
    one = DataParallel(copy.deepcopy(model), ["pair:1"])
    assert one.module.weight.device == tlc.device("pair:1")
    close(one(x), model(x))


@pytest.mark.parametrize("places", PLACES)
def test_traffic_between_devices(places):
    homes = [home(place) for place in places]
    x, y = (tlc.randn(4, 3).to(homes[0]) for _ in range(2))
    copies = comm.broadcast(x, homes)
    assert [copy.device for copy in copies] == homes and tlc.equal(copies[1].cpu(), x.cpu())
    rows = comm.broadcast_coalesced([x, y], homes)
    sums = comm.reduce_add_coalesced(rows, homes[1])
    assert [total.device for total in sums] == [homes[1]] * 2
    assert tlc.equal(sums[1].cpu(), 2 * y.cpu())
    parts = comm.scatter(x, homes, [1, 3])
    assert [part.shape[0] for part in parts] == [1, 3]
    assert [part.device for part in parts] == homes
    assert tlc.equal(comm.gather(parts, 0, "cpu"), x.cpu())
    out = [tlc.zeros_like(part) for part in parts]
    assert tlc.equal(comm.scatter(x, out=out)[1].cpu(), x[1:].cpu())
    assert tlc.equal(comm.gather(parts, out=tlc.empty(4, 3)), x.cpu())
    with pytest.raises(ValueError, match="invalid size"):
        comm.reduce_add([x, y[1:]], homes[0])
    with pytest.raises(RuntimeError, match="Exactly one"):
        comm.broadcast(x)


@pytest.mark.parametrize("places", PLACES)
def test_traffic_under_autograd(places):
    homes = [home(place) for place in places]
    x, y = (tlc.randn(2, 3).to(homes[0]).requires_grad_() for _ in range(2))
    a, b, c, d = _functions.Broadcast.apply(homes, x, y)
    assert [z.device for z in (a, b, c, d)] == [homes[0], homes[0], homes[1], homes[1]]
    whole = _functions.Gather.apply(homes[0], 0, a * 2, c * 3)
    assert whole.shape == (4, 3) and whole.device == homes[0]
    numbers = _functions.Gather.apply(homes[0], 0, b.sum(), d.sum() * 5)
    (whole.sum() + numbers.sum()).backward()
    assert x.grad.eq(5).all() and y.grad.eq(6).all()
    z = tlc.arange(8.0).to(homes[0]).requires_grad_()
    first, second = _functions.Scatter.apply(homes, [3, 5], 0, z)
    (first.sum() * 2 + second.sum().to(homes[0])).backward()
    assert z.grad.tolist() == [2.0] * 3 + [1.0] * 5


@pytest.mark.parametrize("lib", [tlc, torch], ids=["ours", "pytorch"])
def test_traffic_refuses_the_cpu(lib):
    comm_of, functions = (
        import_module(f"{lib.__name__}.{name}") for name in ("cuda.comm", "nn.parallel._functions")
    )
    x = lib.ones(2)
    for call in (
        lambda: comm_of.broadcast(x, ["cpu"]),
        lambda: comm_of.broadcast_coalesced([x], ["cpu"]),
        lambda: comm_of.scatter(x, ["cpu", "cpu"]),
    ):
        with pytest.raises(ValueError, match="Expected a non cpu device, but got: cpu"):
            call()
    for call in (
        lambda: comm_of.reduce_add([x, x], 0),
        lambda: functions.Broadcast.apply([0, 1], x),
        lambda: functions.Gather.apply(0, 0, x, x),
    ):
        with pytest.raises(AssertionError):
            call()

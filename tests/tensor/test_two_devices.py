"""Two devices of one kind, on the pair of `tests.pair_backend`, whose arrays watch over the rules.

What works here while the other device is current works on machines with several GPUs; what those
have besides (streams, memory, graphs) is in tests/cuda/test_two_devices.py.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
import tests.pair_backend  # noqa: F401  registers it
from tests.cuda.sweep import SMOOTH, SWEEP, data
from tests.pair_backend.backend import current, device

ONE, OTHER = "pair:0", "pair:1"


def ones(place: str = OTHER, *shape: int) -> tlc.Tensor:
    return tlc.ones(*(shape or (3,)), device=place)


def test_the_pair_watches() -> None:
    x = ones()
    with pytest.raises(AssertionError, match="pair:1 was used while pair:0 is current"):
        x._storage.array + 1
    with device(1):
        x._storage.array + 1


def test_names() -> None:
    assert tlc.ones(2, device="pair").device == tlc.device(ONE)
    with device(1):
        x = tlc.ones(2, device="pair")
    assert x.device == tlc.device(OTHER) != tlc.device(ONE)
    assert x.to("pair").device == tlc.device(ONE)  # the current one
    assert x.to(OTHER) is x
    assert len({tlc.device(ONE), tlc.device("pair", 0), tlc.device(OTHER)}) == 2
    tlc.set_default_device(OTHER)
    try:
        assert tlc.arange(3).device == tlc.device(OTHER)
    finally:
        tlc.set_default_device(None)
    with tlc.device(OTHER):
        assert tlc.linspace(0, 1, 3).device == tlc.device(OTHER)


@pytest.mark.parametrize("name", SWEEP)
def test_functions(name: str) -> None:
    x, y = data(8, 8), data(8, 8, seed=1)
    found = []
    for place in ("cpu", OTHER):
        a = x.to(place).clone().requires_grad_(name in SMOOTH)
        z = SWEEP[name](a, y.to(place))
        assert z.device == tlc.device(place)
        if name in SMOOTH:
            z.sum().backward()
            (a * a).sum().backward()
            assert a.grad.device == z.device
            z = tlc.cat([z.flatten(), a.grad.flatten()])
        found.append(z.detach().cpu().numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-5)


def test_values_and_texts() -> None:
    x = tlc.arange(6.0, device=OTHER).reshape(2, 3)
    assert x[1, 2].item() == 5.0 and x.tolist()[1] == [3.0, 4.0, 5.0] and bool(x[0, 1])
    assert repr(x[0]) == "tensor([0., 1., 2.], device='pair:1')"
    assert "..." in repr(tlc.zeros(50, 50, device=OTHER))
    again = pickle.loads(pickle.dumps(x))
    assert again.device == x.device and tlc.equal(again, x)


def test_copies_between_the_two() -> None:
    x = tlc.arange(6.0, device=ONE).reshape(2, 3)
    for source in (x, x.T, x[:, ::2], x.bfloat16(), x[:0], x[1, 1]):
        there = source.to(OTHER)
        assert there.device == tlc.device(OTHER) and there.dtype == source.dtype
        assert there.shape == source.shape and there.tolist() == source.tolist()
        y = tlc.zeros(source.shape, device=OTHER)
        y.copy_(source)
        assert y.tolist() == source.tolist()


def test_writes() -> None:
    x = ones()
    x += 1
    x *= x
    x.sub_(1).div_(3.0)
    x[0] = 5.0
    x[1:] = tlc.zeros(2, device=ONE)
    x.index_add_(0, tlc.tensor([0, 0], device=OTHER), ones(OTHER, 2))
    x[tlc.tensor([False, False, True], device=OTHER)] = 9.0
    assert x.tolist() == [7.0, 0.0, 9.0] and current.index == 0


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_cross(create_graph: bool) -> None:
    w = tlc.tensor([1.0, 2.0, 3.0], device=ONE, requires_grad=True)
    v = tlc.tensor([4.0, 5.0, 6.0], device=OTHER, requires_grad=True)
    y = (w * w).to(OTHER) * v + w.to(OTHER)
    (y.sum() + (w * 2).sum().to(OTHER)).backward(create_graph=create_graph)
    assert w.grad.device == w.device and w.grad.tolist() == [11.0, 23.0, 39.0]
    assert v.grad.device == v.device and v.grad.tolist() == [1.0, 4.0, 9.0]
    (w * 1).sum().backward()
    (v * v).sum().backward()
    assert w.grad.tolist() == [12.0, 24.0, 40.0] and v.grad.tolist() == [9.0, 14.0, 21.0]


def test_modules_and_optimizers_on_both() -> None:
    first, second = tlc.nn.Linear(3, 4).to(ONE), tlc.nn.Linear(4, 2).to(OTHER)
    parameters = [*first.parameters(), *second.parameters()]
    for make in (tlc.optim.SGD, tlc.optim.Adam, tlc.optim.AdamW, tlc.optim.RMSprop):
        optimizer = make(parameters, lr=0.01)
        for _ in range(2):
            optimizer.zero_grad(set_to_none=False)
            loss = second(first(ones(ONE, 5, 3)).relu().to(OTHER)).square().mean()
            loss.backward()
            norm = tlc.nn.utils.clip_grad_norm_(parameters, 1.0)
            assert norm.device == parameters[0].device
            optimizer.step()
        for p in parameters:
            assert all(s.device == p.device for s in optimizer.state[p].values() if s.ndim)


def test_refusals() -> None:
    x, y = ones(ONE), ones(OTHER)
    for call in (
        lambda: x + y,
        lambda: x.add_(y),
        lambda: tlc.cat([x, y]),
        lambda: x @ y,
        lambda: x + y[0],  # no host's number
        lambda: tlc.where(x > 0, x, y),
        lambda: tlc.add(x, x, out=y),
    ):
        with pytest.raises(RuntimeError, match="same device.*pair:"):
            call()


def test_random_numbers() -> None:
    tlc.manual_seed(3)
    first = tlc.rand(4, device=OTHER)
    with tlc.random.fork_rng():
        tlc.rand(4, device=OTHER)
    second = tlc.randn(4, device=OTHER)
    tlc.manual_seed(3)
    assert tlc.equal(tlc.rand(4, device=OTHER), first)
    assert tlc.equal(tlc.randn(4, device=OTHER), second)
    assert tlc.rand(4, device=ONE).tolist() == first.tolist()  # a stream of its own, seeded too
    with pytest.raises(RuntimeError, match="generator"):
        tlc.rand(2, device=OTHER, generator=tlc.Generator(ONE))


@pytest.mark.parametrize("create_graph", (False, True))
@pytest.mark.parametrize("used", ("first", "second", "both"))
@pytest.mark.parametrize(
    "places", [(a, b) for a in ("cpu", ONE, OTHER) for b in ("cpu", ONE, OTHER)]
)
def test_a_function_with_outputs_on_several_devices(places, used, create_graph) -> None:
    seen = []

    class Split(tlc.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return (x * 2).to(places[0]), (x * 3).to(places[1])

        @staticmethod
        def backward(ctx, first, second):
            seen.extend([str(first.device), str(second.device)])
            return first.cpu() * 2 + second.cpu() * 3

    x = tlc.arange(3.0, requires_grad=True)
    first, second = Split.apply(x)
    losses = {"first": [first], "second": [second], "both": [first, second, second]}[used]
    total = sum([loss.sum().cpu() for loss in losses])
    total.backward(create_graph=create_graph)
    assert seen == list(places)
    assert x.grad.tolist() == [{"first": 2, "second": 3, "both": 8}[used]] * 3

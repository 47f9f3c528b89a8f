"""Two GPUs: work on cuda:1 while cuda:0 is current, and what goes between the two."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.utils.checkpoint import checkpoint
from tests.cuda.sweep import NARROW, SMOOTH, SWEEP, data
from tests.cuda.two_devices import ONE, ZERO, cuda_0_is_current, home

pytestmark = [pytest.mark.cuda, pytest.mark.multi_gpu]
__all__ = ["cuda_0_is_current"]  # a fixture for every test here
nn, F = tlc.nn, tlc.nn.functional
DEVICES = (ZERO, ONE)
OTHER = {ZERO: ONE, ONE: ZERO}


# ---- names, and what is current


def test_devices() -> None:
    assert tlc.device(ONE) == tlc.device("cuda", 1) == tlc.device(1) != tlc.device(ZERO)
    assert len({tlc.device(ZERO), tlc.device(ONE), tlc.device("cuda", 1), tlc.device("cuda")}) == 3
    x = tlc.ones(2, device=ONE)
    assert home(x) == x.get_device() == 1 and repr(x) == "tensor([1., 1.], device='cuda:1')"
    assert tlc.cuda.get_device_properties(1).total_memory > 0 and tlc.cuda.get_device_name(ONE)
    assert tlc.cuda.can_device_access_peer(0, 1) in (True, False)
    for use in (lambda i: tlc.ones(1, device=i), lambda i: x.to(i), lambda i: x.cuda(i)):
        assert home(use(0)) == 0 and home(use(1)) == 1


def test_cuda_means_the_current_device() -> None:
    x = tlc.ones(2, device=ONE)
    assert home(x.to("cuda")) == 0 and x.to(ONE) is x and home(x.cuda()) == 0
    with tlc.cuda.device(1):
        assert tlc.cuda.current_device() == 1
        assert home(tlc.ones(2, device="cuda")) == home(tlc.rand(2, device="cuda")) == 1
        assert x.to("cuda") is x and home(tlc.ones(2).cuda()) == 1
        with tlc.cuda.device("cuda:0"):
            assert home(tlc.ones(2, device="cuda")) == 0
        with tlc.cuda.device(None), tlc.cuda.device(-1):
            assert tlc.cuda.current_device() == 1
        assert home(tlc.ones(2, device=ZERO) + 1) == 0
    with tlc.cuda.device_of(x):
        assert tlc.cuda.current_device() == 1
    with tlc.cuda.device_of(tlc.ones(1)):
        assert tlc.cuda.current_device() == 0
    with pytest.raises(ZeroDivisionError), tlc.cuda.device(1):
        1 / 0  # noqa: B018
    assert tlc.cuda.current_device() == 0


def test_default_device() -> None:
    tlc.set_default_device(ONE)
    try:
        layer = nn.Linear(3, 2)
        made = (tlc.zeros(2), tlc.arange(3), tlc.rand(2), tlc.tensor([1.0]), tlc.eye(2), layer.bias)
        assert [home(x) for x in made] == [1] * 6
        optimizer = tlc.optim.Adam(layer.parameters())
        layer(tlc.ones(2, 3)).sum().backward()
        optimizer.step()
    finally:
        tlc.set_default_device(None)
    with tlc.device(ONE):
        assert home(tlc.linspace(0, 1, 5)) == 1
    assert tlc.ones(1).is_cpu


def test_other_threads() -> None:
    """A thread begins with cuda:0, whatever is current elsewhere."""
    x, seen = tlc.arange(4.0, device=ONE), []

    def work() -> None:
        seen.append((tlc.cuda.current_device(), (x * 2).sum().item()))

    with tlc.cuda.device(1):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [(0, 12.0)]


# ---- functions on cuda:1 while cuda:0 is current


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*[(name, "float32") for name in SWEEP], *[(name, "bfloat16") for name in NARROW]],
)
def test_functions(name: str, dtype: str) -> None:
    x, y = [data(8, 8, seed=seed).to(getattr(tlc, dtype)) for seed in (0, 1)]
    expected = SWEEP[name](x, y)
    found = SWEEP[name](x.to(ONE), y.to(ONE))
    assert home(found) == 1 and found.dtype == expected.dtype
    slack = 5e-2 if dtype == "bfloat16" else 3e-4
    np.testing.assert_allclose(
        found.cpu().float().numpy(), expected.float().numpy(), rtol=slack, atol=slack
    )


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name: str) -> None:
    grads = []
    for place in ("cpu", ONE):
        x, y = data(8, 8).to(place), data(8, 8, seed=1).to(place)
        x.requires_grad_()
        for _ in range(2):  # the second accumulates
            (SWEEP[name](x, y) * 2).sum().backward()
        grads.append(x.grad)
    assert home(grads[1]) == 1
    np.testing.assert_allclose(grads[1].cpu().numpy(), grads[0].numpy(), rtol=1e-3, atol=1e-3)


def test_second_derivatives() -> None:
    x = data(8).to(ONE).requires_grad_()
    (g,) = tlc.autograd.grad((x.tanh() * x).sum(), x, create_graph=True)
    (h,) = tlc.autograd.grad((g * g).sum(), x)
    assert home(g) == home(h) == 1
    x.sum().backward(create_graph=True)
    (x * x).sum().backward(create_graph=True)
    assert home(x.grad) == 1


def test_values_are_read_back() -> None:
    x = tlc.arange(6.0, device=ONE).reshape(2, 3)
    assert x[1, 1].item() == 4.0 and float(x[0, 2]) == 2.0 and bool(x[0, 1]) and int(x[1, 0]) == 3
    assert x.T.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert "device='cuda:1'" in repr(x.T) and "..." in repr(tlc.zeros(99, 99, device=ONE)[::2])
    assert f"{x[1, 1]:.2f}" == "4.00" and tlc.equal(x, x.clone()) and tlc.allclose(x, x)
    for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.deepcopy(x.T).T, x.clone()):
        assert home(again) == 1 and again.tolist() == x.tolist()
    shared = tlc.from_dlpack(x)
    assert home(shared) == 1 and shared.data_ptr() == x.data_ptr()


# ---- from one device to the other


@pytest.mark.parametrize("source", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int64", "bool", "complex64"])
def test_copies(source: str, dtype: str) -> None:
    x = (data(6, 8) * 3).to(getattr(tlc, dtype)).to(source)
    views = (x, x.T, x[:, ::2], x[1:, 3], x[2, 2], x[:0], x[0].expand(4, 8), x.reshape(2, 3, 8).mT)
    for view in views:
        for non_blocking in (False, True):
            there = view.to(OTHER[source], non_blocking=non_blocking)
            assert home(there) == tlc.device(OTHER[source]).index
            assert there.shape == view.shape and there.dtype == view.dtype
            assert there.tolist() == view.tolist()
        target = tlc.zeros(view.shape, dtype=view.dtype, device=OTHER[source])
        assert home(target.copy_(view)) == home(there)
        assert target.tolist() == view.tolist()


def test_copies_keep_dense_layouts() -> None:
    x = tlc.randn(2, 3, 4, 5, device=ZERO).contiguous(memory_format=tlc.channels_last)
    assert x.to(ONE).stride() == x.stride() and tlc.equal(x.to(ONE).cpu(), x.cpu())


def test_copies_keep_to_the_order_of_both_devices() -> None:
    """A copy waits for what its source computes, and what overwrites the source for the copy."""
    tries = 20
    for streams in (False, True):
        side = [tlc.cuda.Stream(place) for place in DEVICES] if streams else [None, None]
        x = tlc.zeros(1 << 22, device=ZERO)
        tlc.cuda.synchronize(0)
        found = []
        with tlc.cuda.stream(side[1]), tlc.cuda.stream(side[0]):
            for _ in range(tries):
                for _ in range(10):
                    x += 1
                found.append(x.to(ONE).amin())
                x += 1
                x -= 1
        tlc.cuda.synchronize(0)
        tlc.cuda.synchronize(1)
        assert [f.item() for f in found] == [10.0 * (i + 1) for i in range(tries)]


def test_writes_from_the_other_device() -> None:
    x, y = tlc.zeros(4, 3, device=ONE), tlc.arange(3.0, device=ZERO)
    x[1] = y
    x[2].copy_(y.bfloat16())
    x[3, 0] = y[2]
    assert x.tolist() == [[0.0] * 3, [0.0, 1.0, 2.0], [0.0, 1.0, 2.0], [2.0, 0.0, 0.0]]
    assert home(x) == 1


def test_mixed_devices_are_refused() -> None:
    x, y = tlc.ones(2, device=ZERO), tlc.ones(2, device=ONE)
    for call in (
        lambda: x + y,
        lambda: y + x,
        lambda: x.mul_(y),
        lambda: x + y[0],
        lambda: tlc.cat([x, y]),
        lambda: tlc.where(x > 0, x, y),
        lambda: F.linear(x, y[None]),
        lambda: x @ y,
        lambda: tlc.add(x, x, out=y),
    ):
        with pytest.raises(RuntimeError, match=r"same device.*cuda:[01] and cuda:[01]"):
            call()
    assert (y + tlc.tensor(2.0)).tolist() == [3.0, 3.0]  # a zero-dim tensor of the host is a number


# ---- gradients, modules, optimizers


def test_gradients_cross() -> None:
    w = tlc.tensor([1.0, 2.0, 3.0], device=ZERO, requires_grad=True)
    v = tlc.tensor([4.0, 5.0, 6.0], device=ONE, requires_grad=True)
    c = tlc.tensor([1.0, 1.0, 2.0], requires_grad=True)
    y = (w * w).to(ONE) * v + w.to(ONE) + c.to(ONE)
    (y.sum() + (w * 2).sum().to(ONE)).backward()
    assert home(w.grad) == 0 and w.grad.tolist() == [11.0, 23.0, 39.0]
    assert home(v.grad) == 1 and v.grad.tolist() == [1.0, 4.0, 9.0]
    assert c.grad.is_cpu and c.grad.tolist() == [1.0, 1.0, 1.0]
    (v * v).sum().backward()
    assert home(v.grad) == 1 and v.grad.tolist() == [9.0, 14.0, 21.0]
    assert tlc.cuda.current_device() == 0


def network() -> Any:
    tlc.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 5),
    )  # fmt: skip


def trained(place: str, split: int | None, optimizer: str) -> list:
    """Losses of three steps on a device; with `split` the first layers are on cuda:0."""
    model = network().to(place)
    if split is not None:
        model[:split].to(ZERO)
    made = getattr(tlc.optim, optimizer)(model.parameters(), lr=0.001)
    x, t = data(16, 3, 8, 8).to(place), (tlc.arange(16) % 5).to(place)
    losses = []
    for _ in range(3):
        made.zero_grad()
        y = x if split is None else model[:split](x.to(ZERO)).to(place)
        loss = F.cross_entropy(model[split or 0 :](y), t)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        made.step()
        losses.append(loss.item())
    for p in model.parameters():
        if p.is_cuda:
            assert home(p) == home(p.grad)
            states = [s for s in made.state[p].values() if isinstance(s, tlc.Tensor)]
            assert all(home(s) == home(p) for s in states)
    return losses


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop"])
@pytest.mark.parametrize("split", [None, 4])
def test_training(split: int | None, optimizer: str) -> None:
    expected = trained("cpu", None, optimizer)
    np.testing.assert_allclose(trained(ONE, split, optimizer), expected, rtol=5e-3, atol=5e-3)


def test_modules_move() -> None:
    model = network().to(ZERO).to(ONE)
    assert all(home(t) == 1 for t in (*model.parameters(), *model.buffers()))
    state = network().cuda(0).state_dict()
    model.load_state_dict(state)
    assert all(home(t) == 1 for t in model.parameters())
    assert home(model.cuda()[0].weight) == 0
    assert home(copy.deepcopy(network().cuda(1))[0].weight) == 1


def test_loss_scaling_on_both() -> None:
    a = tlc.ones(3, device=ZERO, requires_grad=True)
    b = tlc.ones(3, device=ONE, requires_grad=True)
    optimizer = tlc.optim.SGD([a, b], lr=1.0)
    scaler = tlc.amp.GradScaler("cuda", init_scale=8.0)
    for factor, after in ((float("inf"), 1.0), (2.0, -1.0)):
        optimizer.zero_grad()
        scaler.scale((a.to(ONE) * b * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert b.tolist() == [after] * 3 and home(b.grad) == 1
    with tlc.autocast("cuda", tlc.bfloat16):
        y = b[None] @ b[:, None]
    assert y.dtype == tlc.bfloat16 and home(y) == 1


def test_hooks_functions_and_checkpoints() -> None:
    class Twice(tlc.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            assert home(g) == 1
            assert home(tlc.ones(1, device="cuda")) == 1  # the gradient's device is current
            return g * 2

    x, seen = tlc.ones(3, device=ONE, requires_grad=True), []
    y = Twice.apply(x)
    y.register_hook(lambda g: seen.append(home(g)) or g * 3)
    z = checkpoint(lambda t: (t * t).sum(), y, use_reentrant=False)
    z.backward()
    assert seen == [1] and x.grad.tolist() == [24.0] * 3


# ---- random numbers


def test_generators() -> None:
    tlc.manual_seed(5)
    x, y = tlc.rand(50, device=ZERO), tlc.rand(50, device=ONE)
    assert x.tolist() == y.tolist()  # each from its start
    tlc.cuda.manual_seed_all(6)
    x, y = tlc.rand(50, device=ZERO), tlc.rand(50, device=ONE)
    assert x.tolist() == y.tolist()
    states = tlc.cuda.get_rng_state_all()
    assert len(states) == tlc.cuda.device_count()
    z = tlc.randn(50, device=ONE)
    tlc.cuda.set_rng_state_all(states)
    assert tlc.equal(tlc.randn(50, device=ONE), z)
    with tlc.cuda.device(1):
        tlc.cuda.manual_seed(7)
        assert tlc.cuda.initial_seed() == 7
    assert tlc.cuda.initial_seed() == 6
    state = tlc.cuda.get_rng_state(1)
    x = tlc.rand(9, device=ONE)
    tlc.cuda.set_rng_state(state, ONE)
    for devices in (None, [1], [ZERO, ONE]):
        with tlc.random.fork_rng(devices=devices):
            tlc.rand(9, device=ONE)
    assert tlc.equal(tlc.rand(9, device=ONE), x)
    own = tlc.Generator(ONE).manual_seed(3)
    assert home(tlc.randint(9, (5,), device=ONE, generator=own)) == 1
    with pytest.raises(RuntimeError, match="generator"):
        tlc.rand(2, device=ZERO, generator=own)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: tlc.randn(64, device=ONE),
        lambda: tlc.randint(0, 9, (64,), device=ONE),
        lambda: tlc.randperm(64, device=ONE),
        lambda: tlc.bernoulli(tlc.full((64,), 0.5, device=ONE)),
        lambda: tlc.multinomial(tlc.ones(64, device=ONE), 9),
        lambda: tlc.multinomial(tlc.ones(64, device=ONE), 9, replacement=True),
        lambda: tlc.poisson(tlc.ones(64, device=ONE)),
        lambda: tlc.empty(64, device=ONE).exponential_(),
        lambda: tlc.empty(8, 8, device=ONE).T.normal_(2.0, 3.0),
        lambda: tlc.normal(tlc.zeros(64, device=ONE), 2.0),
        lambda: tlc.empty(64, device=ONE).bernoulli_(tlc.full((64,), 0.5)),
        lambda: F.dropout(tlc.ones(64, device=ONE), 0.5),
        lambda: tlc.rand_like(tlc.ones(64, device=ONE)),
    ],
)
def test_draws(draw: Callable[[], Any]) -> None:
    tlc.manual_seed(1)
    x = draw()
    tlc.manual_seed(1)
    with tlc.cuda.device(1):
        y = draw()
    assert home(x) == home(y) == 1 and tlc.equal(x, y)

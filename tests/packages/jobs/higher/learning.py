"""Differentiable inner loops: MAML, learned learning rates, every optimizer."""

import higher
import torch
import torch.nn.functional as F
from steps import step
from torch import nn


def model():
    return nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))


def task(phase):
    x = torch.rand(10, 1) * 4 - 2
    return x, torch.sin(x + phase)


@step("MAML: losses of the outer loop, its gradients")
def _():
    net = model()
    inner = torch.optim.SGD(net.parameters(), lr=0.1)
    outer = torch.optim.Adam(net.parameters(), lr=1e-2)
    losses = []
    for _ in range(3):
        outer.zero_grad()
        for phase in (0.0, 1.0):
            x, y = task(phase)
            with higher.innerloop_ctx(net, inner, copy_initial_weights=False) as (fast, steps):
                for _ in range(3):
                    steps.step(F.mse_loss(fast(x), y))
                loss = F.mse_loss(fast(x + 0.1), torch.sin(x + 0.1 + phase))
                loss.backward()
                losses.append(loss.item())
        grads = [p.grad.clone() for p in net.parameters()]
        outer.step()
    return losses, grads


OPTIMIZERS = {
    "SGD with momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "Adadelta": lambda p: torch.optim.Adadelta(p, lr=0.1),
    "Adamax": lambda p: torch.optim.Adamax(p, lr=0.1),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.1),
    "Rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
    "ASGD": lambda p: torch.optim.ASGD(p, lr=0.1),
}

for name in OPTIMIZERS:

    @step(f"a gradient through steps of {name}", name)
    def _(name):
        net = model()
        x, y = task(0.3)
        with higher.innerloop_ctx(
            net, OPTIMIZERS[name](net.parameters()), copy_initial_weights=False
        ) as (fast, steps):
            for _ in range(2):
                steps.step(F.mse_loss(fast(x), y))
            F.mse_loss(fast(x), y).backward()
        return [p.grad for p in net.parameters()]


@step("a learned learning rate")
def _():
    net = model()
    rate = torch.tensor(0.1, requires_grad=True)
    x, y = task(0.3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with higher.innerloop_ctx(net, optimizer, override={"lr": [rate]}) as (fast, steps):
        for _ in range(2):
            steps.step(F.mse_loss(fast(x), y))
        F.mse_loss(fast(x), y).backward()
    return rate.grad


@step("a functional module with its parameters given")
def _():
    net = model()
    functional = higher.monkeypatch(net, copy_initial_weights=True)
    fast = [p * 2 for p in functional.parameters()]
    x, _ = task(0.1)
    return functional(x, params=fast), functional(x), net(x)


@step("batch norm, recurrent and convolutional layers in the inner loop")
def _():
    net = nn.Sequential(
        nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 1)
    )
    x, y = torch.randn(8, 1, 6), torch.randn(8, 1)
    with higher.innerloop_ctx(
        net, torch.optim.SGD(net.parameters(), lr=0.1), copy_initial_weights=False
    ) as (fast, steps):
        steps.step(F.mse_loss(fast(x), y))
        F.mse_loss(fast(x), y).backward()
    # The gradient of a bias before a batch norm is nothing but rounding errors.
    return [p.grad for name, p in net.named_parameters() if name != "0.bias"]


@step("an optimizer without a differentiable form", refused=True)
def _():
    net = model()
    with higher.innerloop_ctx(net, torch.optim.RAdam(net.parameters())):
        pass

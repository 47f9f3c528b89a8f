"""Exponential moving averages of parameters."""

import torch
from steps import step
from torch_ema import ExponentialMovingAverage


def parts():
    torch.manual_seed(1)
    net = torch.nn.Linear(5, 2)
    return net, torch.optim.SGD(net.parameters(), 0.1), torch.randn(9, 5)


def train(ema, net, optimizer, x, steps=6):
    for _ in range(steps):
        optimizer.zero_grad()
        (net(x) - 1).square().mean().backward()
        optimizer.step()
        ema.update()


@step("averages beside the parameters; the parameters come back after")
def _():
    net, optimizer, x = parts()
    ema = ExponentialMovingAverage(net.parameters(), decay=0.8)
    train(ema, net, optimizer, x)
    with ema.average_parameters():
        inside = net(x)
    return inside, net(x)


@step("store, copy_to, restore")
def _():
    net, optimizer, x = parts()
    ema = ExponentialMovingAverage(net.parameters(), decay=0.8)
    train(ema, net, optimizer, x)
    ema.store()
    ema.copy_to()
    copied = net.weight.clone()
    ema.restore()
    return copied, net.weight


@step("saved and loaded; moved to another dtype")
def _():
    net, optimizer, x = parts()
    ema = ExponentialMovingAverage(net.parameters(), decay=0.8, use_num_updates=False)
    train(ema, net, optimizer, x)
    torch.save(ema.state_dict(), "ema.pt")
    other, _, _ = parts()
    again = ExponentialMovingAverage(other.parameters(), decay=0.5)
    again.load_state_dict(torch.load("ema.pt"))
    again.copy_to()
    again.to(dtype=torch.float64)
    return other.weight, again.decay, again.shadow_params


@step("a decay beyond one is refused", refused=True)
def _():
    ExponentialMovingAverage(torch.nn.Linear(2, 2).parameters(), decay=1.5)


@step("restoring what was not stored is refused", refused=True)
def _():
    net, _, _ = parts()
    ExponentialMovingAverage(net.parameters(), decay=0.5).restore()


@step("another number of parameters is refused", refused=True)
def _():
    net, _, _ = parts()
    ExponentialMovingAverage(net.parameters(), decay=0.5).update([net.weight])

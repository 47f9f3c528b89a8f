"""Averaged weights: with a warm-up, switched, several at once after the fact."""

import torch
from ema_pytorch import EMA, PostHocEMA
from steps import step
from torch import nn


def parts():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2))
    return net, torch.optim.SGD(net.parameters(), 0.1), torch.randn(12, 4)


def train(net, optimizer, x, steps, *averages):
    for _ in range(steps):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
        for average in averages:
            average.update()


@step("updates every second step after a warm-up; its outputs and its decay")
def _():
    net, optimizer, x = parts()
    ema = EMA(net, beta=0.9, update_after_step=2, update_every=2, power=3 / 4)
    train(net, optimizer, x, 12, ema)
    return ema.eval()(x), ema.get_current_decay(), ema.step, ema.ema_model[0].weight


@step("saved, loaded, copied back into the model")
def _():
    net, optimizer, x = parts()
    ema = EMA(net, beta=0.9, update_after_step=0, update_every=1)
    train(net, optimizer, x, 5, ema)
    torch.save(ema.state_dict(), "ema.pt")
    other, _, _ = parts()
    again = EMA(other, beta=0.9, update_after_step=0, update_every=1)
    again.load_state_dict(torch.load("ema.pt"))
    again.update_model_with_ema()
    return again(x), other.eval()(x), again.step


@step("no averages of some parameters, lerp by foreach, weights in another dtype")
def _():
    net, optimizer, x = parts()
    named = EMA(net, beta=0.5, update_after_step=0, update_every=1, ignore_names={"0.bias"})
    each = EMA(net, beta=0.5, update_after_step=0, update_every=1, use_foreach=True)
    switch = EMA(net, beta=0.5, update_after_step=0, update_every=1, update_model_with_ema_every=3)
    train(net, optimizer, x, 4, named, each, switch)
    return named.ema_model[0].bias, each.ema_model[3].weight, switch.ema_model[0].weight


@step("averages after the fact from checkpoints")
def _():
    net, optimizer, x = parts()
    hoc = PostHocEMA(
        net,
        sigma_rels=(0.05, 0.3),
        update_every=1,
        checkpoint_every_num_steps=3,
        checkpoint_folder="kept",
    )
    train(net, optimizer, x, 9, hoc)
    return hoc.synthesize_ema_model(sigma_rel=0.15).eval()(x)


@step("a state of another network is refused", refused=True)
def _():
    net, _, _ = parts()
    EMA(net).load_state_dict(EMA(nn.Linear(3, 2)).state_dict())


@step("averages after the fact without two widths are refused", refused=True)
def _():
    net, _, _ = parts()
    PostHocEMA(net, sigma_rels=(0.05,), checkpoint_folder="kept")

"""Optimizers with 8-bit and 32-bit states on the CPU."""

import bitsandbytes as bnb
import torch
from steps import step

NAMES = {
    "Adam": {},
    "AdamW": {},
    "Lion": {"lr": 1e-3},
    "SGD": {"lr": 1e-2, "momentum": 0.9},
    "RMSprop": {},
    "Adagrad": {},
    "AdEMAMix": {},
}


def trained(make, steps=5):
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Tanh(), torch.nn.Linear(128, 8))
    x, y = torch.randn(16, 64), torch.randn(16, 8)
    optimizer = make(net.parameters())
    losses = []
    for _ in range(steps):
        loss = torch.nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, net, optimizer


for name, options in NAMES.items():
    # AdEMAMix32bit of this version fails on the CPU, for two momenta lie in one state
    for suffix in ("8bit", "32bit") if name != "AdEMAMix" else ("8bit",):
        kind = name + suffix

        @step(f"{kind}: losses, weights, states", kind, options)
        def _(kind, options):
            losses, net, optimizer = trained(lambda p: getattr(bnb.optim, kind)(p, **options))
            state = optimizer.state[net[0].weight]
            dtypes = {key: str(v.dtype) for key, v in state.items() if isinstance(v, torch.Tensor)}
            return losses, net[0].weight, net[2].bias, dtypes


@step("the state dict of 8-bit Adam, loaded into another")
def _():
    losses, net, optimizer = trained(lambda p: bnb.optim.Adam8bit(p, lr=1e-2))
    torch.save(optimizer.state_dict(), "optimizer.pt")
    other = bnb.optim.Adam8bit(net.parameters(), lr=1e-2)
    other.load_state_dict(torch.load("optimizer.pt", weights_only=False))
    net[0].weight.grad = torch.ones_like(net[0].weight)
    other.step()
    return losses, net[0].weight


@step("GlobalOptimManager: 32 bits for one parameter; StableEmbedding")
def _():
    manager = bnb.optim.GlobalOptimManager.get_instance()
    net = torch.nn.Sequential(bnb.nn.StableEmbedding(100, 64), torch.nn.Linear(64, 64))
    manager.register_parameters(net.parameters())
    manager.override_config(net[1].weight, "optim_bits", 32)
    optimizer = bnb.optim.AdamW8bit(net.parameters(), lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.arange(100)).square().mean().backward()
        optimizer.step()
    return [str(optimizer.state[p]["state1"].dtype) for p in net.parameters()], net[1].weight


@step("PagedAdamW8bit", refused=False)
def _():
    losses, net, _ = trained(lambda p: bnb.optim.PagedAdamW8bit(p, lr=1e-2))
    return losses, net[0].weight


@step("refused: a negative learning rate", refused=True)
def _():
    bnb.optim.Adam8bit([torch.nn.Parameter(torch.ones(2))], lr=-1.0)


@step("refused: amsgrad with 8 bits", refused=True)
def _():
    bnb.optim.Adam8bit([torch.nn.Parameter(torch.ones(2))], amsgrad=True)


@step("refused: no parameters", refused=True)
def _():
    bnb.optim.Adam8bit([])

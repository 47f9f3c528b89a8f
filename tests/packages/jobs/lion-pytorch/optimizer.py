"""Lion: weights after steps, decay, cautious updates, saved and loaded."""

import torch
from lion_pytorch import Lion
from steps import step
from torch import nn


def trained(steps=5, dtype=torch.float32, **kwargs):
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(dtype)
    x = torch.randn(16, 4, dtype=dtype)
    optimizer = Lion(model.parameters(), lr=1e-2, **kwargs)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(x) - x[:, :2]).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model, optimizer


for arguments in (
    {},
    {"weight_decay": 0.1},
    {"weight_decay": 0.1, "decoupled_weight_decay": True},
    {"betas": (0.95, 0.98)},
    {"dtype": torch.float64},
):

    @step(f"losses and weights with {arguments}", arguments)
    def _(arguments):
        losses, model, _ = trained(**arguments)
        return losses, list(model.parameters())


@step("its state saved and loaded")
def _():
    _, model, optimizer = trained()
    torch.save(optimizer.state_dict(), "lion.pt")
    again = Lion(model.parameters(), lr=1e-2)
    again.load_state_dict(torch.load("lion.pt"))
    return [each["exp_avg"] for each in again.state.values()]


@step("under a schedule and clipping")
def _():
    _, model, optimizer = trained()
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).square().sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        schedule.step()
    return list(model.parameters()), schedule.get_last_lr()


@step("a negative learning rate", refused=True)
def _():
    Lion(nn.Linear(2, 2).parameters(), lr=-1.0)


@step("betas out of their range", refused=True)
def _():
    Lion(nn.Linear(2, 2).parameters(), betas=(1.5, 0.9))

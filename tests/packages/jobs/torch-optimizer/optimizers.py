"""Every optimizer: weights and state after a few steps, saved and loaded."""

import torch
import torch_optimizer
from steps import step
from torch import nn

ARGUMENTS = {
    "LARS": {"lr": 0.1},
    "SGDW": {"lr": 1e-2, "momentum": 0.9, "weight_decay": 1e-2},
    "SGDP": {"lr": 1e-2, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-2},
    "Shampoo": {"lr": 0.1, "momentum": 0.9},
    "PID": {"lr": 1e-2, "momentum": 0.9},
    "A2GradUni": {},
    "A2GradInc": {},
    "A2GradExp": {},
    "Adafactor": {},
}
NAMES = [name for name in torch_optimizer.__all__ if name not in ("get", "Lookahead", "Adahessian")]


def task():
    # Double precision: some of these divide by differences of nearly equal numbers.
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).double()
    x = torch.randn(16, 4, dtype=torch.float64)
    return model, x, x[:, :2].sin()


def trained(model, x, y, optimizer, steps=4, **kwargs):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward(**kwargs)
        optimizer.step()
        losses.append(loss.item())
    return losses


for name in NAMES:

    @step(f"{name}: losses, weights, state", name)
    def _(name):
        model, x, y = task()
        arguments = ARGUMENTS.get(name, {"lr": 1e-2})
        optimizer = getattr(torch_optimizer, name)(model.parameters(), **arguments)
        losses = trained(model, x, y, optimizer)
        state = optimizer.state_dict()
        again = getattr(torch_optimizer, name)(model.parameters(), **arguments)
        again.load_state_dict(state)
        more = trained(model, x, y, again, 1)
        first = {k: v for k, v in state["state"].get(0, {}).items() if torch.is_tensor(v)}
        return losses, more, list(model.parameters()), first


@step("Adahessian by second derivatives")
def _():
    model, x, y = task()
    optimizer = torch_optimizer.Adahessian(model.parameters(), lr=0.1, seed=3)
    return trained(model, x, y, optimizer, create_graph=True), list(model.parameters())


@step("Lookahead around Yogi; a schedule; by its name")
def _():
    model, x, y = task()
    optimizer = torch_optimizer.Lookahead(
        torch_optimizer.get("yogi")(model.parameters(), lr=1e-2), k=2, alpha=0.5
    )
    return trained(model, x, y, optimizer, 6), list(model.parameters())


@step("a schedule over RAdam, two groups of parameters")
def _():
    model, x, y = task()
    optimizer = torch_optimizer.RAdam(
        [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 1e-3}], lr=1e-2
    )
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.1)
    losses = []
    for _ in range(4):
        losses += trained(model, x, y, optimizer, 1)
        schedule.step()
    return losses, [group["lr"] for group in optimizer.param_groups]


@step("a negative learning rate", refused=True)
def _():
    torch_optimizer.Lamb(task()[0].parameters(), lr=-1.0)


@step("an unknown name", refused=True)
def _():
    torch_optimizer.get("nothing")


@step("a state of another model", refused=True)
def _():
    one = torch_optimizer.Yogi(task()[0].parameters())
    torch_optimizer.Yogi(nn.Linear(2, 2).parameters()).load_state_dict(
        {**one.state_dict(), "param_groups": one.state_dict()["param_groups"] * 2}
    )


@step("sparse gradients where there is no rule for them", refused=True)
def _():
    layer = nn.Embedding(5, 3, sparse=True)
    optimizer = torch_optimizer.Yogi(layer.parameters())
    layer(torch.tensor([1, 2])).sum().backward()
    optimizer.step()

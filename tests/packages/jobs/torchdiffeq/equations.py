"""Every solver, the adjoint method, events, a neural differential equation."""

import torch
from steps import step
from torch import nn
from torchdiffeq import odeint, odeint_adjoint, odeint_event

T = torch.linspace(0.0, 2.0, 6, dtype=torch.float64)
A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]], dtype=torch.float64)
Y0 = torch.tensor([[2.0, 0.0]], dtype=torch.float64)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)).double()

    def forward(self, t, y):
        return self.net(y**3)


for method in (
    "dopri5 dopri8 bosh3 fehlberg2 adaptive_heun euler midpoint heun2 heun3 rk4"
    " explicit_adams implicit_adams scipy_solver"
).split():

    @step(f"odeint by {method}, its gradient", method)
    def _(method):
        a = A.clone().requires_grad_(method != "scipy_solver")
        options = {"solver": "LSODA"} if method == "scipy_solver" else None
        found = odeint(
            lambda t, y: y @ a.T, Y0, T, method=method, rtol=1e-6, atol=1e-8, options=options
        )
        if a.requires_grad:
            found.square().sum().backward()
        return found, a.grad


for method in ("dopri5", "rk4", "implicit_adams"):

    @step(f"the adjoint by {method}: gradients of weights, times and the start", method)
    def _(method):
        field, y0 = Field(), Y0.clone().requires_grad_()
        times = T.clone().requires_grad_()
        odeint_adjoint(field, y0, times, method=method).square().mean().backward()
        return y0.grad, times.grad, [p.grad for p in field.parameters()]


@step("a neural differential equation trained on a spiral: losses, weights")
def _():
    truth = odeint(lambda t, y: y**3 @ A.T, Y0, T)
    field = Field()
    optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-3)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = (odeint_adjoint(field, Y0, T) - truth).abs().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, list(field.parameters())


@step("a bouncing ball: the time of an event and its gradient")
def _():
    height = torch.tensor(10.0, dtype=torch.float64, requires_grad=True)
    state = (height, torch.tensor(0.0, dtype=torch.float64))
    gravity = torch.tensor(-9.8, dtype=torch.float64)
    when, found = odeint_event(
        lambda t, s: (s[1], gravity),
        state,
        torch.tensor(0.0, dtype=torch.float64),
        event_fn=lambda t, s: s[0],
        atol=1e-8,
        rtol=1e-8,
        odeint_interface=odeint,
    )
    when.backward()
    return when, [each[-1] for each in found], height.grad


@step("an event by odeint itself; a state of several tensors; backwards in time")
def _():
    state = (Y0, torch.zeros(1, dtype=torch.float64))
    several = odeint(lambda t, s: (s[0] @ A.T, s[0].sum().reshape(1)), state, T)
    backwards = odeint(lambda t, y: y @ A.T, Y0, T.flip(0))
    when, found = odeint(
        lambda t, y: torch.ones_like(y), torch.zeros(1), torch.tensor([0.0, 1.0]),
        event_fn=lambda t, y: y - 1.5,
    )  # fmt: skip
    return several, backwards, when, found


@step("options: step size, interpolation, a norm, jumps, callbacks")
def _():
    called = []

    class Watched(Field):
        def callback_step(self, t0, y0, dt):
            called.append(float(dt))

    found = odeint(Watched(), Y0, T, method="rk4", options={"step_size": 0.15, "interp": "cubic"})
    jumped = odeint(
        lambda t, y: torch.where(t < 1, 1.0, -1.0) * y, Y0, T,
        options={"jump_t": torch.tensor([1.0]).double(), "norm": lambda y: y.abs().max()},
    )  # fmt: skip
    seminorm = odeint_adjoint(Field(), Y0, T, adjoint_options={"norm": "seminorm"})
    return found, len(called), jumped, seminorm


@step("a second derivative through the solver")
def _():
    y0 = Y0.clone().requires_grad_()
    found = odeint(lambda t, y: torch.sin(y @ A.T), y0, T, method="rk4")
    (first,) = torch.autograd.grad(found.sum(), y0, create_graph=True)
    first.square().sum().backward()
    return first, y0.grad


@step("a continuous normalizing flow: its loss by traces")
def _():
    field = Field()

    def moved(t, state):
        with torch.enable_grad():
            z = state[0].requires_grad_()
            dz = field(t, z)
            trace = sum(
                torch.autograd.grad(dz[:, i].sum(), z, create_graph=True)[0][:, i] for i in (0, 1)
            )
        return dz, -trace

    z0 = torch.randn(5, 2, dtype=torch.float64)
    z, change = odeint(moved, (z0, torch.zeros(5).double()), T[:3], method="rk4")
    loss = (z[-1].square().sum(1) / 2 + change[-1]).mean()
    loss.backward()
    return loss, [p.grad for p in field.parameters()]


@step("times that do not grow", refused=True)
def _():
    odeint(lambda t, y: y, Y0, torch.tensor([0.0, 1.0, 0.5]).double())


@step("an unknown method", refused=True)
def _():
    odeint(lambda t, y: y, Y0, T, method="dopri6")


@step("a state of integers", refused=True)
def _():
    odeint(lambda t, y: y, torch.ones(2, dtype=torch.long), T)


@step("the adjoint of a plain function", refused=True)
def _():
    odeint_adjoint(lambda t, y: y, Y0, T)


@step("a field of another shape than the state", refused=True)
def _():
    odeint(lambda t, y: torch.ones(3, 3, dtype=torch.float64), Y0, T, method="euler")

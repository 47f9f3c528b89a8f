"""Stochastic differential equations: solvers, noises, Brownian motion, adjoints."""

import torch
import torchsde
from steps import step
from torch import nn

T = torch.linspace(0.0, 0.5, 4, dtype=torch.float64)


def brownian(*shape, **kwargs):
    return torchsde.BrownianInterval(0.0, 0.5, size=shape, dtype=torch.float64, entropy=7, **kwargs)


class Equation(torchsde.SDEIto):
    def __init__(self, noise_type="diagonal"):
        super().__init__(noise_type=noise_type)
        self.drift = nn.Linear(3, 3).double()
        width = {"diagonal": 3, "additive": 6, "scalar": 3, "general": 6}[noise_type]
        self.diffusion = nn.Linear(3, width).double()

    def f(self, t, y):
        return self.drift(y).tanh()

    def g(self, t, y):
        if self.noise_type == "additive":
            return self.diffusion(torch.ones_like(y)).view(-1, 3, 2)
        found = self.diffusion(y).sigmoid()
        return found if self.noise_type == "diagonal" else found.view(len(y), 3, -1)


class Stratonovich(Equation):
    def __init__(self, noise_type="diagonal"):
        super().__init__(noise_type)
        self.sde_type = "stratonovich"


CASES = {
    "euler": (Equation, "diagonal", 3),
    "milstein": (Equation, "diagonal", 3),
    "srk": (Equation, "diagonal", 3),
    "srk, additive": (Equation, "additive", 2),
    "euler, general": (Equation, "general", 2),
    "euler, scalar": (Equation, "scalar", 1),
    "heun": (Stratonovich, "diagonal", 3),
    "midpoint": (Stratonovich, "diagonal", 3),
    "euler_heun": (Stratonovich, "general", 2),
    "log_ode": (Stratonovich, "general", 2),
    "reversible_heun": (Stratonovich, "diagonal", 3),
}

for name in CASES:

    @step(f"sdeint by {name}: paths, gradients", name)
    def _(name):
        kind, noise, width = CASES[name]
        method = name.partition(",")[0]
        equation = kind(noise)
        levy = {"srk": "space-time", "log_ode": "foster"}.get(method, "none")
        bm = brownian(4, width, levy_area_approximation=levy)
        y0 = torch.full((4, 3), 0.1, dtype=torch.float64, requires_grad=True)
        found = torchsde.sdeint(equation, y0, T, bm=bm, method=method, dt=0.05)
        found.square().mean().backward()
        return found, y0.grad, [p.grad for p in equation.parameters()]


for noise in ("diagonal", "additive", "general"):

    @step(f"the adjoint of {noise} noise: gradients", noise)
    def _(noise):
        equation = Stratonovich(noise)
        y0 = torch.full((4, 3), 0.1, dtype=torch.float64, requires_grad=True)
        bm = brownian(4, 3 if noise == "diagonal" else 2)
        found = torchsde.sdeint_adjoint(equation, y0, T, bm=bm, method="midpoint", dt=0.05)
        found.square().mean().backward()
        return found, y0.grad, [p.grad for p in equation.parameters()]


@step("Brownian motion: increments add up, Levy areas")
def _():
    bm = brownian(2, 3, levy_area_approximation="space-time")
    path = torchsde.BrownianPath(t0=0.0, w0=torch.zeros(2, 1))
    tree = torchsde.BrownianTree(
        t0=0.0, w0=torch.zeros(2, 1, dtype=torch.float64), t1=1.0, entropy=5
    )
    w, area = bm(0.1, 0.4, return_U=True)
    path(0.5)
    return w, area, bm(0.1, 0.3) + bm(0.3, 0.4), tree(0.2, 0.7)


@step("a latent equation trained: log ratios, losses")
def _():
    class Latent(Equation):
        def h(self, t, y):
            return -y

    equation = Latent()
    optimizer = torch.optim.Adam(equation.parameters(), lr=1e-2)
    losses = []
    for _ in range(3):
        y0 = torch.full((4, 3), 0.1, dtype=torch.float64)
        found, ratio = torchsde.sdeint(
            equation, y0, T, bm=brownian(4, 4), method="euler", dt=0.05, logqp=True
        )
        loss = (found[-1] - 1).square().mean() + ratio.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, list(equation.parameters())


@step("adaptive steps; other names of the methods")
def _():
    class Renamed(nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def up(self, t, y):
            return -y

        def spread(self, t, y):
            return 0.2 * torch.ones_like(y)

    y0 = torch.ones(2, 3, dtype=torch.float64)
    return torchsde.sdeint(
        Renamed(),
        y0,
        T,
        bm=brownian(2, 3),
        adaptive=True,
        rtol=1e-3,
        atol=1e-3,
        dt=0.05,
        names={"drift": "up", "diffusion": "spread"},
        method="euler",
    )


@step("a start of one dimension", refused=True)
def _():
    torchsde.sdeint(Equation(), torch.ones(3).double(), T)


@step("an Ito method for a Stratonovich equation", refused=True)
def _():
    torchsde.sdeint(Stratonovich(), torch.ones(2, 3).double(), T, method="srk")


@step("times that do not grow", refused=True)
def _():
    torchsde.sdeint(Equation(), torch.ones(2, 3).double(), T.flip(0))


@step("Brownian motion of another size", refused=True)
def _():
    torchsde.sdeint(Equation(), torch.ones(2, 3).double(), T, bm=brownian(2, 5))

"""A damped oscillator by a physics-informed network: derivatives of outputs, a learnt constant, float64."""
import torch
import torch.nn as nn
from torch.autograd import grad

torch.manual_seed(123)
torch.set_default_dtype(torch.float64)


class FCN(nn.Module):
    def __init__(self, N_INPUT, N_OUTPUT, N_HIDDEN, N_LAYERS):
        super().__init__()
        activation = nn.Tanh
        self.fcs = nn.Sequential(*[nn.Linear(N_INPUT, N_HIDDEN), activation()])
        self.fch = nn.Sequential(*[
            nn.Sequential(*[nn.Linear(N_HIDDEN, N_HIDDEN), activation()]) for _ in range(N_LAYERS - 1)])
        self.fce = nn.Linear(N_HIDDEN, N_OUTPUT)

    def forward(self, x):
        return self.fce(self.fch(self.fcs(x)))


def exact_solution(d, w0, t):
    w = torch.sqrt(torch.tensor(w0 ** 2 - d ** 2))
    phi = torch.atan(-d / w)
    return torch.exp(-d * t) * 2 * (1 / (2 * torch.cos(phi))) * torch.cos(phi + w * t)


d, w0 = 2, 8
pinn = FCN(1, 1, 16, 3)
mu = nn.Parameter(torch.zeros(1, requires_grad=True))
t_obs = torch.rand(12).view(-1, 1)
u_obs = exact_solution(d, w0, t_obs) + 0.04 * torch.randn_like(t_obs)
t_physics = torch.linspace(0, 1, 20).view(-1, 1).requires_grad_(True)
optimiser = torch.optim.NAdam(list(pinn.parameters()) + [mu], lr=1e-3)
for i in range(24):
    optimiser.zero_grad()
    u = pinn(t_physics)
    dudt = grad(u, t_physics, torch.ones_like(u), create_graph=True)[0]
    d2udt2 = grad(dudt, t_physics, torch.ones_like(dudt), create_graph=True)[0]
    loss1 = torch.mean((d2udt2 + mu * dudt + w0 ** 2 * u) ** 2)
    loss2 = torch.mean((pinn(t_obs) - u_obs) ** 2)
    loss = loss1 * 1e-4 + loss2
    loss.backward()
    optimiser.step()
    print(f'{i} loss {loss.item():.8f} mu {mu.item():.8f} {mu.dtype}')
hessian = torch.autograd.functional.hessian(lambda t: pinn(t[:, None]).sum(), torch.tensor([0.1, 0.5]))
jacobian = torch.func.jacrev(pinn)(torch.tensor([0.3]))
print(hessian, jacobian)

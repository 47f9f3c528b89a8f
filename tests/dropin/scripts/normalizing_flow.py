"""RealNVP on two moons made here: masks in a ModuleList, log determinants, a base distribution."""
import math

import torch
import torch.distributions as D
from torch import nn


class Coupling(nn.Module):
    def __init__(self, mask, hidden=24):
        super().__init__()
        self.register_buffer('mask', mask)
        self.s = nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(), nn.Linear(hidden, 2), nn.Tanh())
        self.t = nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(), nn.Linear(hidden, 2))

    def forward(self, z):
        z_ = self.mask * z
        s, t = self.s(z_) * (1 - self.mask), self.t(z_) * (1 - self.mask)
        return z_ + (1 - self.mask) * (z * torch.exp(s) + t)

    def inverse(self, x):
        x_ = self.mask * x
        s, t = self.s(x_) * (1 - self.mask), self.t(x_) * (1 - self.mask)
        return (1 - self.mask) * (x - t) * torch.exp(-s) + x_, -s.sum(dim=1)


class RealNVP(nn.Module):
    def __init__(self, layers, prior):
        super().__init__()
        masks = torch.tensor([[0., 1.], [1., 0.]] * (layers // 2))
        self.prior = prior
        self.couplings = nn.ModuleList(Coupling(mask) for mask in masks)

    def log_prob(self, x):
        log_det = x.new_zeros(x.shape[0])
        for coupling in reversed(self.couplings):
            x, change = coupling.inverse(x)
            log_det += change
        return self.prior.log_prob(x) + log_det

    def sample(self, n):
        x = self.prior.sample((n,))
        for coupling in self.couplings:
            x = coupling(x)
        return x


def moons(n):
    half = n // 2
    a = torch.rand(half) * math.pi
    b = torch.rand(n - half) * math.pi
    upper = torch.stack([a.cos(), a.sin()], 1)
    lower = torch.stack([1 - b.cos(), 0.5 - b.sin()], 1)
    return torch.cat([upper, lower]) + 0.05 * torch.randn(n, 2)


torch.manual_seed(7)
prior = D.MultivariateNormal(torch.zeros(2), torch.eye(2))
flow = RealNVP(4, prior)
optimizer = torch.optim.Adam((p for p in flow.parameters() if p.requires_grad), lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=24)
for step in range(24):
    loss = -flow.log_prob(moons(64)).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    scheduler.step()
    print('iter %s:' % step, 'loss = %.4f' % loss)
x = flow.sample(500).detach()
print(x.mean(0), x.std(dim=0), x.isfinite().all())
mixture = D.MixtureSameFamily(
    D.Categorical(torch.ones(2)), D.Independent(D.Normal(x[:2], torch.ones(2, 2)), 1))
print(mixture.log_prob(x[:5]), D.kl_divergence(D.Normal(0., 1.), D.Normal(1., 2.)))

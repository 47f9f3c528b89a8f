"""Variational weights with a scale mixture prior; Monte Carlo dropout."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

torch.manual_seed(0)


class BL(nn.Module):
    def __init__(s, i, o):
        super().__init__()
        s.wm = nn.Parameter(torch.Tensor(o, i).uniform_(-0.2, 0.2))
        s.wr = nn.Parameter(torch.Tensor(o, i).uniform_(-5, -4))
        s.register_buffer('eps', None)
        s.n = torch.distributions.Normal(0, 1)

    def forward(s, x):
        sg = torch.log1p(torch.exp(s.wr))
        e = s.n.sample(s.wr.size())
        w = s.wm + sg * e
        s.kl = (
            torch.distributions.Normal(s.wm, sg).log_prob(w)
            - torch.logaddexp(
                torch.distributions.Normal(0.0, 1.0).log_prob(w) + math.log(0.5),
                torch.distributions.Normal(torch.tensor(0.0), torch.tensor(0.1)).log_prob(w) + math.log(0.5),
            )
        ).sum()
        return F.linear(x, w)


a, b = BL(2, 8), BL(8, 1)
o = optim.Adam([*a.parameters(), *b.parameters()], 1e-2)
x = torch.randn(20, 2)
for _ in range(12):
    l = F.mse_loss(b(F.relu(a(x))), x[:, :1] * x[:, 1:]) * 20 + (a.kl + b.kl) / 10
    o.zero_grad()
    l.backward()
    o.step()
    print(l.item())


def en(m):
    [l.train() for l in m.modules() if l.__class__.__name__.startswith('Dropout')]


m = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))
m.eval()
en(m)
with torch.no_grad():
    p = torch.stack([m(x).softmax(-1) for _ in range(8)])
    print(
        p.mean(0)[0],
        p.var(0).sum(),
        -(p.mean(0) * p.mean(0).log()).sum(-1).mean(),
        torch.special.entr(p).sum(),
        torch.xlogy(p, p).mean(),
        torch.quantile(p, torch.tensor([0.1, 0.9]), dim=0)[:, 0],
        torch.nanmean(p),
        torch.cov(p[:, 0].T),
        torch.corrcoef(p[:, 0].T),
    )

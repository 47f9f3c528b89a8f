"""A Mamba-like block: depthwise causal convolution, input-dependent state space, sequential scan."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

torch.manual_seed(0)


def scan(u, delta, A, B, C, D):
    dA = torch.exp(torch.einsum('bld,dn->bldn', delta, A))
    dBu = torch.einsum('bld,bln,bld->bldn', delta, B, u)
    x = torch.zeros(u.shape[0], u.shape[2], A.shape[1])
    ys = []
    for i in range(u.shape[1]):
        x = dA[:, i] * x + dBu[:, i]
        ys.append(torch.einsum('bdn,bn->bd', x, C[:, i, :]))
    return torch.stack(ys, dim=1) + u * D


class MambaBlock(nn.Module):
    def __init__(s, d=8, n=4):
        super().__init__()
        s.n = n
        s.inp = nn.Linear(d, 2 * d, bias=False)
        s.conv = nn.Conv1d(d, d, 4, groups=d, padding=3)
        s.xp = nn.Linear(d, 1 + 2 * n, bias=False)
        s.dt = nn.Linear(1, d)
        A = torch.arange(1, n + 1).repeat(d, 1).float()
        s.A_log = nn.Parameter(torch.log(A))
        s.D = nn.Parameter(torch.ones(d))
        s.A_log._no_weight_decay = True
        s.out = nn.Linear(d, d, bias=False)

    def forward(s, x):
        l = x.shape[1]
        x, z = s.inp(x).split([8, 8], dim=-1)
        x = F.silu(s.conv(x.transpose(1, 2))[..., :l].transpose(1, 2))
        d, B, C = s.xp(x).split(split_size=[1, s.n, s.n], dim=-1)
        return s.out(scan(x, F.softplus(s.dt(d)), -torch.exp(s.A_log.float()), B, C, s.D) * F.silu(z))


m = MambaBlock()
o = optim.Adam(m.parameters(), 1e-2)
x = torch.randn(2, 10, 8)
for i in range(20):
    l = F.smooth_l1_loss(m(x), x.cumsum(1) * 0.1)
    o.zero_grad()
    l.backward()
    o.step()
    print(l.item())
a = torch.randn(2, 5)
print(
    torch.logcumsumexp(a, 1),
    torch.cummax(a, 1),
    a.cumprod(-1)[0],
    F.pad(a, (1, -1))[0],
)

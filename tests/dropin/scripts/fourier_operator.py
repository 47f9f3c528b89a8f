"""A Fourier neural operator: complex parameters, rfft2 / irfft2, relative loss, printed tensors."""
import torch
import torch.nn as nn
from torch import optim

torch.manual_seed(0)


class Spec(nn.Module):
    def __init__(s, c, m):
        super().__init__()
        s.m = m
        s.w1 = nn.Parameter(torch.rand(c, c, m, m, dtype=torch.cfloat) / c**2)
        s.w2 = nn.Parameter(1 / c**2 * torch.rand(c, c, m, m, dtype=torch.cfloat))

    def forward(s, x):
        ft = torch.fft.rfft2(x)
        out = torch.zeros(x.shape[0], x.shape[1], x.size(-2), x.size(-1) // 2 + 1, dtype=torch.cfloat, device=x.device)
        out[:, :, : s.m, : s.m] = torch.einsum("bixy,ioxy->boxy", ft[:, :, : s.m, : s.m], s.w1)
        out[:, :, -s.m :, : s.m] = torch.einsum("bixy,ioxy->boxy", ft[:, :, -s.m :, : s.m], s.w2)
        return torch.fft.irfft2(out, s=(x.size(-2), x.size(-1)))


m = nn.Sequential(nn.Conv2d(1, 4, 1), Spec(4, 3), nn.GELU(), nn.Conv2d(4, 1, 1))
x = torch.randn(4, 1, 12, 12)
o = optim.Adam(m.parameters(), 1e-2, weight_decay=1e-4)
for i in range(20):
    l = (m(x) - x.roll(1, -1)).pow(2).sum((1, 2, 3)).sqrt().mean()
    o.zero_grad()
    l.backward()
    o.step()
    print(l)
print(sum(p.numel() * 2 if p.is_complex() else p.numel() for p in m.parameters()), m[1].w1[0, 0])

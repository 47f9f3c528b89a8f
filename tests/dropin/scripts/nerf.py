"""A radiance field: positional encoding, cumprod of transmittance, sampling of a pdf by searchsorted."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

torch.manual_seed(0)


def posenc(x, L):
    return torch.cat([x] + [f(2.0**i * x) for i in range(L) for f in (torch.sin, torch.cos)], -1)


def sample_pdf(bins, w, N):
    w = w + 1e-5
    pdf = w / torch.sum(w, -1, keepdim=True)
    cdf = torch.cumsum(pdf, -1)
    cdf = torch.cat([torch.zeros_like(cdf[..., :1]), cdf], -1)
    u = torch.linspace(0.0, 1.0, steps=N).expand(list(cdf.shape[:-1]) + [N]).contiguous()
    inds = torch.searchsorted(cdf.detach(), u, right=True)
    below = torch.max(torch.zeros_like(inds - 1), inds - 1)
    above = torch.min((cdf.shape[-1] - 1) * torch.ones_like(inds), inds)
    g = torch.stack([below, above], -1)
    ms = [g.shape[0], g.shape[1], cdf.shape[-1]]
    cg = torch.gather(cdf.unsqueeze(1).expand(ms), 2, g)
    bg = torch.gather(bins.unsqueeze(1).expand(ms), 2, g)
    den = cg[..., 1] - cg[..., 0]
    den = torch.where(den < 1e-5, torch.ones_like(den), den)
    t = (u - cg[..., 0]) / den
    return bg[..., 0] + t * (bg[..., 1] - bg[..., 0])


i, j = torch.meshgrid(torch.linspace(0, 3, 4), torch.linspace(0, 3, 4), indexing='xy')
dirs = torch.stack([(i - 2) / 4, -(j - 2) / 4, -torch.ones_like(i)], -1)
c2w = torch.eye(4)[:3]
rd = torch.sum(dirs[..., None, :] * c2w[:3, :3], -1).reshape(-1, 3)
ro = c2w[:3, -1].expand(rd.shape)
m = nn.Sequential(nn.Linear(27, 32), nn.ReLU(), nn.Linear(32, 4))
o = optim.Adam(m.parameters(), 5e-3)
tgt = torch.rand(16, 3)
for it in range(12):
    z = torch.linspace(2, 6, 8).expand(16, 8)
    mids = 0.5 * (z[..., 1:] + z[..., :-1])
    up = torch.cat([mids, z[..., -1:]], -1)
    lo = torch.cat([z[..., :1], mids], -1)
    z = lo + (up - lo) * torch.rand(z.shape)
    pts = ro[..., None, :] + rd[..., None, :] * z[..., :, None]
    raw = m(posenc(pts, 4))
    d = z[..., 1:] - z[..., :-1]
    d = torch.cat([d, torch.Tensor([1e10]).expand(d[..., :1].shape)], -1)
    d = d * torch.norm(rd[..., None, :], dim=-1)
    rgb = torch.sigmoid(raw[..., :3])
    al = 1.0 - torch.exp(-F.relu(raw[..., 3]) * d)
    w = al * torch.cumprod(torch.cat([torch.ones((al.shape[0], 1)), 1.0 - al + 1e-10], -1), -1)[:, :-1]
    c = torch.sum(w[..., None] * rgb, -2)
    zs = sample_pdf(mids, w[..., 1:-1], 5)
    zv, _ = torch.sort(torch.cat([z, zs.detach()], -1), -1)
    l = torch.mean((c - tgt) ** 2)
    o.zero_grad()
    l.backward()
    o.step()
    print(
        '%d %.5f psnr %.4f' % (it, l.item(), (-10.0 * torch.log(l) / torch.log(torch.Tensor([10.0]))).item()),
        zv.mean().item(),
    )

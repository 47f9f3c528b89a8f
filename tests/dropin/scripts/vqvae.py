"""VQ-VAE: straight-through estimator, codebook by exponential moving averages, scatter_."""
import torch, torch.nn as nn, torch.nn.functional as F


class VQ(nn.Module):
    def __init__(self, n, d, cc, decay, eps=1e-5):
        super().__init__()
        self._d = d
        self._n = n
        self._e = nn.Embedding(n, d)
        self._e.weight.data.normal_()
        self._cc = cc
        self.register_buffer('_ema_cluster_size', torch.zeros(n))
        self._ema_w = nn.Parameter(torch.Tensor(n, d))
        self._ema_w.data.normal_()
        self._decay = decay
        self._eps = eps

    def forward(self, inputs):
        inputs = inputs.permute(0, 2, 3, 1).contiguous()
        sh = inputs.shape
        flat = inputs.view(-1, self._d)
        dist = (
            torch.sum(flat**2, dim=1, keepdim=True)
            + torch.sum(self._e.weight**2, dim=1)
            - 2 * torch.matmul(flat, self._e.weight.t())
        )
        idx = torch.argmin(dist, dim=1).unsqueeze(1)
        enc = torch.zeros(idx.shape[0], self._n, device=inputs.device)
        enc.scatter_(1, idx, 1)
        q = torch.matmul(enc, self._e.weight).view(sh)
        if self.training:
            self._ema_cluster_size = self._ema_cluster_size * self._decay + (1 - self._decay) * torch.sum(enc, 0)
            n = torch.sum(self._ema_cluster_size.data)
            self._ema_cluster_size = (self._ema_cluster_size + self._eps) / (n + self._n * self._eps) * n
            dw = torch.matmul(enc.t(), flat)
            self._ema_w = nn.Parameter(self._ema_w * self._decay + (1 - self._decay) * dw)
            self._e.weight = nn.Parameter(self._ema_w / self._ema_cluster_size.unsqueeze(1))
        el = F.mse_loss(q.detach(), inputs)
        loss = self._cc * el
        q = inputs + (q - inputs).detach()
        avg = torch.mean(enc, dim=0)
        ppl = torch.exp(-torch.sum(avg * torch.log(avg + 1e-10)))
        return loss, q.permute(0, 3, 1, 2).contiguous(), ppl, enc


class Residual(nn.Module):
    def __init__(s, i, h):
        super().__init__()
        s._block = nn.Sequential(
            nn.ReLU(True),
            nn.Conv2d(i, h, kernel_size=3, stride=1, padding=1, bias=False),
            nn.ReLU(True),
            nn.Conv2d(h, i, kernel_size=1, stride=1, bias=False),
        )

    def forward(s, x):
        return x + s._block(x)


class Model(nn.Module):
    def __init__(s):
        super().__init__()
        s.enc = nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 4, 2, 1), Residual(16, 8))
        s.pre = nn.Conv2d(16, 8, 1)
        s.vq = VQ(32, 8, 0.25, 0.99)
        s.dec = nn.Sequential(
            nn.Conv2d(8, 16, 3, padding=1),
            Residual(16, 8),
            nn.ConvTranspose2d(16, 8, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(8, 3, 4, 2, 1),
        )

    def forward(s, x):
        l, q, p, _ = s.vq(s.pre(s.enc(x)))
        return l, s.dec(q), p


torch.manual_seed(1)
m = Model()
opt = torch.optim.Adam(m.parameters(), lr=1e-3, amsgrad=True)
m.train()
X = torch.rand(16, 3, 16, 16)
var = torch.var(X / 255.0) * 255**2
for i in range(15):
    opt.zero_grad()
    l, r, p = m(X)
    e = F.mse_loss(r, X) / var
    (e + l).backward()
    opt.step()
    print('%d iterations' % (i + 1), 'recon_error: %.5f' % e.item(), 'perplexity: %.3f' % p.item(), l.item())

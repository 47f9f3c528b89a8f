"""WaveNet: causal dilated conv1d, weight_norm and its removal, mu-law, RAdam with warm-up."""
import torch, math
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import weight_norm, remove_weight_norm


class CausalConv1d(nn.Conv1d):
    def __init__(self, i, o, k, dilation=1, **kw):
        self.__padding = (k - 1) * dilation
        super().__init__(i, o, kernel_size=k, stride=1, padding=self.__padding, dilation=dilation, **kw)

    def forward(self, input):
        r = super().forward(input)
        return r[:, :, : -self.__padding] if self.__padding != 0 else r


def mu_law(x, q=64):
    mu = torch.tensor(q - 1.0)
    return ((torch.sign(x) * torch.log1p(mu * x.abs()) / torch.log1p(mu) + 1) / 2 * mu + 0.5).to(torch.int64)


class WaveNet(nn.Module):
    def __init__(s, L=2, B=4, R=12, S=16, q=64):
        super().__init__()
        s.emb = nn.Embedding(q, R)
        s.dil = [2**i for _ in range(L) for i in range(B)]
        s.f = nn.ModuleList()
        s.g = nn.ModuleList()
        s.r = nn.ModuleList()
        s.s = nn.ModuleList()
        for d in s.dil:
            s.f.append(weight_norm(CausalConv1d(R, R, 2, d)))
            s.g.append(weight_norm(CausalConv1d(R, R, 2, d), name='weight'))
            s.r.append(nn.Conv1d(R, R, 1))
            s.s.append(nn.Conv1d(R, S, 1, bias=False))
        s.post = nn.Sequential(nn.LeakyReLU(0.1, inplace=True), nn.Conv1d(S, S, 1), nn.PReLU(), nn.Conv1d(S, q, 1))
        s.rf = sum(s.dil) + 1

    def forward(s, x):
        x = s.emb(x).transpose(1, 2)
        skip = 0
        for f, g, r, k in zip(s.f, s.g, s.r, s.s):
            h = torch.tanh(f(x)) * torch.sigmoid(g(x))
            skip = skip + k(h)
            x = (r(h) + x) * math.sqrt(0.5)
        return s.post(skip)


torch.manual_seed(0)
t = torch.arange(0, 1, 1 / 400)
w = torch.stack([torch.sin(2 * math.pi * f * t) * 0.8 for f in (5.0, 9.0, 13.0)])
ids = mu_law(w)
print(ids[:, :10], ids.dtype, ids.float().mean())
m = WaveNet()
print(m.rf, sum(p.numel() for p in m.parameters() if p.requires_grad))
print(m.f[1])
print([k for k in m.state_dict()][:8])
opt = torch.optim.RAdam(m.parameters(), lr=3e-3, weight_decay=1e-4)
sch = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min((s + 1) ** -0.5, (s + 1) * 5**-1.5))
for i in range(12):
    o = m(ids[:, :-1])
    l = F.cross_entropy(o[:, :, m.rf :], ids[:, 1 + m.rf :], label_smoothing=0.05)
    opt.zero_grad()
    l.backward()
    n = torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0, norm_type=float('inf'))
    opt.step()
    sch.step()
    print(i, l.item(), n.item(), sch.get_last_lr()[0])
for c in m.f:
    remove_weight_norm(c)
print(len(list(m.named_parameters())), m(ids[:, :50]).sum().item())
x = torch.randn(2, 3, 20, dtype=torch.float64)
print(
    F.conv1d(F.pad(x, (4, 0), mode='replicate'), torch.ones(6, 1, 3, dtype=torch.double), groups=3, dilation=2).sum(-1),
    nn.Conv1d(3, 4, 3, padding='same', padding_mode='circular').double()(x).mean(),
)

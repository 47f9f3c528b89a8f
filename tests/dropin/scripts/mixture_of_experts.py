"""Top-2 routed experts: topk, one_hot masks, where, index_add_, a balancing loss."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

torch.manual_seed(0)


class MoE(nn.Module):
    def __init__(s, d, n, k):
        super().__init__()
        s.k, s.n = k, n
        s.gate = nn.Linear(d, n, bias=False)
        s.ex = nn.ModuleList([nn.Sequential(nn.Linear(d, 2 * d), nn.SiLU(), nn.Linear(2 * d, d)) for _ in range(n)])

    def forward(s, h):
        b, t, d = h.shape
        h = h.view(-1, d)
        lg = s.gate(h)
        w = F.softmax(lg, dim=1, dtype=torch.float)
        w, sel = torch.topk(w, s.k, dim=-1)
        w /= w.sum(dim=-1, keepdim=True)
        w = w.to(h.dtype)
        out = torch.zeros((b * t, d), dtype=h.dtype, device=h.device)
        mask = F.one_hot(sel, num_classes=s.n).permute(2, 1, 0)
        hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
        for e in range(s.n):
            idx, top = torch.where(mask[e])
            cur = h[None, top].reshape(-1, d)
            cur = s.ex[e](cur) * w[top, idx, None]
            out.index_add_(0, top, cur.to(h.dtype))
        p = lg.softmax(-1)
        tp = torch.mean(mask.permute(2, 1, 0).float(), dim=0)
        aux = torch.sum(tp * p.mean(0).unsqueeze(0)) * s.n
        return out.reshape(b, t, d), aux, hit


m = MoE(8, 4, 2)
o = optim.AdamW(m.parameters(), 1e-2)
x = torch.randn(2, 6, 8)
for i in range(12):
    y, a, hit = m(x)
    l = (y - x.flip(1)).pow(2).mean() + 0.01 * a
    o.zero_grad(set_to_none=True)
    l.backward()
    o.step()
    print(l.item(), a.item(), hit.flatten().tolist())

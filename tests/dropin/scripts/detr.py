"""Detection with a transformer: queries, bipartite matching, generalized IoU."""
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

torch.manual_seed(0)


def match(cost):
    # few boxes: the best of all assignments
    queries, boxes = cost.shape
    best = min(itertools.permutations(range(queries), boxes), key=lambda rows: cost[list(rows), range(boxes)].sum().item())
    order = sorted(range(boxes), key=lambda j: best[j])
    return [best[j] for j in order], order


def c2x(b):
    cx, cy, w, h = b.unbind(-1)
    return torch.stack([cx - 0.5 * w, cy - 0.5 * h, cx + 0.5 * w, cy + 0.5 * h], dim=-1)


def giou(a, b):
    ar = lambda t: (t[:, 2] - t[:, 0]) * (t[:, 3] - t[:, 1])
    lt = torch.max(a[:, None, :2], b[:, :2])
    rb = torch.min(a[:, None, 2:], b[:, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[:, :, 0] * wh[:, :, 1]
    un = ar(a)[:, None] + ar(b) - inter
    iou = inter / un
    lt = torch.min(a[:, None, :2], b[:, :2])
    rb = torch.max(a[:, None, 2:], b[:, 2:])
    wh = (rb - lt).clamp(min=0)
    A = wh[..., 0] * wh[..., 1]
    return iou - (A - un) / A


tr = nn.Transformer(16, 2, 1, 1, 32, dropout=0.0, batch_first=True, norm_first=True)
qe = nn.Embedding(5, 16)
cl, bx = nn.Linear(16, 4), nn.Linear(16, 4)
ps = list(tr.parameters()) + list(qe.parameters()) + list(cl.parameters()) + list(bx.parameters())
o = optim.AdamW(ps, 1e-3)
src = torch.randn(2, 9, 16)
tg = [
    {'labels': torch.tensor([0, 2]), 'boxes': torch.tensor([[0.3, 0.3, 0.2, 0.2], [0.7, 0.6, 0.3, 0.4]])},
    {'labels': torch.tensor([1]), 'boxes': torch.tensor([[0.5, 0.5, 0.4, 0.2]])},
]
ew = torch.ones(4)
ew[-1] = 0.1
for i in range(12):
    h = tr(src, qe.weight.unsqueeze(0).repeat(2, 1, 1))
    lo, pb = cl(h), bx(h).sigmoid()
    with torch.no_grad():
        P = lo.flatten(0, 1).softmax(-1)
        pbf = pb.flatten(0, 1)
        ids = torch.cat([t['labels'] for t in tg])
        tb = torch.cat([t['boxes'] for t in tg])
        C = 5 * torch.cdist(pbf, tb, p=1) - P[:, ids] - 2 * giou(c2x(pbf), c2x(tb))
        C = C.view(2, 5, -1).cpu()
        sz = [len(t['boxes']) for t in tg]
        ind = [match(c[i]) for i, c in enumerate(C.split(sz, -1))]
        ind = [(torch.as_tensor(i, dtype=torch.int64), torch.as_tensor(j, dtype=torch.int64)) for i, j in ind]
    bi = torch.cat([torch.full_like(s, k) for k, (s, _) in enumerate(ind)])
    si = torch.cat([s for s, _ in ind])
    tc = torch.full(lo.shape[:2], 3, dtype=torch.int64)
    tc[bi, si] = torch.cat([t['labels'][J] for t, (_, J) in zip(tg, ind)])
    sb = pb[(bi, si)]
    tbx = torch.cat([t['boxes'][j] for t, (_, j) in zip(tg, ind)], dim=0)
    l = (
        F.cross_entropy(lo.transpose(1, 2), tc, ew)
        + 5 * F.l1_loss(sb, tbx, reduction='none').sum() / 3
        + 2 * (1 - torch.diag(giou(c2x(sb), c2x(tbx)))).sum() / 3
    )
    o.zero_grad()
    l.backward()
    o.step()
    print(l.item(), tc.tolist())

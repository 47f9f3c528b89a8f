"""Masked language model: TransformerEncoder with padding, masking by bernoulli, tied embeddings."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

torch.manual_seed(0)
enc = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(16, 2, 32, 0.1, 'gelu', batch_first=True), 2, enable_nested_tensor=False
)
em = nn.Embedding(30, 16, padding_idx=0)
pos = nn.Parameter(torch.zeros(1, 10, 16))
head = nn.Linear(16, 30, bias=False)
head.weight = em.weight
ps = list({id(p): p for m in (enc, em, head) for p in m.parameters()}.values())
o = optim.AdamW(ps + [pos], 1e-3)
ids = torch.randint(3, 30, (4, 10))
ids[1, 7:] = 0
for it in range(12):
    lb = ids.clone()
    pm = torch.full(lb.shape, 0.3)
    pm.masked_fill_(ids.eq(0), value=0.0)
    mi = torch.bernoulli(pm).bool()
    lb[~mi] = -100
    inp = ids.clone()
    rp = torch.bernoulli(torch.full(lb.shape, 0.8)).bool() & mi
    inp[rp] = 1
    rr = torch.bernoulli(torch.full(lb.shape, 0.5)).bool() & mi & ~rp
    rw = torch.randint(30, lb.shape, dtype=torch.long)
    inp[rr] = rw[rr]
    lo = head(enc(em(inp) + pos, src_key_padding_mask=inp.eq(0)))
    l = F.cross_entropy(lo.view(-1, 30), lb.view(-1))
    o.zero_grad()
    l.backward()
    o.step()
    print(l.item(), (lo.argmax(-1)[mi] == lb[mi]).float().mean().item())
ext = (1.0 - (ids != 0)[:, None, None, :].to(dtype=torch.float32)) * torch.finfo(torch.float32).min
print(ext[1, 0, 0, -3:], nn.Transformer.generate_square_subsequent_mask(3))
enc.eval()
with torch.no_grad():
    print(enc(em(ids)).mean(), enc(em(ids), mask=torch.triu(torch.ones(10, 10), 1).bool(), is_causal=True).mean())
mha = nn.MultiheadAttention(16, 4, bias=False, kdim=8, vdim=8, batch_first=True, add_zero_attn=True)
out, w = mha(
    em(ids),
    torch.randn(4, 6, 8),
    torch.randn(4, 6, 8),
    key_padding_mask=torch.zeros(4, 6, dtype=torch.bool),
    average_attn_weights=False,
)
print(out.sum(), w.shape)

"""einops: functions and layers, in a model that learns."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from torch import nn

torch.manual_seed(0)
x = torch.randn(4, 3, 8, 8, requires_grad=True)
patches = rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4)
print("patches", tuple(patches.shape), patches[0, 1, :6].tolist())
print("pooled", reduce(x, "b c (h 2) (w 2) -> b c h w", "max").sum().item())
print("repeated", repeat(x, "b c h w -> b c (h 2) w").mean().item())
print("product", einsum(patches, patches, "b i d, b j d -> b i j")[0, 0].tolist())
packed, shapes = pack([patches, patches[:, :1]], "b * d")
print(
    "packed", tuple(packed.shape), [tuple(part.shape) for part in unpack(packed, shapes, "b * d")]
)
model = nn.Sequential(
    Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
    EinMix("b n i -> b n o", weight_shape="i o", bias_shape="o", i=48, o=16),
    nn.GELU(),
    Reduce("b n o -> b o", "mean"),
    nn.Linear(16, 3),
)
optimizer = torch.optim.AdamW(model.parameters(), 0.05)
for step in range(10):
    loss = nn.functional.cross_entropy(model(x), torch.arange(4) % 3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, loss.item())
print("gradient", x.grad.abs().sum().item())

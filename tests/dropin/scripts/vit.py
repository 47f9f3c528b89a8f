"""A vision transformer from nn's own encoder: class token, positions, label smoothing, OneCycleLR."""
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.optim.lr_scheduler import OneCycleLR

torch.manual_seed(42)


class PatchEmbed(nn.Module):
    def __init__(self, size=16, patch=4, chans=3, dim=32):
        super().__init__()
        self.num_patches = (size // patch) ** 2
        self.proj = nn.Conv2d(chans, dim, kernel_size=patch, stride=patch)
        self.norm = nn.Identity()

    def forward(self, x):
        return self.norm(self.proj(x).flatten(2).transpose(1, 2))


class ViT(nn.Module):
    def __init__(self, depth=2, heads=4, dim=32, classes=5):
        super().__init__()
        self.patch_embed = PatchEmbed(dim=dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, self.patch_embed.num_patches + 1, dim))
        layer = nn.TransformerEncoderLayer(
            d_model=dim, nhead=heads, dim_feedforward=64, dropout=0.1, activation='gelu',
            batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, nn.LayerNorm(dim), enable_nested_tensor=False)
        self.head = nn.Linear(dim, classes)
        nn.init.trunc_normal_(self.pos_embed, std=.02)
        nn.init.trunc_normal_(self.cls_token, std=.02)

    @torch.jit.ignore
    def no_weight_decay(self):
        return {'pos_embed', 'cls_token'}

    def forward(self, x):
        x = self.patch_embed(x)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1)
        x = self.encoder(x + self.pos_embed)
        return self.head(x[:, 0])


model = ViT()
print(sum(p.numel() for p in model.parameters() if p.requires_grad))
skip = model.no_weight_decay()
groups = [
    {'params': [p for n, p in model.named_parameters() if n not in skip and p.ndim > 1]},
    {'params': [p for n, p in model.named_parameters() if n in skip or p.ndim <= 1], 'weight_decay': 0.},
]
optimizer = optim.AdamW(groups, lr=1e-3, weight_decay=0.05)
scheduler = OneCycleLR(optimizer, max_lr=3e-3, total_steps=22, pct_start=0.3)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
colours = torch.rand(5, 3, 1, 1)
for step in range(22):
    labels = torch.randint(0, 5, (12,))
    images = colours[labels] + 0.2 * torch.randn(12, 3, 16, 16)
    if step % 3 == 0:
        images = torch.flip(images, dims=(-1,))
    model.train()
    logits = model(images)
    loss = criterion(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    acc = (logits.argmax(-1) == labels).float().mean()
    print(f'step {step} loss {loss.item():.5f} acc {acc:.3f} lr {scheduler.get_last_lr()[0]:.6f}')
model.eval()
with torch.no_grad():
    print(F.softmax(model(colours.expand(5, 3, 16, 16)), -1).diagonal())

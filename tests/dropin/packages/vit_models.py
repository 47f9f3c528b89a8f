"""vit-pytorch: several models, forward and backward."""

import torch
from vit_pytorch import ViT
from vit_pytorch.cait import CaiT
from vit_pytorch.cvt import CvT
from vit_pytorch.deepvit import DeepViT
from vit_pytorch.pit import PiT
from vit_pytorch.simple_vit import SimpleViT

sizes = {"image_size": 32, "num_classes": 4, "dim": 32, "heads": 2, "mlp_dim": 48}
torch.manual_seed(0)
vit = ViT(patch_size=8, depth=2, dropout=0.1, emb_dropout=0.1, **sizes)
models = {
    "vit": vit,
    "simple": SimpleViT(patch_size=8, depth=2, **sizes),
    "deep": DeepViT(patch_size=8, depth=2, **sizes),
    "cait": CaiT(patch_size=8, depth=2, cls_depth=1, **sizes),
    "pit": PiT(patch_size=8, depth=(1, 1), **sizes),
    "cvt": CvT(num_classes=4, s1_emb_dim=8, s2_emb_dim=16, s2_heads=1, s3_emb_dim=16, s3_depth=1),
}
x = torch.randn(2, 3, 32, 32)
for name, model in models.items():
    torch.manual_seed(1)
    out = model(x)
    loss = out if out.ndim == 0 else torch.nn.functional.cross_entropy(out, torch.tensor([0, 1]))
    loss.backward()
    slopes = sum(p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None)
    print(name, sum(p.numel() for p in model.parameters()), loss.item(), slopes)

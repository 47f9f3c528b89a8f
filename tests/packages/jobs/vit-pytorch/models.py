"""Vision transformers of many kinds, in training."""

import torch
from steps import step
from torch.nn import functional as F
from vit_pytorch import MAE, SimpleViT, ViT
from vit_pytorch.cait import CaiT
from vit_pytorch.cct import CCT
from vit_pytorch.cross_vit import CrossViT
from vit_pytorch.cvt import CvT
from vit_pytorch.deepvit import DeepViT
from vit_pytorch.distill import DistillableViT, DistillWrapper
from vit_pytorch.extractor import Extractor
from vit_pytorch.max_vit import MaxViT
from vit_pytorch.mobile_vit import MobileViT
from vit_pytorch.na_vit import NaViT
from vit_pytorch.pit import PiT
from vit_pytorch.recorder import Recorder
from vit_pytorch.regionvit import RegionViT
from vit_pytorch.simmim import SimMIM
from vit_pytorch.simple_vit_with_register_tokens import SimpleViT as Registers
from vit_pytorch.t2t import T2TViT
from vit_pytorch.vit_for_small_dataset import ViT as SmallViT
from vit_pytorch.vivit import ViViT
from vit_pytorch.xcit import XCiT

SIZES = {"image_size": 32, "num_classes": 4, "dim": 32, "heads": 2, "mlp_dim": 48}
MODELS = {
    "ViT": lambda: ViT(patch_size=8, depth=2, dropout=0.1, emb_dropout=0.1, **SIZES),
    "SimpleViT": lambda: SimpleViT(patch_size=8, depth=2, **SIZES),
    "SimpleViT with registers": lambda: Registers(patch_size=8, depth=2, **SIZES),
    "DeepViT": lambda: DeepViT(patch_size=8, depth=2, **SIZES),
    "CaiT": lambda: CaiT(patch_size=8, depth=2, cls_depth=1, **SIZES),
    "PiT": lambda: PiT(patch_size=8, depth=(1, 1), **SIZES),
    "CvT": lambda: CvT(
        num_classes=4, s1_emb_dim=8, s2_emb_dim=16, s2_heads=1, s3_emb_dim=16, s3_depth=1
    ),
    "CCT": lambda: CCT(
        img_size=32, embedding_dim=32, n_conv_layers=1, num_layers=2, num_heads=2, num_classes=4
    ),
    "CrossViT": lambda: CrossViT(
        image_size=32,
        num_classes=4,
        depth=1,
        sm_dim=16,
        lg_dim=32,
        sm_patch_size=8,
        lg_patch_size=16,
        sm_enc_depth=1,
        lg_enc_depth=1,
    ),
    "MaxViT": lambda: MaxViT(
        num_classes=4, dim=8, depth=(1, 1), dim_head=8, dim_conv_stem=8, window_size=4
    ),
    "T2TViT": lambda: T2TViT(
        dim=32, image_size=32, depth=1, heads=2, mlp_dim=32, num_classes=4, t2t_layers=((7, 4),)
    ),
    "XCiT": lambda: XCiT(patch_size=8, depth=1, cls_depth=1, **SIZES),
    "ViT for small datasets": lambda: SmallViT(patch_size=8, depth=1, **SIZES),
    "RegionViT": lambda: RegionViT(
        dim=(8, 16, 16, 16), depth=(1, 1, 1, 1), window_size=2, num_classes=4, channels=3
    ),
    "MobileViT": lambda: MobileViT((64, 64), [16, 20, 24], [8] * 11, 4),
}
SIDE = {"MaxViT": 64, "RegionViT": 64, "MobileViT": 64}

for name, make in MODELS.items():

    @step(f"{name}: logits, loss, the gradients' sizes", name, make)
    def _(name, make):
        model, side = make(), SIDE.get(name, 32)
        out = model(torch.randn(4, 3, side, side))
        loss = F.cross_entropy(out, torch.tensor([0, 1, 2, 3]))
        loss.backward()
        slopes = [p.grad.norm() for p in model.parameters() if p.grad is not None]
        return out, loss, torch.stack(slopes).norm()


@step("ViT: losses of five steps, saved and loaded")
def _():
    model, x = MODELS["SimpleViT"](), torch.randn(8, 3, 32, 32)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    losses = []
    for _ in range(5):
        loss = F.cross_entropy(model(x), torch.arange(8) % 4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.save(model, "vit.pt")
    return losses, torch.load("vit.pt", weights_only=False).eval()(x)


@step("MAE and SimMIM: losses")
def _():
    vit = ViT(patch_size=8, depth=1, **SIZES)
    mae = MAE(encoder=vit, masking_ratio=0.75, decoder_dim=32, decoder_depth=1)
    sim = SimMIM(encoder=vit, masking_ratio=0.5)
    x = torch.randn(2, 3, 32, 32)
    losses = mae(x), sim(x)
    sum(losses).backward()
    return losses, vit.to_patch_embedding[2].weight.grad


@step("distillation from a convolutional teacher")
def _():
    teacher = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 8, 8), torch.nn.Flatten(), torch.nn.Linear(64, 4)
    )
    student = DistillableViT(patch_size=8, depth=1, **SIZES)
    distiller = DistillWrapper(student=student, teacher=teacher, temperature=3, alpha=0.5)
    loss = distiller(torch.randn(2, 3, 32, 32), torch.tensor([1, 2]))
    loss.backward()
    return loss, student.mlp_head.weight.grad


@step("attention maps by the Recorder, embeddings by the Extractor")
def _():
    vit, x = ViT(patch_size=8, depth=2, **SIZES).eval(), torch.randn(1, 3, 32, 32)
    _, maps = Recorder(vit)(x)
    logits, embeddings = Extractor(vit)(x)
    return maps, logits, embeddings


@step("NaViT: pictures of several sizes in one batch")
def _():
    model = NaViT(image_size=32, patch_size=8, num_classes=4, dim=32, depth=1, heads=2, mlp_dim=32)
    pictures = [torch.randn(3, 16, 32), torch.randn(3, 32, 32), torch.randn(3, 8, 24)]
    return model.eval()(pictures, group_images=True, group_max_seq_len=64)


@step("ViViT: a video")
def _():
    model = ViViT(
        image_size=32,
        frames=4,
        image_patch_size=8,
        frame_patch_size=2,
        num_classes=4,
        dim=32,
        spatial_depth=1,
        temporal_depth=1,
        heads=2,
        mlp_dim=32,
    ).eval()
    return model(torch.randn(1, 3, 4, 32, 32))


@step("a picture that is no multiple of the patch is refused", refused=True)
def _():
    ViT(patch_size=8, depth=1, **SIZES)(torch.randn(1, 3, 30, 32))


@step("weights of another width are refused", refused=True)
def _():
    wide = SimpleViT(patch_size=8, depth=1, **{**SIZES, "dim": 64})
    SimpleViT(patch_size=8, depth=1, **SIZES).load_state_dict(wide.state_dict())

"""Segmentation: architectures, encoders, losses, metrics, training, saving."""

import segmentation_models_pytorch as smp
import torch
from steps import step

ARCHITECTURES = (
    "unet unetplusplus manet linknet fpn pspnet deeplabv3 deeplabv3plus pan upernet segformer dpt"
).split()
for arch in ARCHITECTURES:

    @step(f"{arch}: masks and the gradient of the first weight", arch)
    def _(arch):
        encoder = "tu-vit_tiny_patch16_224" if arch == "dpt" else "resnet18"
        options = {"dynamic_img_size": True} if arch == "dpt" else {}
        model = smp.create_model(arch, encoder, encoder_weights=None, classes=2, **options).eval()
        masks = model(torch.rand(2, 3, 64, 64))
        masks.square().mean().backward()
        return masks, next(p for p in model.parameters() if p.grad is not None).grad


for encoder in (
    "mobilenet_v2",
    "efficientnet-b0",
    "mit_b0",
    "tu-convnext_atto",
    "timm-regnetx_002",
    "vgg11",
    "densenet121",
    "mobileone_s0",
):

    @step(f"a U-Net on {encoder}", encoder)
    def _(encoder):
        depth = (
            {"encoder_depth": 4, "decoder_channels": (64, 32, 16, 8)} if "conv" in encoder else {}
        )
        model = smp.Unet(encoder, encoder_weights=None, classes=1, **depth).eval()
        with torch.no_grad():
            return model(torch.rand(1, 3, 64, 64))


def pair(mode):
    scores = torch.randn(2, 1 if mode == "binary" else 3, 8, 8, requires_grad=True)
    if mode == "multiclass":
        return scores, torch.randint(3, (2, 8, 8))
    return scores, torch.randint(2, scores.shape)


for mode in ("binary", "multiclass", "multilabel"):

    @step(f"losses and their gradients, {mode}", mode)
    def _(mode):
        scores, labels = pair(mode)
        losses = [
            smp.losses.DiceLoss(mode)(scores, labels),
            smp.losses.JaccardLoss(mode)(scores, labels),
            smp.losses.TverskyLoss(mode, alpha=0.3, beta=0.7)(scores, labels),
            smp.losses.FocalLoss(mode, alpha=0.25)(scores, labels),
        ]
        if mode != "multilabel":
            losses.append(smp.losses.LovaszLoss(mode)(scores, labels))
            losses.append(
                smp.losses.MCCLoss()(
                    scores[:, :1].sigmoid(),
                    labels.float()[:, None] if mode == "multiclass" else labels.float(),
                )
            )
        sum(losses).backward()
        return losses, scores.grad


@step("soft cross-entropy with smoothing")
def _():
    scores, labels = pair("multiclass")
    bce = smp.losses.SoftBCEWithLogitsLoss(smooth_factor=0.1)
    return (
        smp.losses.SoftCrossEntropyLoss(smooth_factor=0.1, ignore_index=2)(scores, labels),
        bce(scores[:, :1], torch.randint(2, (2, 1, 8, 8)).float()),
    )


@step("metrics")
def _():
    scores, labels = torch.rand(3, 1, 8, 8), torch.randint(2, (3, 1, 8, 8))
    stats = smp.metrics.get_stats(scores, labels, mode="binary", threshold=0.5)
    kinds = (
        smp.metrics.iou_score,
        smp.metrics.f1_score,
        smp.metrics.accuracy,
        smp.metrics.recall,
        smp.metrics.precision,
        smp.metrics.balanced_accuracy,
    )
    return stats, [
        kind(*stats, reduction=how) for kind in kinds for how in ("micro", "micro-imagewise")
    ]


@step("training: losses of four steps, saved as a folder, from_pretrained")
def _():
    model = smp.Unet(
        "resnet18", encoder_weights=None, classes=1, encoder_depth=3, decoder_channels=(32, 16, 8)
    )
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    x = torch.rand(4, 3, 32, 32)
    labels, loss = (x.mean(1, keepdim=True) > 0.5).float(), smp.losses.DiceLoss("binary")
    losses = []
    for _ in range(4):
        found = loss(model(x), labels)
        optimizer.zero_grad()
        found.backward()
        optimizer.step()
        losses.append(found.item())
    model.save_pretrained("unet", metrics={"iou": 0.5}, dataset="made")
    again = smp.from_pretrained("unet")
    with torch.no_grad():
        difference = (again.eval()(x) - model.eval()(x)).abs().max().item()
    return losses, difference, smp.encoders.get_preprocessing_params("resnet18")


@step("a head for classes beside the masks; frozen encoder")
def _():
    model = smp.FPN(
        "resnet18", encoder_weights=None, aux_params={"classes": 4, "dropout": None}
    ).eval()
    masks, classes = model(torch.rand(1, 3, 64, 64))
    model.freeze_encoder() if hasattr(model, "freeze_encoder") else None
    return masks, classes, sum(p.requires_grad for p in model.parameters())


@step("five channels; the predict method; export to ONNX")
def _():
    import onnxruntime

    model = smp.Unet(
        "resnet18",
        encoder_weights=None,
        in_channels=5,
        encoder_depth=3,
        decoder_channels=(16, 8, 8),
    ).eval()
    x = torch.rand(1, 5, 32, 32)
    torch.onnx.export(model, (x,), "unet.onnx", input_names=["x"], dynamo=False)
    return model.predict(x), onnxruntime.InferenceSession("unet.onnx").run(None, {"x": x.numpy()})


@step("a size that no stride divides is refused", refused=True)
def _():
    smp.Unet("resnet18", encoder_weights=None)(torch.rand(1, 3, 50, 64))


@step("an unknown encoder is refused", refused=True)
def _():
    smp.Unet("nonsense", encoder_weights=None)


@step("weights of another number of classes are refused", refused=True)
def _():
    one = smp.Unet("resnet18", encoder_weights=None, classes=1)
    one.load_state_dict(smp.Unet("resnet18", encoder_weights=None, classes=2).state_dict())


@step("masks of another shape are refused", refused=True)
def _():
    smp.losses.DiceLoss("binary")(torch.rand(1, 1, 8, 8), torch.ones(1, 1, 4, 4))

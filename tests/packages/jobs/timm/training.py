"""Training: optimizers, schedules, losses, mixed pictures, averaged weights, loaders."""

import timm
import timm.data
import timm.layers
import timm.loss
import timm.optim
import timm.scheduler
import timm.utils
import torch
from PIL import Image
from steps import step
from torch import nn


def small():
    return nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))


OPTIMIZERS = (
    "sgd adamw lamb lars adan adopt adafactor adafactorbv nadamw lion madgrad radam rmsproptf sgdp "
    "adamp adabelief novograd muon mars laprop yogi nvlamb cadamw"
).split()
for name in OPTIMIZERS:

    @step(f"optimizer {name}: losses and the weights after five steps", name)
    def _(name):
        model, x = small(), torch.randn(12, 6)
        optimizer = timm.optim.create_optimizer_v2(model, opt=name, lr=0.01, weight_decay=0.05)
        losses = []
        for _ in range(5):
            loss = nn.functional.cross_entropy(model(x), torch.arange(12) % 3)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, model[0].weight


@step("layer decay, Lookahead, and the optimizer's state saved and loaded")
def _():
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, num_classes=3)
    groups = timm.optim.param_groups_layer_decay(model, 0.05, layer_decay=0.8)
    rates = [group["lr_scale"] for group in groups]
    optimizer = timm.optim.create_optimizer_v2(model, opt="lookahead_adamw", lr=1e-3)
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.rand(2, 3, 32, 32)).square().mean().backward()
        optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    return rates, model.head.weight


SCHEDULES = {
    "cosine": {"warmup_epochs": 2, "warmup_lr": 1e-4},
    "tanh": {},
    "step": {"decay_epochs": 2, "decay_rate": 0.5},
    "multistep": {"decay_milestones": [2, 4]},
    "plateau": {"patience_epochs": 1},
    "poly": {},
}
for name, options in SCHEDULES.items():

    @step(f"schedule {name}: rates of eight epochs", name, options)
    def _(name, options):
        optimizer = torch.optim.SGD(small().parameters(), lr=0.1)
        schedule, epochs = timm.scheduler.create_scheduler_v2(
            optimizer, sched=name, num_epochs=8, **options
        )
        rates = []
        for epoch in range(8):
            schedule.step(epoch, metric=1.0)
            rates.append(optimizer.param_groups[0]["lr"])
        return rates, epochs


@step("losses")
def _():
    x, labels = torch.randn(6, 5, requires_grad=True), torch.arange(6) % 5
    soft = torch.rand(6, 5).softmax(1)
    losses = [
        timm.loss.LabelSmoothingCrossEntropy(0.1)(x, labels),
        timm.loss.SoftTargetCrossEntropy()(x, soft),
        timm.loss.JsdCrossEntropy(num_splits=3)(x, labels),
        timm.loss.BinaryCrossEntropy(0.1, target_threshold=0.2)(x, soft),
        timm.loss.AsymmetricLossMultiLabel()(x, (soft > 0.2).float()),
    ]
    sum(losses).backward()
    return losses, x.grad


@step("Mixup and CutMix of a batch, random erasing")
def _():
    mix = timm.data.Mixup(mixup_alpha=0.4, cutmix_alpha=1.0, num_classes=4)
    x, labels = torch.rand(4, 3, 16, 16), torch.arange(4)
    erased = timm.data.random_erasing.RandomErasing(1.0, device="cpu")(torch.rand(2, 3, 16, 16))
    return [mix(x.clone(), labels) for _ in range(3)], erased


@step("ModelEmaV2 and ModelEmaV3 after ten steps, with warm-up, and their logits")
def _():
    model = timm.create_model("resnet10t", num_classes=3)
    two = timm.utils.ModelEmaV2(model, decay=0.9)
    three = timm.utils.ModelEmaV3(model, decay=0.99, use_warmup=True)
    looped = timm.utils.ModelEmaV3(model, decay=0.9, foreach=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for index in range(4):
        optimizer.zero_grad()
        model(torch.rand(4, 3, 32, 32)).square().mean().backward()
        optimizer.step()
        two.update(model)
        three.update(model, step=index)
        looped.update(model, step=index)
    x = torch.rand(1, 3, 32, 32)
    with torch.no_grad():
        return [each.module.eval()(x) for each in (two, three, looped)]


@step("a training run: clipped, scaled, saved by CheckpointSaver, resumed")
def _():
    from timm.models import resume_checkpoint

    def parts():
        torch.manual_seed(3)
        model = small()
        return model, timm.optim.create_optimizer_v2(model, opt="adamw", lr=0.01)

    model, optimizer = parts()
    saver = timm.utils.CheckpointSaver(model, optimizer, checkpoint_dir=".", recovery_dir=".")
    x, labels, losses = torch.randn(12, 6), torch.arange(12) % 3, []
    scaler = timm.utils.NativeScaler(device="cpu")

    def epoch(model, optimizer):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x).float(), labels)
        optimizer.zero_grad()
        scaler(loss, optimizer, clip_grad=1.0, clip_mode="agc", parameters=model.parameters())
        losses.append(loss.item())

    for number in range(4):
        epoch(model, optimizer)
        best = saver.save_checkpoint(number, metric=-losses[-1])
    model, optimizer = parts()
    start = resume_checkpoint(model, "last.pth.tar", optimizer)
    epoch(model, optimizer)
    return losses, best, start


@step("transforms and a loader of pictures in folders")
def _():
    import os

    for label in ("cat", "dog"):
        os.makedirs(f"pictures/{label}", exist_ok=True)
        for index in range(3):
            shade = 30 * index + (100 if label == "dog" else 0)
            picture = Image.new("RGB", (40, 30), (shade, 255 - shade, 60))
            picture.putpixel((5, 5), (255, 0, 0))
            picture.save(f"pictures/{label}/{index}.png")
    data = timm.data.create_dataset("", root="pictures")
    loader = timm.data.create_loader(
        data, (3, 24, 24), 3, is_training=False, use_prefetcher=False, num_workers=0
    )
    trained = timm.data.create_transform(24, is_training=True, auto_augment="rand-m9-mstd0.5")
    return [list(batch) for batch in loader], trained(Image.open("pictures/cat/1.png"))


@step("layers: patches dropped, attention pooled, positions, normalized weights")
def _():
    tokens = torch.randn(2, 16, 32, requires_grad=True)
    pooled = timm.layers.AttentionPoolLatent(32, num_heads=2)(tokens)
    pooled.sum().backward()
    kept = timm.layers.PatchDropout(0.5)(tokens)
    standard = timm.layers.StdConv2d(3, 4, 3)(torch.rand(1, 3, 8, 8))
    turned = timm.layers.apply_rot_embed_cat(
        tokens[:, None], timm.layers.build_rotary_pos_embed([4, 4], 32)[0].new_ones(16, 64)
    )
    blurred = timm.layers.BlurPool2d(3)(torch.rand(1, 3, 8, 8))
    return pooled, tokens.grad, kept, standard, turned, blurred


@step("accuracy, AverageMeter, AGC, freezing")
def _():
    scores, labels = torch.rand(8, 6), torch.arange(8) % 6
    meter = timm.utils.AverageMeter()
    for value in timm.utils.accuracy(scores, labels, topk=(1, 5)):
        meter.update(value.item())
    model = timm.create_model("resnet10t", num_classes=3)
    timm.utils.freeze(model, ["conv1", "bn1", "layer1"])
    return meter.avg, [name for name, p in model.named_parameters() if p.requires_grad]


@step("an odd batch for Mixup is refused", refused=True)
def _():
    timm.data.Mixup(mixup_alpha=0.4, num_classes=4)(torch.rand(3, 3, 8, 8), torch.arange(3))


@step("an unknown optimizer is refused", refused=True)
def _():
    timm.optim.create_optimizer_v2(small(), opt="nonsense", lr=0.1)


@step("an unknown schedule's epochs are refused", refused=True)
def _():
    timm.scheduler.create_scheduler_v2(None, sched="cosine", num_epochs=3)

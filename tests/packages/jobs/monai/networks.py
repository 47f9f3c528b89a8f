"""Networks, losses, metrics, sliding windows, training, engines."""

import monai
import torch
from monai import inferers, losses, metrics
from monai.networks import nets, one_hot
from steps import step

UNET = {
    "spatial_dims": 2,
    "in_channels": 1,
    "out_channels": 3,
    "channels": (4, 8, 16),
    "strides": (2, 2),
}
NETS = {
    "UNet": (lambda: nets.UNet(num_res_units=1, **UNET), (1, 32, 32)),
    "UNet in 3-D": (lambda: nets.UNet(**{**UNET, "spatial_dims": 3}), (1, 16, 16, 16)),
    "BasicUNet": (lambda: nets.BasicUNet(2, 1, 3, (4, 4, 8, 8, 8, 4)), (1, 32, 32)),
    "AttentionUnet": (
        lambda: nets.AttentionUnet(2, 1, 3, channels=(4, 8, 16), strides=(2, 2)),
        (1, 32, 32),
    ),
    "DynUNet": (
        lambda: nets.DynUNet(2, 1, 3, [3, 3, 3], [1, 2, 2], [2, 2], filters=[4, 8, 16]),
        (1, 32, 32),
    ),
    "SegResNet": (lambda: nets.SegResNet(2, 8, 1, 3), (1, 32, 32)),
    "VNet": (lambda: nets.VNet(2, 1, 3, dropout_prob_down=0.0), (1, 32, 32)),
    "UNETR": (
        lambda: nets.UNETR(
            1, 3, (32, 32), feature_size=8, hidden_size=24, mlp_dim=32, num_heads=3, spatial_dims=2
        ),
        (1, 32, 32),
    ),
    "SwinUNETR": (
        lambda: nets.SwinUNETR(
            1, 3, feature_size=12, depths=(1, 1, 1, 1), num_heads=(1, 2, 2, 2), spatial_dims=2
        ),
        (1, 64, 64),
    ),
    "DenseNet": (
        lambda: nets.DenseNet(2, 1, 3, init_features=8, growth_rate=4, block_config=(2, 2)),
        (1, 32, 32),
    ),
    "EfficientNetBN": (
        lambda: nets.EfficientNetBN("efficientnet-b0", False, False, 2, 1, 3),
        (1, 32, 32),
    ),
    "ResNet": (
        lambda: nets.resnet10(spatial_dims=3, n_input_channels=1, num_classes=3),
        (1, 16, 16, 16),
    ),
    "ViT": (
        lambda: nets.ViT(
            1,
            (32, 32),
            (8, 8),
            hidden_size=24,
            mlp_dim=32,
            num_layers=2,
            num_heads=3,
            classification=True,
            num_classes=3,
            spatial_dims=2,
        ),
        (1, 32, 32),
    ),
    "AutoEncoder": (lambda: nets.AutoEncoder(2, 1, 1, (4, 8), (2, 2)), (1, 32, 32)),
    "VarAutoEncoder": (
        lambda: nets.VarAutoEncoder(2, (1, 32, 32), 1, 4, (4, 8), (2, 2)),
        (1, 32, 32),
    ),
    "DiffusionModelUNet": (
        lambda: nets.DiffusionModelUNet(
            2,
            1,
            1,
            channels=(8, 8),
            attention_levels=(False, True),
            num_res_blocks=1,
            num_head_channels=8,
            norm_num_groups=4,
        ),
        (1, 16, 16),
    ),
    "FlexibleUNet": (
        lambda: nets.FlexibleUNet(1, 3, "efficientnet-b0", decoder_channels=(16, 8, 8, 8, 8)),
        (1, 32, 32),
    ),
}
for name, (make, shape) in NETS.items():

    @step(f"{name}: outputs and the gradient of the first weight", name, make, shape)
    def _(name, make, shape):
        model = make().eval()
        x = torch.rand(2, *shape)
        out = model(x, torch.tensor([3, 7])) if name.startswith("Diffusion") else model(x)
        out = out[0] if isinstance(out, tuple) else out
        out.square().mean().backward()
        return out, next(p for p in model.parameters() if p.grad is not None).grad


LOSSES = {
    "Dice": losses.DiceLoss(to_onehot_y=True, softmax=True),
    "DiceCE": losses.DiceCELoss(to_onehot_y=True, softmax=True),
    "DiceFocal": losses.DiceFocalLoss(to_onehot_y=True, softmax=True),
    "GeneralizedDice": losses.GeneralizedDiceLoss(to_onehot_y=True, softmax=True),
    "Tversky": losses.TverskyLoss(to_onehot_y=True, softmax=True),
    "Focal": losses.FocalLoss(to_onehot_y=True),
    "HausdorffDT": losses.HausdorffDTLoss(to_onehot_y=True, softmax=True),
    "MaskedDice": losses.MaskedDiceLoss(to_onehot_y=True, softmax=True),
}
for name, loss in LOSSES.items():

    @step(f"loss: {name}, and its gradient", loss)
    def _(loss):
        x = torch.randn(2, 3, 12, 12, requires_grad=True)
        found = loss(x, torch.randint(3, (2, 1, 12, 12)))
        found.backward()
        return found, x.grad


@step("losses of pictures, registration and contrast")
def _():
    x, y = torch.rand(2, 1, 16, 16, requires_grad=True), torch.rand(2, 1, 16, 16)
    found = [
        losses.SSIMLoss(2, win_size=5)(x, y),
        losses.LocalNormalizedCrossCorrelationLoss(2, kernel_size=3)(x, y),
        losses.GlobalMutualInformationLoss(num_bins=8)(x, y),
        losses.BendingEnergyLoss()(torch.cat([x, x.square()], 1)),
        losses.ContrastiveLoss(temperature=0.5)(x.flatten(1), y.flatten(1)),
        losses.PatchAdversarialLoss()(x, True),
    ]
    sum(found).backward()
    return found, x.grad


@step("metrics: Dice, Hausdorff, surfaces, IoU, confusion, ROC, regression, panoptic")
def _():
    one = one_hot(torch.randint(2, (2, 1, 16, 16)), 2)
    other = one_hot(torch.randint(2, (2, 1, 16, 16)), 2)
    kinds = (
        metrics.DiceMetric(include_background=False, get_not_nans=True),
        metrics.HausdorffDistanceMetric(percentile=95),
        metrics.SurfaceDistanceMetric(symmetric=True),
        metrics.SurfaceDiceMetric([1.0]),
        metrics.MeanIoU(),
        metrics.GeneralizedDiceScore(),
        metrics.ConfusionMatrixMetric(metric_name=["sensitivity", "precision"]),
        metrics.MSEMetric(),
        metrics.PSNRMetric(1.0),
        metrics.SSIMMetric(2, win_size=5),
    )
    found = []
    for metric in kinds:
        metric(one, other)
        value = metric.aggregate()
        found.append(list(value) if isinstance(value, (list, tuple)) else value)
    return found, metrics.compute_roc_auc(torch.rand(20), torch.randint(2, (20,)))


@step("a sliding window over a volume, Gaussian and constant; a slice at a time")
def _():
    net = torch.nn.Conv3d(1, 2, 3, padding=1)
    x = torch.rand(1, 1, 20, 18, 22)
    with torch.no_grad():
        return (
            inferers.sliding_window_inference(x, (8, 8, 8), 4, net, 0.25, "gaussian"),
            inferers.sliding_window_inference(x, (8, 8, 8), 3, net, 0.5),
            inferers.SliceInferer((20, 18), spatial_dim=2)(x, torch.nn.Conv2d(1, 2, 3, padding=1)),
            inferers.PatchInferer(inferers.SlidingWindowSplitter((8, 8, 8), 0.0), batch_size=2)(
                x, net
            ),
        )


@step("training a U-Net with deep supervision; saved and loaded")
def _():
    net = nets.DynUNet(
        2,
        1,
        2,
        [3, 3, 3],
        [1, 2, 2],
        [2, 2],
        filters=[4, 8, 8],
        deep_supervision=True,
        deep_supr_num=1,
    )
    loss = losses.DeepSupervisionLoss(losses.DiceCELoss(to_onehot_y=True, softmax=True))
    optimizer = monai.optimizers.Novograd(net.parameters(), 1e-2)
    x, found = torch.rand(4, 1, 16, 16), []
    labels = (x > 0.5).float()
    for _ in range(5):
        optimizer.zero_grad()
        value = loss(list(net(x).unbind(1)), labels)
        value.backward()
        optimizer.step()
        found.append(value.item())
    torch.save(net.state_dict(), "net.pt")
    net.load_state_dict(torch.load("net.pt"))
    return found, net.eval()(x)


@step("learning rates found and scheduled; layers' rates")
def _():
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    groups = monai.optimizers.generate_param_groups(
        net, [lambda m: m[0]], ["select"], [0.5], include_others=True
    )
    optimizer = torch.optim.SGD(groups, 0.1)
    schedule = monai.optimizers.WarmupCosineSchedule(optimizer, 2, 8)
    rates = []
    for _ in range(8):
        optimizer.step()
        schedule.step()
        rates.append([group["lr"] for group in optimizer.param_groups])
    return rates


@step("a diffusion model: noise, losses, samples by DDIM")
def _():
    from monai.networks.schedulers import DDIMScheduler, DDPMScheduler

    net = NETS["DiffusionModelUNet"][0]().train()
    noise, steps = torch.randn(2, 1, 16, 16), torch.tensor([3, 700])
    inferer = inferers.DiffusionInferer(DDPMScheduler(1000))
    found = inferer(torch.rand(2, 1, 16, 16), net, noise, steps)
    loss = torch.nn.functional.mse_loss(found, noise)
    loss.backward()
    schedule = DDIMScheduler(1000)
    schedule.set_timesteps(4)
    with torch.no_grad():
        return loss, inferers.DiffusionInferer(schedule).sample(
            noise, net.eval(), schedule, verbose=False
        )


@step("engines: a supervised trainer with handlers")
def _():
    from monai.engines import SupervisedEvaluator, SupervisedTrainer
    from monai.handlers import CheckpointSaver, MeanDice, ValidationHandler

    net = nets.UNet(**UNET | {"out_channels": 2})
    data = [{"image": torch.rand(1, 16, 16)} for _ in range(8)]
    for item in data:
        item["label"] = (item["image"] > 0.5).float()
    loader = monai.data.DataLoader(data, 4)
    score = lambda out: (  # noqa: E731
        [one_hot(each["pred"].argmax(0, keepdim=True), 2, dim=0) for each in out],
        [one_hot(each["label"], 2, dim=0) for each in out],
    )
    judge = SupervisedEvaluator(
        torch.device("cpu"), loader, net, key_val_metric={"dice": MeanDice(output_transform=score)}
    )
    saver = CheckpointSaver("kept", {"net": net}, save_final=True)
    trainer = SupervisedTrainer(
        torch.device("cpu"),
        2,
        loader,
        net,
        torch.optim.Adam(net.parameters(), 1e-2),
        losses.DiceCELoss(to_onehot_y=True, softmax=True),
        train_handlers=[ValidationHandler(1, judge), saver],
    )
    trainer.run()
    return [each["loss"] for each in trainer.state.output], judge.state.metrics


@step("visualization by class activation and occlusion")
def _():
    net = nets.DenseNet(2, 1, 3, init_features=8, growth_rate=4, block_config=(2, 2)).eval()
    x = torch.rand(1, 1, 32, 32)
    cam = monai.visualize.GradCAM(nn_module=net, target_layers="class_layers.relu")
    occlusion = monai.visualize.OcclusionSensitivity(nn_module=net, mask_size=12, n_batch=4)
    return cam(x), occlusion(x)[0]


@step("a label beyond the classes is refused", refused=True)
def _():
    losses.DiceLoss(to_onehot_y=True, softmax=True)(
        torch.rand(1, 2, 8, 8), torch.full((1, 1, 8, 8), 5)
    )


@step("masks of another shape are refused", refused=True)
def _():
    losses.DiceLoss()(torch.rand(1, 2, 8, 8), torch.rand(1, 2, 8, 9))


@step("weights of another network are refused", refused=True)
def _():
    nets.UNet(**UNET).load_state_dict(nets.UNet(**UNET | {"out_channels": 4}).state_dict())

"""Diffusion: U-Nets, losses, samples, interpolation, other formulations."""

import torch
from denoising_diffusion_pytorch import (
    ElucidatedDiffusion,
    GaussianDiffusion,
    GaussianDiffusion1D,
    LearnedGaussianDiffusion,
    Unet,
    Unet1D,
    WeightedObjectiveGaussianDiffusion,
)
from denoising_diffusion_pytorch.classifier_free_guidance import GaussianDiffusion as Guided
from denoising_diffusion_pytorch.classifier_free_guidance import Unet as GuidedUnet
from denoising_diffusion_pytorch.continuous_time_gaussian_diffusion import (
    ContinuousTimeGaussianDiffusion,
)
from steps import step


def unet(**options):
    return Unet(dim=8, dim_mults=(1, 2), flash_attn=False, attn_dim_head=8, attn_heads=2, **options)


for objective in ("pred_noise", "pred_v", "pred_x0"):

    @step(f"{objective}: losses of three steps, samples by DDPM", objective)
    def _(objective):
        model = GaussianDiffusion(unet(), image_size=16, timesteps=5, objective=objective)
        optimizer, losses = torch.optim.Adam(model.parameters(), 1e-3), []
        for _ in range(3):
            loss = model(torch.rand(2, 3, 16, 16))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, model.sample(batch_size=1)


for schedule in ("linear", "cosine", "sigmoid"):

    @step(f"the {schedule} schedule: its betas, samples by DDIM, a mixture of pictures", schedule)
    def _(schedule):
        model = GaussianDiffusion(
            unet(self_condition=True),
            image_size=16,
            timesteps=20,
            sampling_timesteps=4,
            beta_schedule=schedule,
            min_snr_loss_weight=True,
        )
        x = torch.rand(2, 3, 16, 16)
        return model.betas, model.sample(2), model.interpolate(x[:1], x[1:], t=3)


@step("sequences: a U-Net in one dimension")
def _():
    net = Unet1D(dim=8, dim_mults=(1, 2), channels=4, attn_dim_head=8, attn_heads=2)
    model = GaussianDiffusion1D(net, seq_length=16, timesteps=5, objective="pred_v")
    loss = model(torch.rand(2, 4, 16))
    loss.backward()
    return loss, model.sample(1)


@step("learned variances, a weighted objective, continuous time, EDM")
def _():
    x = torch.rand(2, 3, 16, 16)
    learned = LearnedGaussianDiffusion(unet(learned_variance=True), image_size=16, timesteps=5)
    weighted = WeightedObjectiveGaussianDiffusion(
        Unet(dim=8, dim_mults=(1, 2), out_dim=8, attn_dim_head=8, attn_heads=2),
        image_size=16,
        timesteps=5,
    )
    continuous = ContinuousTimeGaussianDiffusion(
        unet(random_or_learned_sinusoidal_cond=True), image_size=16, num_sample_steps=3
    )
    elucidated = ElucidatedDiffusion(
        unet(random_or_learned_sinusoidal_cond=True), image_size=16, num_sample_steps=3
    )
    losses = []
    for model in (learned, weighted, continuous, elucidated):
        loss = model(x)
        loss.backward()
        losses.append(loss.item())
    return losses, continuous.sample(1), elucidated.sample(1)


@step("guidance without a classifier: loss and samples")
def _():
    net = GuidedUnet(
        dim=8, dim_mults=(1, 2), num_classes=3, cond_drop_prob=0.5, attn_dim_head=8, attn_heads=2
    )
    model = Guided(net, image_size=16, timesteps=4)
    loss = model(torch.rand(2, 3, 16, 16), classes=torch.tensor([0, 2]))
    loss.backward()
    return loss, model.sample(classes=torch.tensor([1]), cond_scale=3.0)


@step(
    "the Trainer on a folder: its state saved and loaded",
)
def _():
    import os

    import numpy as np
    from denoising_diffusion_pytorch import Trainer
    from PIL import Image

    os.makedirs("pictures", exist_ok=True)
    for index in range(104):
        array = np.random.default_rng(index).integers(0, 255, (16, 16, 3), dtype=np.uint8)
        Image.fromarray(array).save(f"pictures/{index}.png")
    model = GaussianDiffusion(unet(), image_size=16, timesteps=4)

    def trainer():
        return Trainer(
            model,
            "pictures",
            train_batch_size=2,
            train_lr=1e-3,
            train_num_steps=2,
            gradient_accumulate_every=1,
            save_and_sample_every=2,
            num_samples=1,
            calculate_fid=False,
            results_folder="results",
        )

    first = trainer()
    first.train()
    again = trainer()
    again.load(1)
    return again.step, sorted(os.listdir("results"))


@step("a picture of another size is refused", refused=True)
def _():
    GaussianDiffusion(unet(), image_size=16, timesteps=4)(torch.rand(1, 3, 8, 8))


@step("an unknown objective is refused", refused=True)
def _():
    GaussianDiffusion(unet(), image_size=16, timesteps=4, objective="nonsense")


@step("a side that cannot be halved is refused", refused=True)
def _():
    GaussianDiffusion(unet(), image_size=15, timesteps=4)(torch.rand(1, 3, 15, 15))

"""Denoising diffusion: sinusoidal time embedding, buffers by register_buffer, EMA copy, sampling."""
import copy
import math
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F


def exists(x):
    return x is not None


def default(val, d):
    if exists(val):
        return val
    return d() if callable(d) else d


class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim, theta=10000):
        super().__init__()
        self.dim, self.theta = dim, theta

    def forward(self, x):
        half_dim = self.dim // 2
        emb = math.log(self.theta) / (half_dim - 1)
        emb = torch.exp(torch.arange(half_dim, device=x.device) * -emb)
        emb = x[:, None] * emb[None, :]
        return torch.cat((emb.sin(), emb.cos()), dim=-1)


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = dim ** 0.5
        self.g = nn.Parameter(torch.ones(1, dim, 1, 1))

    def forward(self, x):
        return F.normalize(x, dim=1) * self.g * self.scale


class Block(nn.Module):
    def __init__(self, dim, dim_out, time_dim):
        super().__init__()
        self.mlp = nn.Sequential(nn.SiLU(), nn.Linear(time_dim, dim_out * 2))
        self.proj = nn.Conv2d(dim, dim_out, 3, padding=1)
        self.norm = RMSNorm(dim_out)
        self.act = nn.SiLU()
        self.res = nn.Conv2d(dim, dim_out, 1) if dim != dim_out else nn.Identity()

    def forward(self, x, t):
        scale, shift = self.mlp(t)[:, :, None, None].chunk(2, dim=1)
        h = self.norm(self.proj(x)) * (scale + 1) + shift
        return self.act(h) + self.res(x)


class Unet(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.time_mlp = nn.Sequential(SinusoidalPosEmb(dim), nn.Linear(dim, 32), nn.GELU(), nn.Linear(32, 32))
        conv = partial(nn.Conv2d, kernel_size=3, padding=1)
        self.init_conv = conv(1, dim)
        self.down, self.mid, self.up = Block(dim, dim, 32), Block(dim, 2 * dim, 32), Block(3 * dim, dim, 32)
        self.final = nn.Conv2d(dim, 1, 1)
        nn.init.zeros_(self.final.weight)

    def forward(self, x, time):
        t = self.time_mlp(time)
        x = self.init_conv(x)
        h = self.down(x, t)
        m = self.mid(F.avg_pool2d(h, 2), t)
        m = F.interpolate(m, scale_factor=2, mode='nearest')
        return self.final(self.up(torch.cat((m, h), dim=1), t))


def extract(a, t, x_shape):
    b, *_ = t.shape
    return a.gather(-1, t).reshape(b, *((1,) * (len(x_shape) - 1)))


def cosine_beta_schedule(timesteps, s=0.008):
    steps = timesteps + 1
    t = torch.linspace(0, timesteps, steps, dtype=torch.float64) / timesteps
    alphas_cumprod = torch.cos((t + s) / (1 + s) * math.pi * 0.5) ** 2
    alphas_cumprod = alphas_cumprod / alphas_cumprod[0]
    return torch.clip(1 - (alphas_cumprod[1:] / alphas_cumprod[:-1]), 0, 0.999)


class GaussianDiffusion(nn.Module):
    def __init__(self, model, timesteps=20):
        super().__init__()
        self.model, self.num_timesteps = model, timesteps
        betas = cosine_beta_schedule(timesteps)
        alphas = 1. - betas
        cumprod = torch.cumprod(alphas, dim=0)
        prev = F.pad(cumprod[:-1], (1, 0), value=1.)

        def register_buffer(name, val):
            self.register_buffer(name, val.to(torch.float32))
        register_buffer('betas', betas)
        register_buffer('sqrt_cumprod', torch.sqrt(cumprod))
        register_buffer('sqrt_one_minus', torch.sqrt(1. - cumprod))
        register_buffer('variance', betas * (1. - prev) / (1. - cumprod))
        register_buffer('coef1', betas * torch.sqrt(prev) / (1. - cumprod))
        register_buffer('coef2', (1. - prev) * torch.sqrt(alphas) / (1. - cumprod))

    @torch.inference_mode()
    def sample(self, shape):
        img = torch.randn(shape, device=self.betas.device)
        for i in reversed(range(0, self.num_timesteps)):
            t = torch.full((shape[0],), i, dtype=torch.long)
            noise_pred = self.model(img, t)
            x0 = (img - extract(self.sqrt_one_minus, t, img.shape) * noise_pred) / extract(
                self.sqrt_cumprod, t, img.shape)
            x0.clamp_(-1., 1.)
            mean = extract(self.coef1, t, img.shape) * x0 + extract(self.coef2, t, img.shape) * img
            noise = torch.randn_like(img) if i > 0 else 0.
            img = mean + extract(self.variance, t, img.shape).sqrt() * noise
        return img

    def forward(self, x_start, noise=None):
        b = x_start.shape[0]
        t = torch.randint(0, self.num_timesteps, (b,), device=x_start.device).long()
        noise = default(noise, lambda: torch.randn_like(x_start))
        x = extract(self.sqrt_cumprod, t, x_start.shape) * x_start + extract(
            self.sqrt_one_minus, t, x_start.shape) * noise
        loss = F.mse_loss(self.model(x, t), noise, reduction='none')
        return loss.flatten(1).mean(dim=1).mean()


torch.manual_seed(10)
diffusion = GaussianDiffusion(Unet())
ema = copy.deepcopy(diffusion).eval().requires_grad_(False)
opt = torch.optim.Adam(diffusion.parameters(), lr=2e-3, betas=(0.9, 0.99))
for step in range(22):
    phase = torch.rand(8, 1, 1, 1) * 6
    images = torch.sin(torch.arange(8.).view(1, 1, 8, 1) + phase).expand(-1, -1, 8, 8)
    loss = diffusion(images)
    loss.backward()
    nn.utils.clip_grad_norm_(diffusion.parameters(), 1.0)
    opt.step()
    opt.zero_grad()
    with torch.no_grad():
        for p_ema, p in zip(ema.parameters(), diffusion.parameters()):
            p_ema.lerp_(p, 0.1)
    print(f'loss: {loss.item():.5f}')
sample = ema.sample((2, 1, 8, 8))
print('sample', sample.mean().item(), sample.std().item(), sorted(diffusion.state_dict())[:3])

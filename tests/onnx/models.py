"""Small networks of many kinds, as people write them."""

from __future__ import annotations

from typing import Any

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import functional as F


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(6)
        self.conv2 = nn.Conv2d(6, 8, 3, stride=2, dilation=2, groups=2, bias=False)
        self.pool = nn.MaxPool2d(2, ceil_mode=True)
        self.average = nn.AvgPool2d(3, 1, padding=1, count_include_pad=False)
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(8 * 2 * 2, 5)
        self.unused = nn.Linear(2, 2)

    def forward(self, image):
        x = F.relu(self.bn1(self.conv1(image)), inplace=True)
        x = self.average(self.pool(self.conv2(x)))
        x = F.adaptive_avg_pool2d(x, 2)
        return self.fc(self.drop(torch.flatten(x, 1)))


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layers = nn.Sequential(Residual(8, 8, 1), Residual(8, 16, 2))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        x = self.maxpool(self.bn1(self.conv1(x)).relu_())
        x = self.avgpool(self.layers(x))
        return self.fc(x.view(x.size(0), -1))


class Activations(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(
            [
                nn.ReLU(), nn.ReLU6(), nn.LeakyReLU(0.2), nn.PReLU(7), nn.ELU(0.7), nn.SELU(),
                nn.CELU(1.3), nn.GELU(), nn.GELU("tanh"), nn.SiLU(), nn.Mish(), nn.Softplus(),
                nn.Softplus(2, 3), nn.Softsign(), nn.Tanh(), nn.Sigmoid(), nn.LogSigmoid(),
                nn.Hardtanh(-0.5, 0.5), nn.Hardsigmoid(), nn.Hardswish(), nn.Hardshrink(0.3),
                nn.Softshrink(0.3), nn.Tanhshrink(), nn.Threshold(0.1, 20.0), nn.Softmin(1),
                nn.Softmax(-1), nn.LogSoftmax(1), nn.RReLU(),
            ]
        )  # fmt: skip
        self.fc = nn.Linear(7, 7)

    def forward(self, x):
        x = self.fc(x)
        return torch.stack([part(x) for part in self.parts]), F.glu(torch.cat([x, x], -1))


class ViT(nn.Module):
    """Patches, a class token, blocks with attention written out or by a module."""

    def __init__(self, dim: int = 8, heads: int = 2, written_out: bool = True):
        super().__init__()
        self.patches = nn.Conv2d(3, dim, 4, 4)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.positions = nn.Parameter(torch.randn(1, 5, dim))
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.heads, self.written_out = heads, written_out
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 16), nn.GELU(), nn.Linear(16, dim))
        self.head = nn.Linear(dim, 3)

    def attend(self, x):
        if not self.written_out:
            return self.attention(x, x, x, need_weights=False)[0]
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(B, N, C))

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        x = x + self.attend(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return self.head(x[:, 0])


class GPT(nn.Module):
    """Token and position embeddings, causal attention by a masked buffer, tied weights."""

    def __init__(self, vocabulary: int = 11, dim: int = 8, heads: int = 2, longest: int = 8):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, dim), nn.Embedding(longest, dim)
        self.attn, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim, bias=False)
        self.head = nn.Linear(dim, vocabulary, bias=False)
        self.head.weight = self.wte.weight
        self.heads = heads
        self.register_buffer("bias", torch.tril(torch.ones(longest, longest))[None, None])

    def forward(self, idx):
        B, T = idx.size()
        x = self.wte(idx) + self.wpe(torch.arange(0, T, device=idx.device))
        q, k, v = self.attn(self.norm(x)).split(x.size(2), dim=2)
        q, k, v = [t.view(B, T, self.heads, -1).transpose(1, 2) for t in (q, k, v)]
        att = (q @ k.transpose(-2, -1)) * (1.0 / k.size(-1) ** 0.5)
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        x = x + self.proj(y.transpose(1, 2).contiguous().view(B, T, x.size(2)))
        return {"logits": self.head(x), "last": x[:, [-1], :]}


class UNet(nn.Module):
    def __init__(self, mode: str = "bilinear"):
        super().__init__()
        self.down = nn.Conv2d(2, 4, 3, 2, 1)
        self.norm = nn.GroupNorm(2, 4)
        self.up = nn.ConvTranspose2d(4, 3, 3, 2, 1, output_padding=1)
        self.instance = nn.InstanceNorm2d(3, affine=True)
        self.last = nn.Conv2d(9, 1, 1)
        self.mode = mode

    def forward(self, x):
        y = F.silu(self.norm(self.down(x)))
        up = self.instance(self.up(y))
        how: dict[str, Any] = {} if self.mode == "nearest" else {"align_corners": False}
        larger = F.interpolate(y, scale_factor=2, mode=self.mode, **how)
        return torch.sigmoid(self.last(torch.cat([x, up, larger], 1)))


class Recurrent(nn.Module):
    """A recurrent layer of any kind, with a head."""

    def __init__(self, kind: str, **options: Any):
        super().__init__()
        self.embed = nn.Embedding(9, 5)
        self.rnn = getattr(nn, kind)(5, 4, **options)
        self.head = nn.Linear(8 if options.get("bidirectional") else 4, 2)

    def forward(self, tokens):
        x, state = self.rnn(self.embed(tokens))
        return self.head(x), state


class RMSNorm(nn.Module):
    """As in LLaMA."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6))
        self.norm = nn.RMSNorm(6)

    def forward(self, x):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        half = x.shape[-1] // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
        return self.norm(x) + x * scale * self.weight + turned

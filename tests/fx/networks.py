"""Networks in the terms of either library, with inputs."""

from __future__ import annotations

from typing import Any


def mlp(lib: Any) -> tuple[Any, tuple]:
    nn = lib.nn
    layers = [nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.LayerNorm(8), nn.Linear(8, 2)]
    return nn.Sequential(*layers).eval(), (lib.ones(3, 4),)


def residual(lib: Any) -> tuple[Any, tuple]:
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(3, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3)
            self.conv2, self.bn2 = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)
            self.relu, self.pool = nn.ReLU(), nn.AdaptiveAvgPool2d(1)
            self.head, self.bn3 = nn.Linear(3, 5), nn.BatchNorm1d(5)

        def forward(self, x):
            y = self.relu(self.bn1(self.conv1(x)))
            y = self.relu(self.bn2(self.conv2(y)) + x)
            return self.bn3(self.head(lib.flatten(self.pool(y), 1)))

    block = Block()
    for layer in block.modules():
        if hasattr(layer, "running_var"):
            lib.nn.init.uniform_(layer.running_var, 0.5, 2)
            lib.nn.init.uniform_(layer.running_mean)
    return block.eval(), (lib.linspace(-1, 1, 2 * 3 * 5 * 5).reshape(2, 3, 5, 5),)


def attention(lib: Any) -> tuple[Any, tuple]:
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
            self.norm, self.scale = nn.LayerNorm(8), nn.Parameter(lib.ones(8))

        def forward(self, x):
            q, k, v = lib.chunk(self.qkv(self.norm(x)), 3, dim=-1)
            weights = (q @ k.transpose(-2, -1) / 8**0.5).softmax(dim=-1)
            return x + self.out(weights @ v) * self.scale

    return Block(), (lib.linspace(-1, 1, 2 * 3 * 8).reshape(2, 3, 8),)


def containers(lib: Any) -> tuple[Any, tuple]:
    class Containers(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("offset", lib.arange(3.0))

        def forward(self, x, y):
            values, indices = lib.max(x, dim=1)
            total = x.sum(1) + y
            return {"values": values, "both": (indices, [total + self.offset[0], total])}

    return Containers(), (lib.linspace(-1, 1, 6).reshape(2, 3), lib.ones(2))


NETWORKS = {function.__name__: function for function in (mlp, residual, attention, containers)}

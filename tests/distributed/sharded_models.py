"""Models, data and training for the tests of models that are cut over processes."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.distributed.fsdp import fully_shard
from tests.distributed.process_groups import HERE

BATCH, LENGTH, WIDTH, WORDS = 8, 5, 12, 11
STEPS = 20


class Block(nn.Module):
    """Uses its parameters as modules, as views, and by a product of its own."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.inner = nn.Linear(width, 2 * width)
        self.outer = nn.Parameter(torch.randn(width, 2 * width) * 0.1)

    def forward(self, x: Any) -> Any:
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        first, second = self.outer.chunk(2, dim=1)
        h = torch.tanh(self.inner(x))
        return x + h[..., :WIDTH] @ first.t() + h[..., WIDTH:] @ second.T


class Model(nn.Module):
    """Words, some blocks, a head."""

    def __init__(self, blocks: int = 3) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(blocks)])
        self.register_buffer("scale", torch.tensor([2.0]))
        self.head = nn.Linear(WIDTH, 7)

    def forward(self, x: Any) -> Any:
        y = self.words(x)
        for block in self.blocks:
            y = block(y)
        return self.head(y.mean(1)) * self.scale


def model(seed: int = 0, dtype: Any = torch.float64, **options: Any) -> Model:
    """The same model for the same seed, on the device of the tests."""
    torch.manual_seed(seed)
    return Model(**options).to(dtype).to(HERE)


def batch(step: int, rank: int = 0, size: int = 1) -> tuple[Any, Any]:
    """A rank's part of the inputs and targets of a step."""
    random = np.random.default_rng(step)
    x = random.integers(0, WORDS, (BATCH, LENGTH))
    y = random.integers(0, 7, BATCH)
    mine = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
    return torch.from_numpy(x[mine]).to(HERE), torch.from_numpy(y[mine]).to(HERE)


def train(
    net: Any,
    rank: int = 0,
    size: int = 1,
    *,
    steps: int = STEPS,
    first: int = 0,
    optimizer: Any = None,
    clip: float | None = None,
) -> list[float]:
    """The losses of some steps."""
    if optimizer is None:
        optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
    losses = []
    for step in range(first, first + steps):
        x, y = batch(step, rank, size)
        loss = nn.functional.cross_entropy(net(x).double(), y)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def numbers(state: dict[str, Any]) -> dict[str, np.ndarray]:
    """A state dict as arrays."""
    return {name: value.detach().cpu().float().numpy() if value.dtype is torch.bfloat16
            else value.detach().cpu().numpy() for name, value in state.items()}  # fmt: skip


def cut(net: Any, **options: Any) -> Any:
    """Each block, and the rest."""
    for block in net.blocks:
        fully_shard(block, **options)
    return fully_shard(net, **options)

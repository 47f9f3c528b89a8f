"""How large a language model is, without its memory: weights, FLOPs, what a training step holds.

    python -m examples.model_size --layers 85 --width 8192 --heads 64 --context 2048

The model is built and trained for one step on the device ``meta``, whose tensors have shapes and
dtypes and no elements: 70 billion parameters take a second, and a few megabytes.
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

import tensorflow_lite_clone as torch
from tensorflow_lite_clone.utils.flop_counter import FlopCounterMode

nn = torch.nn
F = nn.functional


class Block(nn.Module):
    """Attention to the tokens before, then two layers for each token: (B, T, D) to (B, T, D)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)
        self.norm_layers = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block."""
        samples, tokens, width = x.shape
        parts = self.queries_keys_values(self.norm_attention(x))
        parts = parts.view(samples, tokens, 3, self.heads, width // self.heads)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        x = x + self.mix(seen.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norm_layers(x))))


class GPT(nn.Module):
    """The loss of predicting each next token."""

    def __init__(self, layers: int, width: int, heads: int, context: int, words: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(words, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The mean loss of (B, T) tokens."""
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class Cost(NamedTuple):
    """What a training step computes, and the bytes that it holds."""

    flops: int
    weights: int
    gradients: int
    optimizer: int
    activations: int


def step_cost(model: nn.Module, optimizer: Callable, *batch: torch.Tensor) -> Cost:
    """The cost of one training step of a model whose result is the loss.

    Activations are what the forward pass saves for the backward pass, each memory counted once.
    """
    weights = {p.untyped_storage()._cdata: p.nbytes for p in model.parameters()}
    saved: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        memory = tensor.untyped_storage()
        if memory._cdata not in weights:
            saved[memory._cdata] = memory.nbytes()
        return tensor

    with FlopCounterMode(display=False) as counter:
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            loss = model(*batch)
        loss.backward()
    gradients = sum(p.grad.nbytes for p in model.parameters())
    rule = optimizer(model.parameters())
    rule.step()
    states = [value for state in rule.state.values() for value in state.values()]
    held = sum(value.nbytes for value in states if isinstance(value, torch.Tensor))
    total = counter.get_total_flops()
    return Cost(total, sum(weights.values()), gradients, held, sum(saved.values()))


def main(arguments: list[str] | None = None) -> None:
    """Print a model's cost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (
        ("layers", 12), ("width", 768), ("heads", 12), ("context", 1024), ("words", 50257),
        ("samples", 1),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default, help=f"({default})")
    parser.add_argument("--dtype", default="float32", help="of weights and activations (float32)")
    args = parser.parse_args(arguments)
    with torch.device("meta"):
        model = GPT(args.layers, args.width, args.heads, args.context, args.words)
        batch = torch.zeros(args.samples, args.context, dtype=torch.int64)
    model.to(getattr(torch, args.dtype))
    cost = step_cost(model, torch.optim.AdamW, batch, batch)
    count = sum(p.numel() for p in model.parameters())
    print(f"parameters       {count:,}")
    print(f"FLOPs per token  {cost.flops // batch.numel():,}, forward and backward")
    for name in ("weights", "gradients", "optimizer", "activations"):
        print(f"{name:16} {getattr(cost, name) / 2**30:,.1f} GiB")
    print(f"{'together':16} {sum(cost[1:]) / 2**30:,.1f} GiB")


if __name__ == "__main__":
    main()

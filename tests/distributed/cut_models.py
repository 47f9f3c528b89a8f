"""A small transformer, and plans that cut it over processes."""

from __future__ import annotations

from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.distributed.tensor import DTensor, Replicate, Shard
from tensorflow_lite_clone.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
)

BATCH, LENGTH, WIDTH, HEADS, HIDDEN, WORDS = 4, 4, 8, 4, 6, 10


class Attention(nn.Module):
    """Causal attention that computes with as many heads as its maps give it."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = [nn.Linear(WIDTH, WIDTH) for _ in range(4)]

    def forward(self, x):
        def heads(y):
            return y.unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)

        q, k, v = heads(self.q(x)), heads(self.k(x)), heads(self.v(x))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.up, self.down = nn.Linear(WIDTH, hidden), nn.Linear(hidden, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.down(nn.functional.gelu(self.up(self.after(x))))


class Language(nn.Module):
    """A transformer of one block with a table of words in front and a map to words behind."""

    def __init__(self, hidden=HIDDEN):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH, padding_idx=1)
        self.blocks = nn.ModuleList([Block(hidden)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def megatron():
    """Activations are whole between the layers."""
    return {
        "words": RowwiseParallel(input_layouts=Replicate()),
        "blocks.*.attention.[qkv]": ColwiseParallel(),
        "blocks.*.attention.o": RowwiseParallel(),
        "blocks.*.up": ColwiseParallel(),
        "blocks.*.down": RowwiseParallel(),
        "head": ColwiseParallel(output_layouts=Replicate()),
    }


def along_the_sequence():
    """Between the layers each process has a slice of the sequence."""
    cut = Shard(1)
    norm = SequenceParallel(use_local_output=True)
    return {
        "words": RowwiseParallel(input_layouts=Replicate(), output_layouts=cut),
        "blocks.*.before": norm,
        "blocks.*.after": norm,
        "blocks.*.attention.[qkv]": ColwiseParallel(input_layouts=cut),
        "blocks.*.attention.o": RowwiseParallel(output_layouts=cut),
        "blocks.*.up": ColwiseParallel(input_layouts=cut),
        "blocks.*.down": RowwiseParallel(output_layouts=cut),
        "norm": SequenceParallel(),  # gives a DTensor
        "head": ColwiseParallel(output_layouts=Replicate()),
    }


def prepared_attention():
    """As along the sequence, but what goes into attention is gathered once, as a DTensor."""
    gather = {"input_layouts": Shard(1), "desired_input_layouts": Replicate()}
    return {
        **along_the_sequence(),
        "blocks.*.attention": PrepareModuleInput(**gather),
        "blocks.*.attention.[qkv]": ColwiseParallel(),
    }


PLANS = {
    "megatron": megatron,
    "along_the_sequence": along_the_sequence,
    "prepared_attention": prepared_attention,
}


def step(model, optimizer, ids, groups=()):
    """One step with clipping; the loss and the norm, averaged over groups that share the batch."""
    logits = model(ids[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    loss = loss.detach()
    for group in groups:
        for value in (loss, *[p.grad for p in model.parameters()]):
            dist.all_reduce(value, dist.ReduceOp.AVG, group)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return loss.item(), norm.item()


def worst(model, whole, what):
    """The largest difference between a cut model's values, put together, and the whole model's."""
    others = dict(whole.named_parameters())
    found = 0.0
    for name, parameter in model.named_parameters():
        value, expected = what(parameter), what(others[name])
        if hasattr(parameter, "dtensor"):
            layout = parameter.device_mesh, parameter.placements
            shape = {"shape": expected.shape, "stride": expected.stride()}
            value = DTensor.from_local(value.detach(), *layout, **shape).full_tensor()
        found = max(found, (value - expected).abs().max().item())
    return found

"""Rotary embeddings: turned queries and keys, caches, pictures, xPos, learned frequencies."""

import torch
from rotary_embedding_torch import (
    RotaryEmbedding,
    apply_learned_rotations,
    apply_rotary_emb,
    broadcat,
)
from steps import step


@step("queries and keys turned, and the gradient")
def _():
    rotary = RotaryEmbedding(dim=8)
    q = torch.randn(1, 2, 10, 16, requires_grad=True)
    out = rotary.rotate_queries_or_keys(q)
    out.pow(3).sum().backward()
    return out, q.grad


@step("with an offset and cached keys")
def _():
    rotary = RotaryEmbedding(dim=8)
    q, k = torch.randn(1, 2, 1, 8), torch.randn(1, 2, 6, 8)
    return rotary.rotate_queries_with_cached_keys(q, k), rotary.rotate_queries_or_keys(k, offset=3)


@step("axes of a picture and of a video")
def _():
    rotary = RotaryEmbedding(dim=4, freqs_for="pixel", max_freq=10)
    frequencies = rotary.get_axial_freqs(4, 5, 3)
    return frequencies, apply_rotary_emb(frequencies, torch.randn(1, 4, 5, 3, 16))


@step("xPos: a length that extrapolates")
def _():
    rotary = RotaryEmbedding(dim=8, use_xpos=True)
    q, k = torch.randn(1, 2, 10, 8), torch.randn(1, 2, 10, 8)
    return rotary.rotate_queries_and_keys(q, k)


@step("interpolated and rescaled positions")
def _():
    x = torch.randn(1, 1, 6, 8)
    return (
        RotaryEmbedding(dim=8, interpolate_factor=2.0).rotate_queries_or_keys(x),
        RotaryEmbedding(dim=8, theta_rescale_factor=4.0).rotate_queries_or_keys(x),
        RotaryEmbedding(dim=8, freqs_for="constant", num_freqs=4).rotate_queries_or_keys(x),
    )


@step("frequencies that learn: three steps, saved and loaded")
def _():
    rotary = RotaryEmbedding(dim=8, learned_freq=True)
    optimizer = torch.optim.SGD(rotary.parameters(), 0.01)
    x = torch.randn(1, 1, 6, 8)
    for _ in range(3):
        optimizer.zero_grad()
        rotary.rotate_queries_or_keys(x).pow(3).sum().backward()
        optimizer.step()
    torch.save(rotary.state_dict(), "rotary.pt")
    other = RotaryEmbedding(dim=8, learned_freq=True)
    other.load_state_dict(torch.load("rotary.pt"))
    return rotary.freqs, other.rotate_queries_or_keys(x)


@step("learned rotations, broadcast and joined; half precision stays half")
def _():
    turned = apply_learned_rotations(torch.randn(6, 4), torch.randn(1, 6, 8))
    joined = broadcat((torch.randn(3, 1, 2), torch.randn(1, 4, 2)), dim=-1)
    low = RotaryEmbedding(dim=8).rotate_queries_or_keys(torch.randn(1, 1, 4, 8).bfloat16())
    return turned, joined, low


@step("a head smaller than what is turned is refused", refused=True)
def _():
    RotaryEmbedding(dim=16).rotate_queries_or_keys(torch.randn(1, 1, 4, 8))


@step("xPos for queries alone is refused", refused=True)
def _():
    RotaryEmbedding(dim=8, use_xpos=True).rotate_queries_or_keys(torch.randn(1, 1, 4, 8))

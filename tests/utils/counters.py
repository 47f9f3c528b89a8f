"""What the tests of the counter share: both counters, tensors and a model."""

from __future__ import annotations

import torch
import torch.utils.flop_counter as their_counter

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.utils.flop_counter as our_counter
from tests.device import DEVICE

COUNTERS = {tlc: our_counter, torch: their_counter}


def device(lib):
    return DEVICE if lib is tlc else "cpu"


def inputs(lib, shapes, wanted):
    """Tensors of the shapes, as many as `wanted` says with a gradient (a "1" for each)."""
    return [
        lib.ones(shape, device=device(lib), requires_grad=flag == "1")
        for shape, flag in zip(shapes, wanted, strict=True)
    ]


def by_module(lib, counter):
    """Counts by module alone: ops have other names here."""
    return {path: sum(counts.values()) for path, counts in counter.get_flop_counts().items()}


def block(lib):
    class Block(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = lib.nn.Linear(4, 5), lib.nn.Linear(5, 4)

        def forward(self, x):
            return self.b(self.a(x).relu())

    return Block()

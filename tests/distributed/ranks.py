"""What the tests of modules in several processes share."""

from __future__ import annotations

import tensorflow_lite_clone as tlc
from tests.device import DEVICE
from tests.distributed.worlds import World, gpu_world, world

HERE = "cuda" if DEVICE == "cuda" else "cpu"


def ranks(size: int) -> World:
    """So many processes; with DEVICE=cuda each has a GPU, or the test is skipped."""
    return gpu_world(size) if HERE == "cuda" else world(size)


def host(tensor: tlc.Tensor | None) -> object:
    """A tensor's values as they travel between processes."""
    return None if tensor is None else tensor.detach().cpu().clone().numpy()


def part(batch: tlc.Tensor, rank: int, size: int) -> tlc.Tensor:
    """A process's part of a batch that all know."""
    return batch.chunk(size)[rank]

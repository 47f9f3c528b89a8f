"""The worlds that the same tests run in on CPUs and on GPUs."""

from __future__ import annotations

from tests.device import DEVICE
from tests.distributed.worlds import World, gpu_world, world

KIND = "cuda" if DEVICE == "cuda" else "cpu"


def processes(size: int) -> World:
    """A world of `size` processes, on GPUs with DEVICE=cuda."""
    return gpu_world(size) if KIND == "cuda" else world(size)

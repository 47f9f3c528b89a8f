"""``torch.cuda.nccl``: what is known of NCCL; collectives are in `torch.distributed`."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.cuda._devices import device_count, layer


def is_available(tensors: Any) -> bool:
    """False: collective functions do not go through this module."""
    return False


def version() -> tuple[int, int, int]:
    """NCCL's version. RuntimeError without a GPU, or where CuPy finds no NCCL."""
    if not device_count() or not layer("nccl").is_available:
        raise RuntimeError("torch.cuda.nccl.version(): there is no GPU, or no NCCL")
    return layer("nccl").version()

"""``torch.cuda.nccl``: PyTorch's own binding of NCCL, which is not here."""

from __future__ import annotations

from typing import Any, NoReturn


def is_available(tensors: Any) -> bool:
    """False: collective functions do not go through this module."""
    return False


def version() -> NoReturn:
    """Always RuntimeError: this package does not link NCCL, so it knows no version of it."""
    raise RuntimeError("torch.cuda.nccl.version(): NCCL is not linked here")

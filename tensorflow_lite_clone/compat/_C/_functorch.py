"""``torch._C._functorch``: questions that functions ask about their arguments."""

from __future__ import annotations

from tensorflow_lite_clone.tensor import Tensor


def is_legacy_batchedtensor(tensor: Tensor) -> bool:
    """False: `vmap` is the only one. Kornia's focal loss asks it of gradients."""
    return False

"""A context that PyTorch's `vmap` needs where a mapped tensor is an index."""

from __future__ import annotations

from contextlib import nullcontext

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(nullcontext):
    """Changes nothing: mapped tensors are indices here without it."""

"""Exchanging what two tensors are, as ``torch.utils.swap_tensors``."""

from __future__ import annotations

import weakref

from tensorflow_lite_clone.autograd.node import Leaf
from tensorflow_lite_clone.tensor import Tensor


def _leaf(t: Tensor) -> Leaf | None:
    node = vars(t).get("_frozen") if t._edge is None else t._edge[0]
    return node if isinstance(node, Leaf) else None


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange two tensors: memory, type, attributes and place in the graph; each stays the object
    it is. RuntimeError for one that something refers to weakly."""
    leaves = _leaf(t1), _leaf(t2)
    for name, tensor, leaf in zip(("t1", "t2"), (t1, t2), leaves, strict=True):
        own = None if leaf is None else leaf.reference
        if any(reference is not own for reference in weakref.getweakrefs(tensor)):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    for part in ("__class__", "__dict__", "_storage", "_edge", "_view"):
        first, second = getattr(t1, part), getattr(t2, part)
        setattr(t1, part, second)
        setattr(t2, part, first)
    for leaf, tensor in zip(leaves, (t2, t1), strict=True):
        if leaf is not None:
            leaf.reference = weakref.ref(tensor)

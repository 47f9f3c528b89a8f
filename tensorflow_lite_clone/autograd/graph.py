"""``torch.autograd.graph``: the graph's nodes and what can be hooked into it."""

from __future__ import annotations

from tensorflow_lite_clone.autograd.apply import current_edge
from tensorflow_lite_clone.autograd.node import GraphNode as Node
from tensorflow_lite_clone.autograd.saved import save_on_cpu, saved_tensors_hooks
from tensorflow_lite_clone.tensor import Tensor


def get_gradient_edge(tensor: Tensor) -> tuple[Node, int]:
    """The (node, output number) at which `tensor`'s gradient arrives."""
    edge = current_edge(tensor)
    if edge is None:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    return edge


__all__ = ["Node", "get_gradient_edge", "save_on_cpu", "saved_tensors_hooks"]

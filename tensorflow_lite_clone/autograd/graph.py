"""``torch.autograd.graph``: the graph's nodes and what can be hooked into it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone.autograd import engine
from tensorflow_lite_clone.autograd.apply import current_edge
from tensorflow_lite_clone.autograd.gradients import GradientEdge
from tensorflow_lite_clone.autograd.node import GraphNode as Node
from tensorflow_lite_clone.autograd.saved import (
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from tensorflow_lite_clone.core.handles import RemovableHandle
from tensorflow_lite_clone.tensor import Tensor


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The (node, output number) at which `tensor`'s gradient arrives."""
    edge = current_edge(tensor)
    if edge is None:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    return GradientEdge(*edge)


class _Handles(RemovableHandle):
    """The handles of one hook on several tensors."""

    def __init__(self, handles: tuple) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Unregister the hook from all its tensors."""
        for handle in self._handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> _Handles:
    """Call ``fn(grads)`` once in a backward pass when the gradients of all `tensors` that it
    computes are there (None for the others), or ``fn(grad)`` with the first one (mode "any").
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    nodes = [get_gradient_edge(tensor).node for tensor in tensors]

    def arrived(index: int, grad: Tensor | None) -> None:
        walk: Any = engine.current.walk
        state = walk.notes.setdefault(arrived, [[None] * len(nodes), 0])
        state[0][index] = grad
        state[1] += 1
        if mode == "any":
            if state[1] == 1:
                fn(grad)
        elif state[1] == sum([node in walk.useful for node in nodes]):
            fn(state[0])

    def hook_of(index: int) -> Callable[[Tensor | None], None]:
        return lambda grad: arrived(index, grad)

    return _Handles(tuple([t.register_hook(hook_of(i)) for i, t in enumerate(tensors)]))


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Count an in-place write that the framework did not see."""
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        each._storage.bump()


__all__: list[Any] = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]

"""Hooks on gradients: nodes and leaves keep them, the engine runs them."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.handles import RemovableHandle
from tensorflow_lite_clone.tensor import Tensor


class Handle(RemovableHandle):
    """The handle of a hook in an ordinary dictionary, which it keeps alive."""

    _ids = itertools.count()

    def __init__(self, hooks: dict, hook: Any) -> None:
        self.id = next(self._ids)
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        self._hooks.pop(self.id, None)


class GradientHooks:
    """What is called with the gradients that arrive at a node's outputs, in this order:

    the hooks of the output tensors, the tensors that keep their gradient, the node's own prehooks.
    """

    __slots__ = ("before", "retained", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, tuple[int, Callable[..., Any]]] = {}  # with the output's number
        self.retained: dict[int, weakref.ref[Tensor]] = {}  # by the output's number
        self.before: dict[int, Callable[..., Any]] = {}

    def of_tensors(self, grads: list) -> None:
        """Let the output tensors' hooks edit `grads`, a Tensor or None per output."""
        for index, hook in list(self.tensor.values()):
            given = grads[index]
            replaced = hook(given)
            if replaced is not None and replaced is not given:
                check_replacement(given, replaced, hook)
                grads[index] = replaced
        for index, reference in self.retained.items():
            tensor, g = reference(), grads[index]
            if tensor is not None and g is not None:
                kept = tensor._grad
                if kept is None:
                    tensor._grad = g.clone()
                else:
                    tensor._grad = g + kept if kept.is_sparse else kept + g

    def of_node(self, grads: list) -> None:
        """Let the node's own prehooks edit `grads`."""
        for hook in list(self.before.values()):
            given = tuple(grads)
            replaced = hook(given)
            if replaced is not None:
                check_replacements(given, replaced, hook)
                grads[:] = replaced


def check_replacements(given: tuple, replaced: Any, hook: Any) -> None:
    """Raise torch's errors when a hook's result cannot stand for the gradients it was given."""
    if not isinstance(replaced, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(replaced).__name__}'")
    if len(replaced) != len(given):
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got "
            f"{len(replaced)}, but expected {len(given)})"
        )
    for original, value in zip(given, replaced):
        if value is not None:
            check_replacement(original, value, hook)


def check_replacement(original: Tensor | None, value: Any, hook: Any) -> None:
    """`check_replacements` for one gradient."""
    if original is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(value, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(value).__name__}'")
    if value.dtype is not original.dtype or value.is_sparse is not original.is_sparse:
        before, after = [
            f"torch.{'sparse.' * x.is_sparse}{x.dtype.short_name}Tensor" for x in (original, value)
        ]
        raise RuntimeError(
            f"hook '{_name(hook)}' has changed the type of value (was {before} got {after})"
        )
    if value.device != original.device:
        raise RuntimeError(
            f"hook '{_name(hook)}' has changed the device of value (was {original.device} got "
            f"{value.device})"
        )
    if value.shape != original.shape:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value")


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", "<unknown>")


def hooks_at(node: Any) -> GradientHooks:
    """The node's hooks on arriving gradients."""
    if node.arrival_hooks is None:
        node.arrival_hooks = GradientHooks()
    hooks: GradientHooks = node.arrival_hooks
    return hooks


def retain(tensor: Tensor, edge: Any) -> None:
    """Let the gradients that arrive at `edge` be kept in ``tensor.grad``."""
    hooks_at(edge[0]).retained[edge[1]] = weakref.ref(tensor)


def move_retained(tensor: Tensor, before: Any) -> None:
    """Follow a tensor that keeps its gradient from the edge `before` to its present one."""
    if before is not None and before[0].arrival_hooks is not None:
        retained = before[0].arrival_hooks.retained
        reference = retained.get(before[1])
        if reference is not None and reference() is tensor:
            del retained[before[1]]
    retain(tensor, tensor._edge)

"""``torch.fx.experimental.symbolic_shapes``: the errors of sizes that are not known."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ConstraintViolationError",
    "GuardOnDataDependentSymNode",
    "guard_or_false",
    "guard_or_true",
]


class ConstraintViolationError(RuntimeError):
    """An example that is not in the range of its dynamic dimension."""


class GuardOnDataDependentSymNode(RuntimeError):  # noqa: N818  PyTorch's name
    """Control flow, or a size, that depends on the values of a tensor."""


def guard_or_false(a: Any) -> bool:
    """Whether a condition on sizes holds; False where that depends on values of tensors."""
    try:
        return bool(a)
    except GuardOnDataDependentSymNode:
        return False


def guard_or_true(a: Any) -> bool:
    """Whether a condition on sizes holds; True where that depends on values of tensors."""
    try:
        return bool(a)
    except GuardOnDataDependentSymNode:
        return True

"""``torch.fx.experimental.symbolic_shapes``: the errors of sizes that are not known."""

from __future__ import annotations

__all__ = ["ConstraintViolationError", "GuardOnDataDependentSymNode"]


class ConstraintViolationError(RuntimeError):
    """An example that is not in the range of its dynamic dimension."""


class GuardOnDataDependentSymNode(RuntimeError):  # noqa: N818  PyTorch's name
    """Control flow, or a size, that depends on the values of a tensor."""

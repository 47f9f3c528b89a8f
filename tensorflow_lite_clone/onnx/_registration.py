"""Descriptions of operations to PyTorch's TorchScript exporter, which is not here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> NoReturn:
    """NotImplementedError: the exporter here builds no graphs of TorchScript to describe ops by."""
    raise NotImplementedError(
        f"register_custom_op_symbolic: {symbolic_name}: the exporter here builds no graphs of "
        "TorchScript, and knows operations by rules of its own"
    )


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Nothing: none is registered."""

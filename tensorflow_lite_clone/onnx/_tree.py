"""Tensors inside of tuples, lists and dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensorflow_lite_clone.tensor import Tensor


def named_tensors(tree: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    """The tensors in order, each with a name for its place."""
    if isinstance(tree, Tensor):
        yield name, tree
    elif isinstance(tree, dict):
        for key, entry in tree.items():
            yield from named_tensors(entry, f"{name}_{key}" if name else str(key))
    elif isinstance(tree, (tuple, list)):
        for number, entry in enumerate(tree):
            yield from named_tensors(entry, f"{name}_{number}" if name else str(number))


def replaced(tree: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same with other tensors; `change` gets them in the order of `named_tensors`."""
    if isinstance(tree, Tensor):
        return change(tree)
    if isinstance(tree, dict):
        return type(tree)({key: replaced(entry, change) for key, entry in tree.items()})
    if isinstance(tree, (tuple, list)):
        entries = [replaced(entry, change) for entry in tree]
        return type(tree)(*entries) if hasattr(tree, "_fields") else type(tree)(entries)
    return tree

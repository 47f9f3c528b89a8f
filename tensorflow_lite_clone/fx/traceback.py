"""What is noted of the nodes that are run, for the nodes that come of it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.fx._compatibility import compatibility

if TYPE_CHECKING:
    from tensorflow_lite_clone.fx.node import Node

__all__ = [
    "annotate",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_stack_trace",
]


class _State(threading.local):
    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.is_preserved = False


_state = _State()


@compatibility(is_backward_compatible=False)
@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """A block in which nodes that come of others get what is noted of those."""
    before = _state.is_preserved, _state.meta
    _state.is_preserved, _state.meta = enable, dict(_state.meta)
    try:
        yield
    finally:
        _state.is_preserved, _state.meta = before


@compatibility(is_backward_compatible=False)
def has_preserved_node_meta() -> bool:
    """Whether this is in a block of `preserve_node_meta`."""
    return _state.is_preserved


@compatibility(is_backward_compatible=False)
def get_current_meta() -> dict[str, Any]:
    """What is noted of the node that runs."""
    return _state.meta


@compatibility(is_backward_compatible=False)
@contextlib.contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """A block in which `node` runs."""
    if not (_state.is_preserved and node.meta):
        yield
        return
    before, _state.meta = _state.meta, dict(node.meta)
    try:
        yield
    finally:
        _state.meta = before


@compatibility(is_backward_compatible=False)
@contextlib.contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """A block whose nodes get the entries of a dictionary in ``meta["custom"]``."""
    before = _state.meta
    custom = {**before.get("custom", {}), **annotation_dict}
    _state.meta = {**before, "custom": custom}
    try:
        yield
    finally:
        _state.meta = before


@compatibility(is_backward_compatible=False)
def set_stack_trace(stack: list[str]) -> None:
    """Note where the program is, for the nodes that come."""
    if _state.is_preserved and stack:
        _state.meta["stack_trace"] = "".join(stack)


@compatibility(is_backward_compatible=False)
def format_stack() -> list[str]:
    """The lines that `set_stack_trace` was given last."""
    return [_state.meta["stack_trace"]] if "stack_trace" in _state.meta else []

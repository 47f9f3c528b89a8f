"""The marks of ``torch.jit`` under the module name that older packages import them from."""

from __future__ import annotations

from typing import TypeVar

from tensorflow_lite_clone.jit import (
    Final,
    Future,
    _drop,
    _overload,
    _overload_method,
    export,
    ignore,
    is_scripting,
    unused,
)
from tensorflow_lite_clone.jit.annotations import (
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
)

_F = TypeVar("_F")


def _copy_to_script_wrapper(fn: _F) -> _F:
    """The function itself: nothing is compiled that would need a copy. Pyro marks a method."""
    return fn


__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Final",
    "Future",
    "_copy_to_script_wrapper",
    "_drop",
    "_overload",
    "_overload_method",
    "export",
    "ignore",
    "is_scripting",
    "unused",
]

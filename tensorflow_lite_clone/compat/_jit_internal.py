"""The marks of ``torch.jit`` under the module name that older packages import them from."""

from __future__ import annotations

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

__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Final",
    "Future",
    "_drop",
    "_overload",
    "_overload_method",
    "export",
    "ignore",
    "is_scripting",
    "unused",
]

"""Types for signatures of scripted functions, as ``torch.jit.annotations``."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035  older code imports them

__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Dict",
    "List",
    "Optional",
    "Tuple",
    "Union",
]


class _BroadcastingList:
    """A list of so many values, for which one number may be given: says nothing to Python."""

    def __getitem__(self, types: Any) -> None:
        """None, as in PyTorch: ``BroadcastingList2[int]`` stands in annotations only."""


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()

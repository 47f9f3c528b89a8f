"""Where a part of a tensor lies in the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["compute_local_shape_and_global_offset"]


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: Any, placements: Sequence[Any], skip_offset: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process's part and where it begins: the whole, on a mesh of one device."""
    shape = tuple(global_shape)
    return shape, () if skip_offset else (0,) * len(shape)

"""Where a part of a tensor lies in the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.distributed.tensor._layout import normalized, own_part


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: Any, placements: Sequence[Any], skip_offset: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process's part, and where it begins in the whole."""
    placements = normalized(placements, mesh, len(global_shape))
    shape, offset = own_part(global_shape, mesh, placements)
    return shape, () if skip_offset else offset

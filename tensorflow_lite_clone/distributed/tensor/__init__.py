"""Tensors on several devices, as ``torch.distributed.tensor``: there are none in a world of one.

Packages ask whether a tensor is a `DTensor`; no tensor is. Making one raises NotImplementedError.
"""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributed.tensor import _utils, placement_types
from tensorflow_lite_clone.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
)
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "DTensor",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "_utils",
    "distribute_tensor",
    "placement_types",
]


class DTensor(Tensor):
    """A tensor on several devices."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("a DTensor: there is one process, and its tensors are whole")

    @staticmethod
    def from_local(*args: Any, **kwargs: Any) -> DTensor:
        """A tensor of which this process has a part: NotImplementedError."""
        return DTensor()


def distribute_tensor(
    tensor: Tensor,
    device_mesh: Any = None,
    placements: Any = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Lay a tensor out on a mesh: NotImplementedError."""
    return DTensor()

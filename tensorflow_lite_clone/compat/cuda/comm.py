"""``torch.cuda.comm``, the older name of ``torch.nn.parallel.comm``."""

from __future__ import annotations

from tensorflow_lite_clone.nn.parallel.comm import (
    broadcast,
    broadcast_coalesced,
    gather,
    reduce_add,
    reduce_add_coalesced,
    scatter,
)

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]

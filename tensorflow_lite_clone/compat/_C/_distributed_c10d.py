"""``torch._C._distributed_c10d``: what averages gradients. Lightning names it in a cast."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.distributed.reducer import Reducer
from tensorflow_lite_clone.distributed.work import ReduceOp, Work

__all__ = ["ProcessGroup", "ReduceOp", "Reducer", "Work"]

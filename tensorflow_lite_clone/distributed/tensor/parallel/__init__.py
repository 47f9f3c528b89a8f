"""Modules whose parameters are cut over processes: ``torch.distributed.tensor.parallel``."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.tensor.parallel.api import parallelize_module
from tensorflow_lite_clone.distributed.tensor.parallel.prepare import (
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
)
from tensorflow_lite_clone.distributed.tensor.parallel.style import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    SequenceParallel,
)

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "parallelize_module",
]

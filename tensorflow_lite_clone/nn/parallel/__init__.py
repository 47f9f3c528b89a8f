"""Modules in programs of several devices or processes, as ``torch.nn.parallel``."""

from __future__ import annotations

from tensorflow_lite_clone.nn.parallel.data_parallel import DataParallel, data_parallel
from tensorflow_lite_clone.nn.parallel.distributed import DistributedDataParallel
from tensorflow_lite_clone.nn.parallel.scatter_gather import gather, scatter

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "scatter"]

"""Modules in programs of several devices or processes, as ``torch.nn.parallel``."""

from __future__ import annotations

from tensorflow_lite_clone.nn.parallel.data_parallel import DataParallel, data_parallel
from tensorflow_lite_clone.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]

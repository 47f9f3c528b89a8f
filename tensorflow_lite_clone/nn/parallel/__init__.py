"""Modules in programs of several devices or processes, as ``torch.nn.parallel``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tensorflow_lite_clone.nn.parallel.data_parallel import DataParallel, data_parallel
from tensorflow_lite_clone.nn.parallel.parallel_apply import parallel_apply
from tensorflow_lite_clone.nn.parallel.replicate import replicate
from tensorflow_lite_clone.nn.parallel.scatter_gather import gather, scatter

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]


def __getattr__(name: str) -> Any:
    if name in ("DistributedDataParallel", "distributed"):  # which needs all of `distributed`
        module = import_module("tensorflow_lite_clone.nn.parallel.distributed")
        return module if name == "distributed" else module.DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

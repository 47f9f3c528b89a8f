"""Names of ``torch.autograd.profiler``, the older place of a part of ``torch.profiler``."""

from __future__ import annotations

from tensorflow_lite_clone.profiler.events import (
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    record_function,
)
from tensorflow_lite_clone.profiler.older import emit_nvtx, profile
from tensorflow_lite_clone.profiler.profiler import kineto_available

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "emit_nvtx",
    "kineto_available",
    "profile",
    "record_function",
]

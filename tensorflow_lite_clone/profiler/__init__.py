"""How long the ops of a program take, as ``torch.profiler``; what each layer of a model takes."""

from __future__ import annotations

from tensorflow_lite_clone.profiler import profiler
from tensorflow_lite_clone.profiler._layer_report import LayerReport, LayerRow
from tensorflow_lite_clone.profiler.events import record_function
from tensorflow_lite_clone.profiler.layers import layers
from tensorflow_lite_clone.profiler.memory_report import memory_by_line, memory_timeline
from tensorflow_lite_clone.profiler.profiler import (
    ProfilerAction,
    ProfilerActivity,
    kineto_available,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)
from tensorflow_lite_clone.profiler.roofline import Roof, roof

__all__ = [
    "LayerReport",
    "LayerRow",
    "ProfilerAction",
    "ProfilerActivity",
    "Roof",
    "kineto_available",
    "layers",
    "memory_by_line",
    "memory_timeline",
    "profile",
    "profiler",
    "record_function",
    "roof",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

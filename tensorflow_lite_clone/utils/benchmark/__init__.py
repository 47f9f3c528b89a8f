"""Measuring how long statements take, as ``torch.utils.benchmark``: `Timer` and `Compare`."""

from __future__ import annotations

from tensorflow_lite_clone.utils.benchmark.compare import Colorize, Compare
from tensorflow_lite_clone.utils.benchmark.measurement import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)
from tensorflow_lite_clone.utils.benchmark.timer import Language, Timer, set_torch_threads, timer

__all__ = [
    "Colorize",
    "Compare",
    "Language",
    "Measurement",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]

"""A model cut into stages that run in processes of their own, as ``torch.distributed.pipelining``.

`plan` has schedules as data and draws them, `exchange` what travels between stages, `stage` what a
process does for a micro-batch, `step` runs a plan, `split` cuts a model into stages.
"""

from __future__ import annotations

from tensorflow_lite_clone.distributed.pipelining.schedules import (
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
)
from tensorflow_lite_clone.distributed.pipelining.split import (
    Pipe,
    SplitPoint,
    build_stage,
    pipe_split,
    pipeline,
)
from tensorflow_lite_clone.distributed.pipelining.stage import PipelineStage

__all__ = [
    "Pipe",
    "PipelineStage",
    "Schedule1F1B",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleLoopedBFS",
    "SplitPoint",
    "build_stage",
    "pipe_split",
    "pipeline",
]

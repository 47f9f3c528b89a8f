"""When models are averaged."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.distributed.algorithms.model_averaging.utils import (
    Groups,
    average_parameters_or_parameter_groups,
)
from tensorflow_lite_clone.distributed.distributed_c10d import group_of

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """Averages parameters over a group, by default of all processes; `step` counts the calls."""

    def __init__(self, process_group: Any = None) -> None:
        self.process_group = group_of(process_group)
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Groups) -> None:
        """Count a step, and average if it is one of those."""
        raise NotImplementedError


class PeriodicModelAverager(ModelAverager):
    """Averages in every `period`-th step from step `warmup_steps` on (ValueError below 1 and 0).

    Source: Lin et al., "Don't Use Large Mini-Batches, Use Local SGD" (2018).
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn(
                "When period is 1, models are averaged in each step, which is what "
                "DistributedDataParallel does with gradients while the backward pass goes on.",
                stacklevel=level_outside(),
            )
        self.warmup_steps = warmup_steps
        self.period = period

    def average_parameters(self, params: Groups) -> None:
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1

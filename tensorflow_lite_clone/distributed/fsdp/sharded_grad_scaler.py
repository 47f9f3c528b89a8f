"""Loss scaling where gradients are cut over processes."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.amp.grad_scaler import GradScaler
from tensorflow_lite_clone.distributed.collectives import all_reduce
from tensorflow_lite_clone.distributed.fsdp._fully_shard import default_group, device_for
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.distributed.work import ReduceOp
from tensorflow_lite_clone.optim.optimizer import Optimizer


class ShardedGradScaler(GradScaler):
    """A `GradScaler` that leaves out a step where any process's gradients overflowed."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: ProcessGroup | None = None,
    ) -> None:
        super().__init__(
            device, init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
        if self._enabled:
            self.process_group = process_group or default_group()

    def _unscale(self, optimizer: Optimizer, allow_half: bool) -> None:
        super()._unscale(optimizer, allow_half)
        flags: list[Any] = self._found[id(optimizer)]
        device = device_for(self.process_group)
        for place, flag in enumerate(flags):
            there = flag.to(device)
            all_reduce(there, ReduceOp.MAX, self.process_group)
            flags[place] = there.to(flag.device)

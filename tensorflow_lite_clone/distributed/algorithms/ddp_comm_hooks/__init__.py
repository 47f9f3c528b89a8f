"""Hooks for `DistributedDataParallel.register_comm_hook`: other ways to reduce gradients."""

from __future__ import annotations

from enum import Enum, member
from functools import partial
from typing import Any

from tensorflow_lite_clone.distributed.algorithms.ddp_comm_hooks import (
    default_hooks,
    post_localSGD_hook,
    powerSGD_hook,
)

__all__ = [
    "DDPCommHookType",
    "default_hooks",
    "post_localSGD_hook",
    "powerSGD_hook",
    "register_ddp_comm_hook",
]


def _register(hook: Any, model: Any, state: Any) -> None:
    model.register_comm_hook(state, hook)


def _register_power_sgd(rank: int, model: Any, state: Any) -> None:
    kept = powerSGD_hook.PowerSGDState(state, matrix_approximation_rank=rank)
    model.register_comm_hook(kept, powerSGD_hook.powerSGD_hook)


class DDPCommHookType(Enum):
    """The hooks by name; each value is called with keywords `model` and `state`, a group."""

    ALLREDUCE = member(partial(_register, default_hooks.allreduce_hook))
    FP16_COMPRESS = member(partial(_register, default_hooks.fp16_compress_hook))
    BF16_COMPRESS = member(partial(_register, default_hooks.bf16_compress_hook))
    POWER_SGD = member(partial(_register_power_sgd, 1))
    POWER_SGD_RANK2 = member(partial(_register_power_sgd, 2))


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Register a hook by its name at a `DistributedDataParallel`."""
    comm_hook_type.value(model=model, state=state)

"""Hooks for `DistributedDataParallel.register_comm_hook`: other ways to reduce gradients."""

from __future__ import annotations

from enum import Enum, member
from functools import partial
from typing import Any

from tensorflow_lite_clone.distributed.algorithms.ddp_comm_hooks import default_hooks

__all__ = ["DDPCommHookType", "default_hooks", "register_ddp_comm_hook"]


def _register(hook: Any, model: Any, state: Any) -> None:
    model.register_comm_hook(state, hook)


class DDPCommHookType(Enum):
    """The hooks by name; each value is called with keywords `model` and `state`, a group."""

    ALLREDUCE = member(partial(_register, default_hooks.allreduce_hook))
    FP16_COMPRESS = member(partial(_register, default_hooks.fp16_compress_hook))
    BF16_COMPRESS = member(partial(_register, default_hooks.bf16_compress_hook))


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Register a hook by its name at a `DistributedDataParallel`."""
    comm_hook_type.value(model=model, state=state)

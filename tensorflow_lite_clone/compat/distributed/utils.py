"""``torch.distributed.utils``: Lightning evaluates with the first process's parameters by it."""

from __future__ import annotations

from collections.abc import Container
from itertools import chain

from tensorflow_lite_clone.distributed.collectives import broadcast
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.nn.modules.module import Module


def _sync_module_states(
    module: Module,
    process_group: ProcessGroup,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Container[str],
    broadcast_buffers: bool = True,
) -> None:
    """Write the parameters and buffers of the process `src` into those of all."""
    buffers = module.named_buffers() if broadcast_buffers else ()
    for name, tensor in chain(module.named_parameters(), buffers):
        if name not in params_and_buffers_to_ignore:
            broadcast(tensor.detach(), src, process_group)

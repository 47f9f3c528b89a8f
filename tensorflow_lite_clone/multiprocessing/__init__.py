"""The standard library's `multiprocessing` with PyTorch's additions, as ``torch.multiprocessing``.

A tensor in shared memory (`Tensor.share_memory_`, `nn.Module.share_memory`) stays the same memory
when it goes to another process, through a queue, a pipe or as an argument; any other tensor is
copied. The process that sends shared memory must live until the other has taken it.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from tensorflow_lite_clone.multiprocessing import reductions
from tensorflow_lite_clone.multiprocessing.spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *multiprocessing.__all__,
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names of PyTorch's ways to share memory."""
    return _STRATEGIES


def get_sharing_strategy() -> str:
    """The name that was set last; "file_descriptor" at first."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept one of PyTorch's names: memory is always shared by file descriptors."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}"
        )
    _strategy = new_strategy


reductions.init_reductions()

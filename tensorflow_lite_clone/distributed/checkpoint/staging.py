"""Copies of what is saved while training goes on, as ``torch.distributed.checkpoint.staging``."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from tensorflow_lite_clone.distributed.checkpoint._shards import (
    Boxes,
    is_sharded,
    shape_of,
    shards_of,
)
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


@runtime_checkable
class AsyncStager(Protocol):
    """Makes the copy that `async_save` writes."""

    def stage(self, state_dict: dict[str, Any]) -> Any:
        """The copy, or a Future of it."""

    def synchronize_staging(self) -> None:
        """Wait until the copy is made."""

    def close(self) -> None:
        """Give back what is held for copies."""


class BlockingAsyncStager(AsyncStager):
    """Copies everything to host memory at once. The arguments change nothing."""

    _synchronize_after_execution = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict = cache_staged_state_dict

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """The copy, with no memory in common with the original."""
        return _copied(state_dict)

    def synchronize_staging(self) -> None:
        """Nothing to wait for."""

    def close(self) -> None:
        """Nothing is held."""


@dataclass
class StagingOptions:
    """How `DefaultStager` copies. Only `use_async_staging` changes something."""

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class DefaultStager(BlockingAsyncStager):
    """Copies everything to host memory at once, and gives the copy, or a Future that has it.

    With the Future, which `use_async_staging` asks for, `async_save` gives an `AsyncSaveResponse`.
    """

    def __init__(self, config: StagingOptions = StagingOptions()) -> None:  # noqa: B008  (PyTorch's)
        super().__init__()
        self._config = config

    def stage(self, state_dict: dict[str, Any], **kwargs: Any) -> Any:
        copied = super().stage(state_dict)
        if not self._config.use_async_staging:
            return copied
        made: Future[dict[str, Any]] = Future()
        made.set_result(copied)
        return made


def boxes_on_host(value: Any) -> Boxes:
    """A copy in host memory of the boxes that this process has of something sharded."""
    shards = [(offsets, _on_host(local)) for offsets, local in shards_of(value)]
    return Boxes(shape_of(value), value.dtype, shards)


def _on_host(tensor: Tensor) -> Tensor:
    """A copy in host memory."""
    return tensor.detach().clone() if tensor.device.type == "cpu" else tensor.detach().cpu()


def _copied(value: Any) -> Any:
    if is_sharded(value):
        return boxes_on_host(value)
    if isinstance(value, Tensor):
        return _on_host(value)
    if isinstance(value, Mapping):
        return {key: _copied(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_copied(part) for part in value]
    if type(value) is tuple:
        return tuple([_copied(part) for part in value])
    return copy.deepcopy(value)

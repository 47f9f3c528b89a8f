"""Page-locked memory for batches, from which a GPU copies while the program goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils.data._utils.collate import rebuild_mapping, rebuild_sequence


def pinning_helps() -> bool:
    """Whether a device that copies from page-locked memory is in use."""
    return any(backend.device.type == "cuda" for backend in backends.loaded())


def pin_memory(data: Any, device: Any = None) -> Any:
    """Pins the tensors in nested mappings and sequences, and all that has a `pin_memory()`.

    `device` changes nothing: all devices in use copy from the same memory.
    """
    if isinstance(data, Tensor):
        return data.pin_memory() if pinning_helps() else data
    if isinstance(data, str | bytes):
        return data
    if isinstance(data, Mapping):
        return rebuild_mapping(data, lambda key: pin_memory(data[key]))
    if isinstance(data, Sequence):
        return rebuild_sequence(data, [pin_memory(item) for item in data])
    own = getattr(data, "pin_memory", None)
    return own() if callable(own) else data

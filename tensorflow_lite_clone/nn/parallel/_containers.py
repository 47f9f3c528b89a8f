"""The tensors inside of what modules are given and return."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.tensor import Tensor


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors in lists, tuples, dictionaries and data classes, however deep."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, list | tuple):
        parts: Any = value
    elif isinstance(value, dict):
        parts = value.values()
    elif is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, field.name) for field in fields(value)]
    else:
        return []
    return [found for part in parts for found in tensors_in(part)]


def moved(value: Any, device: Device) -> Any:
    """`value` with the tensors in lists, tuples and dictionaries on a device."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[moved(part, device) for part in value])
    if isinstance(value, list | tuple):
        return type(value)([moved(part, device) for part in value])
    if isinstance(value, dict):
        return type(value)([(key, moved(part, device)) for key, part in value.items()])
    return value

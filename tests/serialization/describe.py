"""What a checkpoint holds, as plain values that both libraries give alike."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

import tensorflow_lite_clone as tlc
from tests.device import DEVICE

LIBRARIES = (torch, tlc)


def describe(value: Any) -> Any:
    """Tensors by dtype, geometry, memory and values; containers by type and contents."""
    return _describe(value, [])


def _describe(value: Any, memories: list[Any]) -> Any:
    for library in LIBRARIES:
        if isinstance(value, library.Tensor):
            return _tensor(value, memories, library)
        if isinstance(value, (library.dtype, library.layout)):
            return repr(value)
        if isinstance(value, library.device):
            return repr(value).replace(f"type='{DEVICE}', index=0", "type='cpu'")
        if isinstance(value, library.Size):
            return "Size", list(value)
        if isinstance(value, library.UntypedStorage):
            return "UntypedStorage", value.tolist()
        if isinstance(value, library.TypedStorage):
            return "TypedStorage", repr(value.dtype), value.tolist()
    if isinstance(value, Counter):
        return "Counter", dict(value)
    if isinstance(value, dict):
        items = [(_describe(k, memories), _describe(v, memories)) for k, v in value.items()]
        attributes = {name: repr(v) for name, v in getattr(value, "__dict__", {}).items()}
        return type(value).__name__, items, attributes
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [_describe(item, memories) for item in value]
    if value is None or type(value) in (bool, int, float, complex, str, bytes, bytearray, set):
        return type(value).__name__, repr(value)
    raise TypeError(f"a checkpoint holds a {type(value)}")


def _tensor(x: Any, memories: list[Any], library: Any) -> Any:
    memory = x.untyped_storage()
    identity = memory._cdata if library is torch else memory._memory
    if identity not in memories:
        memories.append(identity)
    attributes = {
        name: entry for name, entry in vars(x).items() if library is torch or name != "_grad"
    }
    return (
        type(x).__name__,
        repr(x.dtype),
        list(x.shape),
        x.stride(),
        x.storage_offset(),
        x.requires_grad,
        memories.index(identity),
        memory.nbytes(),
        repr(x.detach().tolist()),
        repr(attributes),
    )

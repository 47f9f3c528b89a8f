"""What a checkpoint says of its contents as bytes, and back.

Pickles in PyTorch's form. They are read by the machine of ``torch.load(weights_only=True)``, which
knows the classes listed here beside plain values, so a file cannot run code.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

from tensorflow_lite_clone.distributed.checkpoint import metadata, planner, storage
from tensorflow_lite_clone.serialization._names import full_name
from tensorflow_lite_clone.serialization._pickler import pickler
from tensorflow_lite_clone.serialization._storages import Collected
from tensorflow_lite_clone.serialization._unpickler import Source, WeightsUnpickler

PROTOCOL = 4


def _path(*parts: str) -> Path:
    return Path(*parts)


#: Full name -> class or function, of what such a pickle may name.
_allowed: dict[str, Any] = {
    f"{module}.{name}": _path
    for module in ("pathlib", "pathlib._local")
    for name in ("PosixPath", "WindowsPath")
}


def allow(*classes: type) -> None:
    """Let pickles have instances of these classes, which hold values and do nothing."""
    _allowed.update({full_name(cls): cls for cls in classes})


def dumps(value: Any) -> bytes:
    """`value` as bytes."""
    stream = io.BytesIO()
    pickler(pickle, stream, PROTOCOL, Collected()).dump(value)
    return stream.getvalue()


def loads(data: bytes) -> Any:
    """What `dumps`, or PyTorch, made bytes of.

    Raises pickle.UnpicklingError or EOFError for what is damaged or names other classes.
    """
    machine = WeightsUnpickler(Source(io.BytesIO(data), len(data)))
    machine.added = {**machine.added, **_allowed}
    value = machine.load()
    machine.foreign.expect_none(value)
    return value


allow(
    metadata.BytesStorageMetadata,
    metadata.ChunkStorageMetadata,
    metadata.Metadata,
    metadata.MetadataIndex,
    metadata.StorageMeta,
    metadata.TensorProperties,
    metadata.TensorStorageMetadata,
    metadata._MEM_FORMAT_ENCODING,
    planner.BytesIOWriteData,
    planner.LoadItemType,
    planner.LoadPlan,
    planner.ReadItem,
    planner.SavePlan,
    planner.TensorWriteData,
    planner.WriteItem,
    planner.WriteItemType,
    storage.WriteResult,
)

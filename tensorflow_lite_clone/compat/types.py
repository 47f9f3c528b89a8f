"""Names for annotations, as ``torch.types``."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

from tensorflow_lite_clone.core.device import Device as _device  # noqa: F401
from tensorflow_lite_clone.core.device import Layout as _layout  # noqa: F401
from tensorflow_lite_clone.core.dtypes import DType as _dtype  # noqa: F401
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.ops.compat.untyped_storage import UntypedStorage as Storage
from tensorflow_lite_clone.tensor import Tensor

_int = builtins.int
_float = builtins.float
_bool = builtins.bool
_complex = builtins.complex
_bytes = builtins.bytes
_str = builtins.str
_Number = (builtins.int, builtins.float, builtins.bool)
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]

#: A Python number that stands for a tensor's element.
Number: TypeAlias = int | float | bool
#: What names a device, and what names a file.
Device: TypeAlias = _device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool

__all__ = ["Any", "Device", "FileLike", "Number", "Size", "Storage", "Tensor"]

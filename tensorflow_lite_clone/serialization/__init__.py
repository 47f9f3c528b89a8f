"""Checkpoint files in PyTorch's format, as ``torch.serialization``: `save` and `load`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.serialization._files import is_archive as _is_zipfile
from tensorflow_lite_clone.serialization._files import open_file_like as _open_file_like
from tensorflow_lite_clone.serialization._locations import (
    default_restore_location,
    location_tag,
    register_package,
    validate_cuda_device,
    validate_hpu_device,
)
from tensorflow_lite_clone.serialization._options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from tensorflow_lite_clone.serialization._safe import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from tensorflow_lite_clone.serialization._small import (
    SourceChangeWarning,
    check_module_version_greater_or_equal,
    mkdtemp,
)
from tensorflow_lite_clone.serialization.loading import get_unsafe_globals_in_checkpoint, load
from tensorflow_lite_clone.serialization.npz import load_npz, save_npz
from tensorflow_lite_clone.serialization.saving import DEFAULT_PROTOCOL, save

#: What `load` takes as ``map_location``.
MAP_LOCATION = Callable[[Any, str], Any] | Device | str | dict[str, str] | None

__all__ = [
    "DEFAULT_PROTOCOL",
    "LoadEndianness",
    "MAP_LOCATION",
    "SourceChangeWarning",
    "_is_zipfile",
    "_open_file_like",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "load_npz",
    "location_tag",
    "mkdtemp",
    "register_package",
    "safe_globals",
    "save",
    "save_npz",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "validate_cuda_device",
    "validate_hpu_device",
]

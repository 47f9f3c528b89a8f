"""DLPack: memory shared with other libraries."""

from __future__ import annotations

from tensorflow_lite_clone.ops.create.interchange import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]

"""Tools around training: `utils.data`, `utils.checkpoint`, `utils.dlpack`."""

from __future__ import annotations

from tensorflow_lite_clone.utils import checkpoint, data, dlpack

__all__ = ["checkpoint", "data", "dlpack"]

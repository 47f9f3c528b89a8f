"""Tools around training: `utils.data`, `utils.checkpoint`, `utils.dlpack`, `utils.hooks`."""

from __future__ import annotations

from tensorflow_lite_clone.utils import checkpoint, data, dlpack, hooks

__all__ = ["checkpoint", "data", "dlpack", "hooks"]

"""Tools around training: `utils.data`, `utils.checkpoint`."""

from __future__ import annotations

from tensorflow_lite_clone.utils import checkpoint, data

__all__ = ["checkpoint", "data"]

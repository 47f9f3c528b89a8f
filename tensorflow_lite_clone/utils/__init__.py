"""Tools around training: `utils.data`."""

from __future__ import annotations

from tensorflow_lite_clone.utils import data

__all__ = ["data"]

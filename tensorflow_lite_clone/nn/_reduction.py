"""How losses are reduced; the functions are in `ops`."""

from __future__ import annotations

from tensorflow_lite_clone.ops.compat._reduction import get_enum, legacy_get_enum, legacy_get_string

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]

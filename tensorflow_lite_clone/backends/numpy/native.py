"""The NumPy dtype of every DType."""

from __future__ import annotations

from typing import Any

NATIVE: dict[Any, Any] = {}  # DType -> numpy dtype, filled by the backend

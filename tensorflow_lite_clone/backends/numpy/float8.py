"""Numbers in the dtypes of eight bits, which `ml_dtypes` has, rounded as PyTorch does."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tensorflow_lite_clone.core.dtypes import FLOAT8

#: As the only part of a structure: NumPy moves and casts those, and calculates with none.
FLOAT8_NATIVE = {dtype: np.dtype([("value", getattr(ml_dtypes, dtype.name))]) for dtype in FLOAT8}


def stored(x: Any, native: Any) -> Any:
    """An array in a dtype of eight bits, by way of float32."""
    part = native["value"]
    x = np.asarray(x.real if x.dtype.kind == "c" else x).astype(np.float32)
    if part == ml_dtypes.float8_e4m3fn:  # it has no infinity
        x = np.clip(x, -448, 448)
    elif part == ml_dtypes.float8_e8m0fnu:  # powers of two, and no zero
        x = np.maximum(np.abs(x), np.float32(2.0**-127))
    bits = np.asarray(x).astype(part).view(np.uint8)
    if part == ml_dtypes.float8_e5m2:  # of its NaNs the one with all bits set
        bits = np.where(np.isnan(x), bits | np.uint8(3), bits)
    return bits.view(native)

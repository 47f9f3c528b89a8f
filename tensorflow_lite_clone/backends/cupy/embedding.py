"""The gradient of a lookup of rows: rows of g added up by index."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.arrays import ACCUMULATORS
from tensorflow_lite_clone.backends.cupy.primitives.scattering import Places, scatter_rows
from tensorflow_lite_clone.dispatch.table import override

_NONE = -(1 << 63)


@override("embedding_backward", backend="cupy")
def embedding_backward(
    F: Any, g: Any, index: Any, *, rows: int, padding: int | None, by_frequency: bool
) -> Any:
    if by_frequency or g.dtype not in ACCUMULATORS:
        return NotImplemented
    width = g.shape[-1]
    wide = np.float32 if g.dtype.itemsize == 2 else g.dtype
    result = cupy.zeros((rows, width), wide)
    places = Places(index, 1, rows, width, g.shape)
    skipped = _NONE if padding is None else padding
    scatter_rows(result, places, cupy.ascontiguousarray(g), "Add", skipped)
    return result.astype(g.dtype, copy=False)

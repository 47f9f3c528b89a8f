"""Places among sorted numbers of which the last are NaN, as PyTorch finds them on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.dispatch.table import override


@override("search_sorted", backend="numpy")
def search_sorted(F: Any, rows: Any, values: Any, sorter: Any, *, side: str) -> Any:
    """Bisection, where a NaN among the rows is less than everything and one of the values more."""
    if sorter is not None or rows.dtype.char not in "efd" or not rows.size:
        return NotImplemented
    if not np.isnan(rows[..., -1]).any():
        return NotImplemented
    low = np.zeros(values.shape, np.int64)
    high = np.full(values.shape, rows.shape[-1])
    not_less = np.greater_equal if side == "left" else np.greater
    while (open_ := low < high).any():
        middle = (low + high) // 2
        at = np.minimum(middle, rows.shape[-1] - 1)
        found = rows[at] if rows.ndim == 1 else np.take_along_axis(rows, at, -1)
        right = open_ & ~not_less(found, values)
        low = np.where(right, middle + 1, low)
        high = np.where(open_ & ~right, middle, high)
    return low

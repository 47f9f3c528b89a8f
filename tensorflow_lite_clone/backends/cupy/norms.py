"""What the launchers of the normalisations share: types and pack widths."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

_f32 = np.dtype(np.float32)


def vector(length: int, *arrays: Any) -> int:
    """How many elements a thread may load at once from rows of `length` of all `arrays`.

    The first array's type decides what 16 bytes hold; wider elements take several loads.
    """
    width = 16 // arrays[0].itemsize
    addresses = 0
    for array in arrays:
        if array is not None:
            addresses |= array.data.ptr
    if not (length % width or addresses % 16):
        return width
    while width > 1 and (
        length % width
        or any([a is not None and a.data.ptr % min(16, width * a.itemsize) for a in arrays])
    ):
        width //= 2
    return width


def weights_of(x: Any, w: Any, b: Any) -> Any:
    """(w, b, their dtype), contiguous; None when the kernels do not serve their dtypes.

    They are of x's dtype, or float32 beside elements of two bytes.
    """
    kind = x.dtype if w is None and b is None else (b if w is None else w).dtype
    if (kind != x.dtype and (kind != _f32 or x.itemsize != 2)) or (
        w is not None and b is not None and b.dtype != kind
    ):
        return None
    return (
        None if w is None else cupy.ascontiguousarray(w),
        None if b is None else cupy.ascontiguousarray(b),
        kind,
    )


def statistics(values: Any, kind: Any) -> Any:
    """Saved statistics as the kernels read them: contiguous, of the accumulator's dtype."""
    return cupy.ascontiguousarray(values.astype(kind, copy=False))

"""Copies from row-major to channels_last and back, a tile at a time: `conv2d_pack`."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.backends.cupy.arrays import ACCUMULATORS, is_dense_last
from tensorflow_lite_clone.backends.cupy.convolution_layout import pack
from tensorflow_lite_clone.core.strides import channels_last, format_strides
from tensorflow_lite_clone.dispatch.table import override

_FIRST = (0, 3, 1, 2)
_LARGE = 1 << 16  # bytes, from which it is worth while


def _is_supported(x: Any, line: int) -> bool:
    """Whether lines of so many elements are whole packs of 16 bytes."""
    return x.dtype in ACCUMULATORS and x.nbytes >= _LARGE and not line * x.itemsize % 16


def to_row_major(x: Any) -> Any:
    """A row-major copy of a channels_last array; None where this does not serve it."""
    if x.ndim != 4 or x.flags.c_contiguous or not is_dense_last(x):
        return None
    n, c, h, w = x.shape
    area = h * w
    if not _is_supported(x, area):
        return None
    return pack(x, n, 1, area, c, (area * c, 0, c, 1), (area * c, 0, area), x.size).reshape(x.shape)


@override("restride", backend="cupy")
def restride(F: Any, x: Any, *, strides: tuple) -> Any:
    if x.ndim != 4 or not x.flags.c_contiguous or not _is_supported(x, x.shape[1]):
        return NotImplemented
    if strides != format_strides(x.shape, channels_last):
        return NotImplemented
    n, c, h, w = x.shape
    area = h * w
    line = pack(x, n, 1, c, area, (area * c, 0, area, 1), (area * c, 0, c), x.size)
    return line.reshape(n, h, w, c).transpose(_FIRST)

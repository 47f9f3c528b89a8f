"""Resampling along an axis on the CPU: short axes as a product with a matrix of the taps.

BLAS multiplies by the zeros of a 64-column matrix faster than NumPy gathers, scales and adds.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tensorflow_lite_clone.dispatch.table import override

_SIZE_PER_TAP = 64


@lru_cache(maxsize=256)
def _matrix(taps: Any, dtype: np.dtype) -> np.ndarray:
    """(results, size)"""
    matrix = np.zeros((len(taps.rows), taps.size), np.float64)
    for result, row in enumerate(taps.rows):
        for index, weight in row:
            matrix[result, index] += weight
    return matrix.astype(dtype)


@override("resample", backend="numpy")
def resample(F: Any, x: np.ndarray, *, axis: int, taps: Any) -> Any:
    if not taps.weighted or x.dtype.char not in "fd" or not x.size or not taps.rows:
        return NotImplemented
    if taps.size > _SIZE_PER_TAP * max(map(len, taps.rows)):
        return NotImplemented
    if not np.isfinite(np.add.reduce(x, None)):
        return NotImplemented  # zero times infinity is no number
    matrix = _matrix(taps, x.dtype)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    y = np.empty((*before, len(matrix), *after), x.dtype)
    outer, inner = math.prod(before), math.prod(after)
    if inner == 1:
        np.matmul(x.reshape(outer, taps.size), matrix.T, out=y.reshape(outer, len(matrix)))
    else:
        stacked = x.reshape(outer, taps.size, inner)
        np.matmul(matrix, stacked, out=y.reshape(outer, len(matrix), inner))
    return y

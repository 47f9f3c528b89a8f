"""Matrix products: NumPy's, where BLAS serves them; other dtypes go through one that BLAS has."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_WIDE = 128  # columns from which on a copy of the rows takes little of the time
_f32 = np.dtype(np.float32)
_f64 = np.dtype(np.float64)
_i64 = np.dtype(np.int64)


def matmul(x: Any, y: Any) -> Any:
    if x.dtype.char not in "fdFD":
        return _through_wider(x, y)
    if x.ndim == y.ndim == 2:
        return x.dot(y)  # the same call of BLAS; numpy.matmul takes twice as long to come to it
    if y.ndim == 2 and x.ndim > 2 and (x.flags.c_contiguous or y.shape[1] >= _WIDE):
        # One product of many rows; NumPy would make one per matrix of the batch. Through `out`,
        # because a reshaped product would not own its memory. Rows that lie elsewhere are copied.
        *batch, inner = x.shape
        count = math.prod(batch)
        result = np.empty((*batch, y.shape[1]), np.result_type(x, y))
        np.matmul(x.reshape(count, inner), y, out=result.reshape(count, y.shape[1]))
        return result
    return np.matmul(x, y)


def _through_wider(x: Any, y: Any) -> Any:
    if x.itemsize == 2 and x.dtype.kind in "fV":
        return np.asarray(matmul(x.astype(_f32), y.astype(_f32))).astype(x.dtype)
    inner = x.shape[-1]
    if (
        x.dtype.kind in "iu"
        and x.size * y.size > 4096 * inner
        and inner * _largest(x) * _largest(y) < 1 << 53
    ):  # NumPy's integer products know no BLAS, and below 2**53 float64 is exact
        product = np.asarray(matmul(x.astype(_f64), y.astype(_f64)))
        return product.astype(_i64).astype(x.dtype, copy=False)
    return np.matmul(x, y)


def _largest(x: Any) -> int:
    """The largest magnitude in an integer array."""
    return max(int(x.max(initial=0)), -int(x.min(initial=0)))

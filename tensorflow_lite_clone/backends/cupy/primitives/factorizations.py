"""Factorizations of matrices and systems of equations, by cuSOLVER and cuBLAS where CuPy has them.

CuPy says that some matrix of a batch failed, not which, and has no LDL: these are computed on the
host. LU factorizations of batches, and systems solved with them, are cuBLAS' own.
"""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

import cupy
import cupyx.scipy  # whose linalg is imported, with cuBLAS, when it is first named
import numpy as np
from cupy.cuda import device
from cupy_backends.cuda import libs  # likewise cuBLAS

from tensorflow_lite_clone.backends.cupy.host_fallback import on_host, on_host_with_warning
from tensorflow_lite_clone.backends.numpy.primitives import factorizations as numpy_factorizations
from tensorflow_lite_clone.backends.numpy.primitives import lu as numpy_lu
from tensorflow_lite_clone.backends.numpy.primitives import solvers as numpy_solvers

_LDL = "LDL factorizations"


def _no_info(x: Any) -> Any:
    return cupy.zeros(x.shape[:-2], np.int32)


def cholesky(x: Any) -> tuple[Any, Any]:
    try:
        return cupy.linalg.cholesky(x), _no_info(x)
    except np.linalg.LinAlgError:
        return on_host(numpy_factorizations.cholesky, x)


def _suits_batches(x: Any) -> bool:
    """Whether cuBLAS' routines for many matrices fit: they are square, and small or many.

    Large ones are factored one by one, from the size on at which CuPy itself does so.
    """
    *batch, m, n = x.shape
    return len(batch) > 0 and m == n and 65536 * prod(batch) >= n * n


def _batched(name: str, dtype: Any) -> Any:
    letter = {"f": "s", "d": "d", "F": "c", "D": "z"}[dtype.char]
    return getattr(libs.cublas, f"{letter}{name}Batched")


def _by_columns(x: Any) -> Any:
    """A copy of all matrices, transposed: (count, columns, rows)."""
    *batch, m, n = x.shape
    return cupy.array(x.swapaxes(-1, -2), order="C").reshape(prod(batch), n, m)


def _starts(x: Any) -> Any:
    """Where each matrix of a contiguous (count, ...) array begins, on the device."""
    first, step = x.data.ptr, x[0].nbytes
    return cupy.arange(first, first + step * len(x), step, dtype=np.uintp)


def _factor_batch(x: Any) -> tuple[Any, Any, Any]:
    """Transposed factors, pivots from 1 and info of a batch of square matrices."""
    factors = _by_columns(x)
    count, n, _ = factors.shape
    pivots, info = cupy.empty((count, n), np.int32), cupy.empty(count, np.int32)
    getrf, starts = _batched("getrf", x.dtype), _starts(factors)
    handle = device.get_cublas_handle()
    getrf(handle, n, starts.data.ptr, n, pivots.data.ptr, info.data.ptr, count)
    return factors, pivots, info


def lu_factor(x: Any) -> tuple[Any, Any, Any]:
    if not x.size:
        return on_host(numpy_lu.lu_factor, x)
    *batch, m, n = x.shape
    if _suits_batches(x):
        factors, pivots, info = _factor_batch(x)
        factors = factors.reshape(*batch, n, m).swapaxes(-1, -2)
        return factors, pivots.reshape(*batch, n), info.reshape(batch)
    if not batch:
        return _factor_one(x)
    parts = [_factor_one(matrix) for matrix in x.reshape(-1, m, n)]
    factors, pivots, info = [cupy.stack(part) for part in zip(*parts)]
    return factors.reshape(x.shape), pivots.reshape(*batch, min(m, n)), info.reshape(batch)


def _factor_one(x: Any) -> tuple[Any, Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of zeros on the diagonal: in the info
        factors, pivots = cupyx.scipy.linalg.lu_factor(x, check_finite=False)
    zeros = cupy.diagonal(factors) == 0
    first = zeros.astype(np.uint8).argmax() + 1
    info = cupy.where(zeros.any(), first, 0).astype(np.int32)
    return factors, pivots + 1, info


def lu_permutation(pivots: Any, size: int) -> Any:
    return on_host(numpy_lu.lu_permutation, pivots, size=size)


def solve(a: Any, b: Any) -> tuple[Any, Any]:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    whole = cupy.broadcast_to(a, batch + a.shape[-2:])
    sides = cupy.broadcast_to(b, batch + b.shape[-2:])
    if not sides.size:
        return cupy.zeros_like(sides), _no_info(a)
    if _suits_batches(a) and a.dtype == b.dtype:
        return _solve_batch(a, sides)
    try:
        return cupy.linalg.solve(whole, sides), _no_info(a)
    except np.linalg.LinAlgError:
        return on_host(numpy_solvers.solve, a, b)


def _solve_batch(a: Any, sides: Any) -> tuple[Any, Any]:
    """A is factored once for all the sides that it is broadcast to; nothing is read back.

    Singular matrices give infinities and NaN, as dividing by their pivots does.
    """
    factors, pivots, info = _factor_batch(a)
    batch = a.shape[:-2]
    which = cupy.arange(len(factors)).reshape(batch)
    which = cupy.broadcast_to(which, sides.shape[:-2]).ravel()
    starts, pivots = _starts(factors)[which], cupy.ascontiguousarray(pivots[which])
    x = _by_columns(sides)
    count, columns, n = x.shape
    handle, failed = device.get_cublas_handle(), np.empty(1, np.int32)  # failed: of the arguments
    places = _starts(x)
    getrs = _batched("getrs", a.dtype)
    getrs(
        handle, libs.cublas.CUBLAS_OP_N, n, columns, starts.data.ptr, n, pivots.data.ptr,
        places.data.ptr, n, failed.ctypes.data, count,
    )  # fmt: skip
    x = x.reshape(*sides.shape[:-2], columns, n).swapaxes(-1, -2)
    return x, info.reshape(batch)


def solve_triangular(a: Any, b: Any, *, upper: bool, unitriangular: bool) -> Any:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    whole = cupy.broadcast_to(a, batch + a.shape[-2:])
    sides = cupy.broadcast_to(b, batch + b.shape[-2:])
    if not sides.size:
        return cupy.zeros_like(sides)
    solve = cupyx.scipy.linalg.solve_triangular
    return solve(whole, sides, lower=not upper, unit_diagonal=unitriangular)


def ldl_factor(x: Any, *, hermitian: bool) -> tuple[Any, Any, Any]:
    return on_host_with_warning(_LDL, numpy_factorizations.ldl_factor, x, hermitian=hermitian)


def ldl_solve(ld: Any, pivots: Any, b: Any, *, hermitian: bool) -> Any:
    return on_host_with_warning(
        _LDL, numpy_factorizations.ldl_solve, ld, pivots, b, hermitian=hermitian
    )

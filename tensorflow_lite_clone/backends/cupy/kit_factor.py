"""Factorizations of matrices and systems of equations, by cuSOLVER and cuBLAS where CuPy has them.

CuPy says that some matrix of a batch failed, not which, and has neither LU of batches nor LDL:
these are computed on the host.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import cupy
import cupyx.scipy  # whose linalg is imported, with cuBLAS, when it is first named
import numpy as np

from tensorflow_lite_clone.backends.numpy import kit_factor, kit_lu, kit_solve


def _on_host(function: Callable[..., Any], *arrays: Any, **parameters: Any) -> Any:
    result = function(*[x.get() for x in arrays], **parameters)
    if isinstance(result, tuple):
        return tuple([cupy.asarray(part) for part in result])
    return cupy.asarray(result)


def _no_info(x: Any) -> Any:
    return cupy.zeros(x.shape[:-2], np.int32)


def cholesky(x: Any) -> tuple[Any, Any]:
    try:
        return cupy.linalg.cholesky(x), _no_info(x)
    except np.linalg.LinAlgError:
        return _on_host(kit_factor.cholesky, x)


def lu_factor(x: Any) -> tuple[Any, Any, Any]:
    if x.ndim > 2 or not x.size:
        return _on_host(kit_lu.lu_factor, x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of zeros on the diagonal: in the info
        factors, pivots = cupyx.scipy.linalg.lu_factor(x, check_finite=False)
    zeros = cupy.diagonal(factors) == 0
    first = zeros.astype(np.uint8).argmax() + 1
    info = cupy.where(zeros.any(), first, 0).astype(np.int32)
    return factors, pivots + 1, info


def lu_permutation(pivots: Any, size: int) -> Any:
    return _on_host(kit_lu.lu_permutation, pivots, size=size)


def solve(a: Any, b: Any) -> tuple[Any, Any]:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    whole = cupy.broadcast_to(a, batch + a.shape[-2:])
    sides = cupy.broadcast_to(b, batch + b.shape[-2:])
    if not sides.size:
        return cupy.zeros_like(sides), _no_info(a)
    try:
        return cupy.linalg.solve(whole, sides), _no_info(a)
    except np.linalg.LinAlgError:
        return _on_host(kit_solve.solve, a, b)


def solve_triangular(a: Any, b: Any, *, upper: bool, unitriangular: bool) -> Any:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    whole = cupy.broadcast_to(a, batch + a.shape[-2:])
    sides = cupy.broadcast_to(b, batch + b.shape[-2:])
    if not sides.size:
        return cupy.zeros_like(sides)
    solve = cupyx.scipy.linalg.solve_triangular
    return solve(whole, sides, lower=not upper, unit_diagonal=unitriangular)


def ldl_factor(x: Any, *, hermitian: bool) -> tuple[Any, Any, Any]:
    return _on_host(kit_factor.ldl_factor, x, hermitian=hermitian)


def ldl_solve(ld: Any, pivots: Any, b: Any, *, hermitian: bool) -> Any:
    return _on_host(kit_factor.ldl_solve, ld, pivots, b, hermitian=hermitian)

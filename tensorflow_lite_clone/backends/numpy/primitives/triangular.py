"""Triangular systems of equations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from tensorflow_lite_clone.backends.numpy import lapack

_BLOCK = 64  # rows that are solved before the others see them


def solve_triangular(a: Any, b: Any, *, upper: bool, unitriangular: bool) -> Any:
    """Golub and Van Loan, Matrix Computations (4th ed.), section 3.1.4: substitution by blocks."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.array(np.broadcast_to(b, batch + b.shape[-2:]), order="C")
    if not x.size or lapack.solve_triangular(a, x, upper=upper, unitriangular=unitriangular):
        return x
    n = a.shape[-1]
    starts = range(0, n, _BLOCK)
    for start in reversed(starts) if upper else starts:
        own = slice(start, min(start + _BLOCK, n))
        done = slice(own.stop, n) if upper else slice(0, start)
        if done.start < done.stop:
            x[..., own, :] -= a[..., own, done] @ x[..., done, :]
        x[..., own, :] = _solve_block(a[..., own, own], x[..., own, :], upper, unitriangular)
    return x


def _solve_block(a: Any, b: Any, upper: bool, unitriangular: bool) -> Any:
    """NumPy's general solver does substitution alone when the matrix is upper triangular."""
    if not upper:  # reversed, a lower triangle is an upper one
        a, b = a[..., ::-1, ::-1], b[..., ::-1, :]
    a = np.triu(a)
    if unitriangular:
        diagonal = np.arange(a.shape[-1])
        a[..., diagonal, diagonal] = 1
    try:
        x = np.linalg.solve(a, b)
    except LinAlgError:
        x = _substituted(a, b)
    return x if upper else x[..., ::-1, :]


def _substituted(a: Any, b: Any) -> Any:
    """Row by row; zeros on the diagonal give infinities and NaN."""
    x = np.array(b)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for k in reversed(range(a.shape[-1])):
            x[..., k, :] /= a[..., k, k, None]
            x[..., :k, :] -= a[..., :k, k, None] * x[..., k, None, :]
    return x

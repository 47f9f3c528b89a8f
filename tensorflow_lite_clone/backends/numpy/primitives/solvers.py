"""General systems of equations that say which matrices are singular."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from tensorflow_lite_clone.backends.numpy import lapack
from tensorflow_lite_clone.backends.numpy.primitives.lu import lu_factor, lu_permutation
from tensorflow_lite_clone.backends.numpy.primitives.triangular import solve_triangular


def solve(a: Any, b: Any) -> tuple[Any, Any]:
    out = lapack.solve(a, b) if b.size else None
    if out is not None:
        return out
    try:
        return np.linalg.solve(a, b), np.zeros(a.shape[:-2], np.int32)
    except LinAlgError:  # some are singular: infinities there, and solutions for the others
        factors, pivots, info = lu_factor(a)
    order = lu_permutation(pivots, a.shape[-1])[..., None]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    b = np.broadcast_to(b, batch + b.shape[-2:])
    rows = np.take_along_axis(b, np.broadcast_to(order, (*batch, a.shape[-1], 1)), axis=-2)
    rows = solve_triangular(factors, rows, upper=False, unitriangular=True)
    return solve_triangular(factors, rows, upper=True, unitriangular=False), info

"""Factorizations and systems of equations by LAPACK and BLAS as SciPy has them, matrix by matrix.

Each function takes arrays of at least one element and gives None where SciPy cannot serve, or
where NumPy's loops over many small matrices are faster than a call for each of them.

LAPACK reads matrices by columns: a row-major array is the transpose of what it sees. Nothing is
transposed where that can be told to the routine; results of `lu_factor` and `ldl_factor` lie by
columns, as PyTorch's do.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.with_scipy import routine

_LARGE = 32  # the order from which SciPy's solvers are faster than NumPy's, which need no call each
_SMALL = 12  # below this order steps over all matrices are faster than calls, if there are many


def _worth_calls(order: int, batch: tuple[int, ...]) -> bool:
    """Whether calls for each matrix cost less than our own code's steps over all of them."""
    return order >= _SMALL or prod(batch) <= 4 * order


def _by_columns(x: Any) -> tuple[Any, Any]:
    """A copy of matrices that lies by columns: the memory, and the matrices in a list."""
    memory = np.array(x.swapaxes(-1, -2), order="C")
    return memory, _listed(memory.swapaxes(-1, -2))


def _listed(x: Any) -> list:
    return [*x.reshape(-1, *x.shape[-2:])]


def _places(a: Any, b: Any) -> list[int]:
    """Which matrix of `a` belongs to each one of `b`, whose leading shape is the wider one."""
    batch = a.shape[:-2]
    return np.broadcast_to(np.arange(prod(batch)).reshape(batch), b.shape[:-2]).ravel().tolist()


def _numbers(values: list, shape: tuple[int, ...]) -> Any:
    return np.array(values, np.int32).reshape(shape)


def cholesky(x: Any) -> tuple[Any, Any] | None:
    """The upper triangle of what LAPACK sees is the lower one of `x`; it finds Lᵀ, which is L."""
    potrf = routine("potrf", x.dtype) if x.shape[-1] >= _LARGE else None
    if potrf is None:
        return None
    factor = np.array(x, order="C")
    info = [potrf(matrix.T, overwrite_a=1)[1] for matrix in factor.reshape(-1, *x.shape[-2:])]
    return factor, _numbers(info, x.shape[:-2])


def lu_factor(x: Any) -> tuple[Any, Any, Any] | None:
    worth = _worth_calls(min(x.shape[-2:]), x.shape[:-2])
    getrf = routine("getrf", x.dtype) if worth else None
    if getrf is None:
        return None
    memory, matrices = _by_columns(x)
    results = [getrf(matrix, overwrite_a=1)[1:] for matrix in matrices]
    pivots = _numbers([pivots for pivots, _ in results], (*x.shape[:-2], min(x.shape[-2:])))
    return memory.swapaxes(-1, -2), pivots + 1, _numbers([i for _, i in results], x.shape[:-2])


def solve(a: Any, b: Any) -> tuple[Any, Any] | None:
    """Singular matrices give infinities and NaN, as dividing by their pivots does."""
    worth = a.dtype == b.dtype and a.shape[-1] >= _LARGE
    getrf, getrs = [routine(name, a.dtype) if worth else None for name in ("getrf", "getrs")]
    if getrf is None:
        return None
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    factors = [getrf(matrix, overwrite_a=1) for matrix in _by_columns(a)[1]]
    info = _numbers([info for _, _, info in factors], a.shape[:-2])
    memory, sides = _by_columns(np.broadcast_to(b, batch + b.shape[-2:]))
    for which, side in zip(_places(a, memory), sides):
        factor, pivots, _ = factors[which]
        getrs(factor, pivots, side, overwrite_b=1)
    return memory.swapaxes(-1, -2), info


def solve_triangular(a: Any, x: Any, *, upper: bool, unitriangular: bool) -> bool:
    """Write the solution over `x`, which is row-major; False where that was not done.

    So A X = B is the equation Xᵀ Aᵀ = Bᵀ of what BLAS sees.
    """
    worth = a.dtype == x.dtype and _worth_calls(a.shape[-1], x.shape[:-2])
    trsm = routine("trsm", a.dtype) if worth else None
    if trsm is None:
        return False
    transposed = a.strides[-2] == a.itemsize and a.strides[-1] != a.itemsize  # it lies by columns
    matrices = _listed(a.swapaxes(-1, -2) if transposed else a)
    how = {"side": 1, "lower": upper != transposed, "trans_a": transposed, "diag": unitriangular}
    for which, side in zip(_places(a, x), _listed(x)):
        trsm(1, matrices[which].T, side.T, overwrite_b=1, **how)
    return True


def ldl_factor(x: Any, *, hermitian: bool) -> tuple[Any, Any, Any] | None:
    kind = "hetrf" if hermitian and x.dtype.kind == "c" else "sytrf"
    factor, room = routine(kind, x.dtype), routine(f"{kind}_lwork", x.dtype)
    if factor is None:
        return None
    memory, matrices = _by_columns(np.tril(x))
    space = int(room(x.shape[-1], lower=1)[0].real)
    results = [factor(matrix, lower=1, lwork=space, overwrite_a=1)[1:] for matrix in matrices]
    pivots = _numbers([pivots for pivots, _ in results], x.shape[:-1])
    return memory.swapaxes(-1, -2), pivots, _numbers([i for _, i in results], x.shape[:-2])


def ldl_solve(ld: Any, pivots: Any, b: Any, *, hermitian: bool) -> Any:
    kind = "hetrs" if hermitian and ld.dtype.kind == "c" else "sytrs"
    solve = routine(kind, ld.dtype)
    size = ld.shape[-1]
    rows = np.broadcast_to(pivots, ld.shape[:-1]).reshape(-1, size)
    # The routine follows pivots wherever they point to.
    if solve is None or ld.dtype != b.dtype or not _sound(rows):
        return None
    batch = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2])
    factors = _by_columns(ld)[1]
    memory, sides = _by_columns(np.broadcast_to(b, batch + b.shape[-2:]))
    for which, side in zip(_places(ld, memory), sides):
        solve(factors[which], rows[which], side, lower=1, overwrite_b=1)
    return memory.swapaxes(-1, -2)


def _sound(pivots: Any) -> bool:
    """Whether they name rows, and the negative ones come in pairs."""
    negative = pivots < 0
    odd = np.cumsum(negative, axis=-1) % 2 == 1
    unpaired = (odd & ~negative).any() or odd[:, -1].any()
    size = pivots.shape[-1]
    return not unpaired and bool(((pivots >= -size) & (pivots <= size) & (pivots != 0)).all())

"""Decompositions of a few leading vectors, found by random projections.

The source is N. Halko, P. G. Martinsson and J. A. Tropp, "Finding structure with randomness:
probabilistic algorithms for constructing approximate matrix decompositions", 2011.
"""

from __future__ import annotations

from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops.linalg.matmul import matmul
from tensorflow_lite_clone.ops.linalg.qr import qr
from tensorflow_lite_clone.ops.linalg.svd import svd
from tensorflow_lite_clone.tensor import Tensor


def _range_of(A: Tensor, q: int, niter: int) -> Tensor:
    """Orthonormal columns that nearly span the range of `A`: Halko's algorithm 4.4."""
    found = qr(matmul(A, A.new_empty(A.shape[-1], q).normal_()))[0]
    for _ in range(niter):
        found = qr(matmul(A.mH, found))[0]
        found = qr(matmul(A, found))[0]
    return found


@public("torch")
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """``U, S, V`` with ``A - M`` close to ``U diag(S) V^H``, with min(q, m, n) columns.

    For (..., m, n) matrices of rank q it is exact but for rounding; otherwise it is better the
    faster singular values fall and the more iterations, `niter`, there are. `M` broadcasts; 0 by
    default. It draws random numbers.
    """
    A = A if M is None else A - M
    rows, columns = A.shape[-2:]
    transposed = rows < columns
    if transposed:
        A = A.mH
    q = min(6 if q is None else q, rows, columns)  # more would be of no use, and not independent
    basis = _range_of(A, q, 2 if niter is None else niter)
    u, s, vh = svd(matmul(basis.mH, A), False)
    left, right = matmul(basis, u), vh.mH
    return (right, s, left) if transposed else (left, s, right)


@public("torch")
def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """`svd_lowrank` of (..., m, n) matrices whose columns have mean 0 after centering.

    The columns of V are the principal directions of the m rows, ``S**2 / (m - 1)`` the variances
    along them. `q` is min(6, m, n) by default. ValueError for a `q` that is negative or larger
    than min(m, n), and for a negative `niter`.
    """
    rows, columns = A.shape[-2:]
    least = min(rows, columns)
    q = min(6, least) if q is None else q
    if not 0 <= q <= least:
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={least}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)

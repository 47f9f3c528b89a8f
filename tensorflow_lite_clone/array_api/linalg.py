"""The standard's linear algebra extension, ``F.linalg``."""

from __future__ import annotations

from typing import Any, Literal

from tensorflow_lite_clone.array_api._promotion import promoted_pair
from tensorflow_lite_clone.array_api.matmul import matmul, tensordot, vecdot
from tensorflow_lite_clone.array_api.shape import matrix_transpose
from tensorflow_lite_clone.core.dtypes import DType, uint64
from tensorflow_lite_clone.ops.linalg import cholesky as _cholesky
from tensorflow_lite_clone.ops.linalg import determinants, eigen, norms, products
from tensorflow_lite_clone.ops.linalg import log_determinant as _log_determinant
from tensorflow_lite_clone.ops.linalg import matmul as _matmul
from tensorflow_lite_clone.ops.linalg import qr as _qr
from tensorflow_lite_clone.ops.linalg import solve as _solve
from tensorflow_lite_clone.ops.linalg import svd as _svd
from tensorflow_lite_clone.ops.shape import slices
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The lower (or upper) Cholesky factors of (..., n, n) matrices."""
    return _cholesky.linalg_cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The vector products of vectors of three elements along `axis`, which is negative.

    Other axes broadcast. Raises ValueError where an axis has another size.
    """
    for x in (x1, x2):
        if x.ndim < -axis or x.shape[axis] != 3:
            raise ValueError(f"cross: axis {axis} of shape {tuple(x.shape)} must have size three")
    x1, x2 = promoted_pair(x1, x2)
    ndim = max(x1.ndim, x2.ndim)
    x1, x2 = [x.reshape((1,) * (ndim - x.ndim) + tuple(x.shape)) for x in (x1, x2)]
    return products.linalg_cross(x1, x2, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinants of (..., n, n) matrices."""
    return determinants.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Views of the diagonals of (..., n, m) matrices."""
    return slices.diagonal(x, offset, -2, -1)


def eig(x: Tensor, /) -> Any:
    """The complex eigenvalues and eigenvectors of (..., n, n) matrices."""
    return eigen.eig(x)


def eigh(x: Tensor, /) -> Any:
    """The eigenvalues and eigenvectors of Hermitian (..., n, n) matrices."""
    return eigen.eigh(x)


def eigvals(x: Tensor, /) -> Tensor:
    """The complex eigenvalues of (..., n, n) matrices."""
    return eigen.eigvals(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of Hermitian (..., n, n) matrices."""
    return eigen.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverses of (..., n, n) matrices."""
    return determinants.inv(x)


def matrix_norm(
    x: Tensor, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro"
) -> Tensor:
    """The norms of (..., n, m) matrices; None is Frobenius' one."""
    return norms.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The n-th powers of (..., m, m) matrices."""
    return determinants.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The ranks of (..., n, m) matrices."""
    return _svd.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of all elements of two vectors with each other."""
    return _matmul.outer(*promoted_pair(x1, x2))


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The pseudoinverses of (..., n, m) matrices."""
    return _svd.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> Any:
    """The QR decompositions of (..., n, m) matrices."""
    return _qr.qr(x, mode)


def slogdet(x: Tensor, /) -> Any:
    """The signs and the logarithms of the absolute values of determinants."""
    return _log_determinant.linalg_slogdet(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x with ``x1 @ x == x2``; only an `x2` of one dimension is a vector."""
    x1, x2 = promoted_pair(x1, x2)
    if 1 < x2.ndim < x1.ndim:
        x2 = x2.reshape((1,) * (x1.ndim - x2.ndim) + tuple(x2.shape))
    return _solve.linalg_solve(x1, x2)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """The singular value decompositions of (..., n, m) matrices."""
    return _svd.svd(x, full_matrices)


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of (..., n, m) matrices."""
    return _svd.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """The sums of the diagonals of (..., n, m) matrices; of integers in 64 bits."""
    if dtype is None and x.dtype.kind == "u":
        dtype = uint64
    return diagonal(x, offset=offset).sum(-1, dtype=dtype)


def vector_norm(
    x: Tensor,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Tensor:
    """The norms of the vectors along `axis`."""
    return norms.vector_norm(x, ord, axis, keepdims)

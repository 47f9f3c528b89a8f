"""Least squares: the solutions of systems with more, or fewer, equations than unknowns."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.errors import LinAlgError
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import broadcast_shapes
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import column_major
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops._samples import holds
from tensorflow_lite_clone.ops.linalg._matrices import adjoint, failure
from tensorflow_lite_clone.ops.linalg._spectral import decomposed, diagonal
from tensorflow_lite_clone.ops.reduce._arguments import delivered
from tensorflow_lite_clone.tensor import Tensor

_Lstsq = result_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")
_EPSILON = {4: 2.0**-23, 8: 2.0**-52}  # by the bytes of a real number


class LeastSquares(Op):
    """X = A⁺ B, the rank of A, and its singular values.

    Singular values up to `rcond` times the largest count as zero. Without `rcond` A is taken for
    a matrix of full rank: instead of its rank there is the place, from 1, of the first number on
    the diagonal of R in A = Q R that is zero or not finite, or 0, and no singular values.

    The gradients are written with the op itself, because A⁻ᴴ's part is played by (A⁺)ᴴ = (Aᴴ)⁺
    (Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
    problems" (1973)): gB = (Aᴴ)⁺ gX,
    gA = -gB Xᴴ + (B - A X) (A⁺ gB)ᴴ + ((Aᴴ)⁺ X) (gX - Aᴴ gB)ᴴ.
    """

    layout = column_major
    label = "LinalgLstsq"
    nondifferentiable = (1, 2)

    def forward(F, a, b, *, rcond):
        m, n = a.shape[-2:]
        if not m or not n:
            real = F.real(a) if a.dtype.kind == "c" else a
            x = F.matmul(F.zeros((*a.shape[:-2], n, m), dtype=a.dtype), b)
            rank = F.zeros(a.shape[:-2], dtype=F.int64)
            return x, rank, F.zeros((*a.shape[:-2], 0), dtype=real.dtype)
        if rcond is None:
            return _of_full_rank(F, a, b)
        u, s, vh = F.linalg.svd(a, full_matrices=False)
        kept = s > rcond * s[..., :1]
        inverse = F.where(kept, 1 / F.where(kept, s, 1), 0)
        x = F.matmul(adjoint(F, vh), inverse[..., None] * F.matmul(adjoint(F, u), b))
        return x, F.sum(kept, axis=-1, dtype=F.int64), s

    def backward(F, g, a, b, out0, *, rcond, needs):
        adjoint_a = adjoint(F, a)
        gb = F.least_squares(adjoint_a, g, rcond=rcond)[0]
        if not needs[0]:
            return None, gb
        inner = F.least_squares(a, gb, rcond=rcond)[0]
        outer = F.least_squares(adjoint_a, out0, rcond=rcond)[0]
        ga = F.matmul(b - F.matmul(a, out0), adjoint(F, inner))
        ga = ga + F.matmul(outer, adjoint(F, g - F.matmul(adjoint_a, gb)))
        return ga - F.matmul(gb, adjoint(F, out0)), gb


def _of_full_rank(F: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """X = R⁻¹ Qᴴ B where A = Q R, or Q R⁻ᴴ B where Aᴴ = Q R; 0, as LAPACK's, where A is 0."""
    tall = a.shape[-2] >= a.shape[-1]
    q, r = F.linalg.qr(a if tall else adjoint(F, a), mode="reduced")
    if tall:
        x = F.solve_triangular(r, F.matmul(adjoint(F, q), b), upper=True, unitriangular=False)
    else:
        half = F.solve_triangular(adjoint(F, r), b, upper=False, unitriangular=False)
        x = F.matmul(q, half)
    some = F.any(a != 0, axis=(-2, -1))
    pivots = diagonal(F, r)
    singular = ((pivots == 0) | ~F.isfinite(pivots)) & some[..., None]
    first = F.argmax(F.astype(singular, F.int64), axis=-1) + 1
    place = F.where(F.any(singular, axis=-1), first, 0)
    real = F.real(r) if r.dtype.kind == "c" else r
    return F.where(some[..., None, None], x, 0), place, real[..., 0, :0]


@public("linalg", names=("lstsq",))
def linalg_lstsq(
    input: Tensor,
    b: Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
    out: Any = None,
) -> Any:
    """The X of least norm among those with the least ``norm(A X - B)``.

    A is `input` (..., m, n), B is `b` (..., m, k), or (..., m) with one dimension less. Returns
    (solution, residuals, rank, singular_values): X (..., n, k) or (..., n); the squared norms of
    the columns of A X - B, if m > n and all ranks are n; int64 ranks; singular values. `driver` is
    the LAPACK routine whose answers are given: ``gelsy`` (default) has neither residuals nor
    singular values, ``gels`` takes A for a matrix of full rank (LinAlgError where elimination
    finds a zero) and gives residuals alone, ``gelsd`` and ``gelss`` give all. What is not given
    is empty. Singular values up to `rcond` (by default the dtype's epsilon times max(m, n)) times
    the largest count as zero.
    """
    driver = "gelsy" if driver is None else driver
    vector = _check(input, b, driver)
    m, n = input.shape[-2:]
    columns = b.unsqueeze(-1) if vector else b
    if columns.shape[-2] != m:
        raise RuntimeError("torch.linalg.lstsq: input.size(-2) should match other.size(-2)")
    broadcast_shapes(input.shape[:-2], columns.shape[:-2])
    epsilon = _EPSILON[input.dtype.itemsize // (2 if input.dtype.is_complex else 1)]
    if driver == "gels":
        rcond = None
    elif rcond is None:
        rcond = epsilon * max(m, n)
    elif rcond < 0:  # LAPACK's documentation of gelsd and gelss
        rcond = 0.0 if driver == "gelsy" else epsilon
    message = "linalg.lstsq: The matrices contain infinities or NaN."
    rcond = None if rcond is None else float(rcond)
    solution, rank, values = decomposed(message, LeastSquares, input, columns, rcond=rcond)
    failed = failure(rank) if driver == "gels" else None
    if failed:
        raise LinAlgError(
            f"torch.linalg.lstsq: {failed[0]}The least squares solution could not be computed "
            f"because the input matrix does not have full rank (error code: {failed[1]})."
        )
    residuals = solution.flatten()[:0]  # in the graph, as PyTorch's
    residuals = residuals.real if residuals.is_complex() else residuals
    if driver != "gelsy" and m > n and (driver == "gels" or holds(rank == n)):
        error = input @ solution - columns
        squares = (error * error.conj()).real if error.is_complex() else error * error
        residuals = squares.sum(-2)
    if driver in ("gels", "gelsy"):
        values = values.new_empty(0)
    if driver == "gels":
        rank = rank.new_empty(0)
    solution = solution.squeeze(-1) if vector else solution
    return delivered("linalg_lstsq", _Lstsq((solution, residuals, rank, values)), out)


def _check(a: Tensor, b: Tensor, driver: str) -> bool:
    """Raise torch's errors; returns whether B is a batch of vectors."""
    name = "torch.linalg.lstsq"
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if not 0 <= a.ndim - b.ndim <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - "
            "other.dim()) <= 1"
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype "
            f"{a.dtype.short_name} and other's dtype {b.dtype.short_name}"
        )
    if driver not in _DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of ({', '.join(_DRIVERS)})")
    if a.dtype.kind not in "fc" or a.dtype.itemsize < 4:
        raise RuntimeError("This function doesn't handle types other than float and double")
    return a.ndim == b.ndim + 1

"""LU factorizations with partial pivoting, and what is solved with them."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import int32
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import broadcast_shapes
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import column_major
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops.create.constructors import eye
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.decorators.autocast import autocasts
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.linalg._matrices import (
    adjoint,
    expect_equation,
    expect_matrices,
    expect_wide,
    failure,
)
from tensorflow_lite_clone.ops.linalg.solve_triangular import solved
from tensorflow_lite_clone.ops.reduce._arguments import delivered
from tensorflow_lite_clone.tensor import Tensor

_LuFactor = result_type("linalg_lu_factor", "LU", "pivots")
_LuFactorEx = result_type("linalg_lu_factor_ex", "LU", "pivots", "info")
_Lu = result_type("linalg_lu", "P", "L", "U")
_LuUnpack = result_type("lu_unpack", "P", "L", "U")
_LuWithInfo = result_type("_lu_with_info", "LU", "pivots", "info")


class LuFactor(Op):
    """A = P L U as L (without its ones) and U in one array, pivots counted from 1, and info."""

    primitive = "lu_factor"
    layout = column_major
    label = "LinalgLuFactorEx"
    nondifferentiable = (1, 2)

    def forward(F, x):
        return F.lu_factor(x)

    def backward_x(F, g, out0, out1):
        """From dL = L tril(M, -1), dU = triu(M) U, M = L⁻¹ Pᵀ dA U⁻¹ for square matrices.

        (de Hoog, Anderssen, Lukas, "Differentiation of matrix functionals using triangular
        factorization" (2011).) What a matrix has beyond its leading square is L times columns, or
        rows times U.
        """
        m, n = out0.shape[-2:]
        k = min(m, n)
        square, gl, gu = out0[..., :k, :k], F.tril(g, k=-1), F.triu(g)
        transposed = adjoint(F, square)  # Lᴴ above its diagonal, Uᴴ up to it
        one = F.eye(k, dtype=g.dtype)
        inner_l = F.matmul(F.triu(transposed, k=1) + one, gl[..., :k, :k])
        inner_u = F.matmul(gu[..., :k, :k], F.tril(transposed))
        if n > k:
            inner_l = inner_l - F.matmul(gu[..., k:], adjoint(F, out0[..., k:]))
        if m > k:
            inner_u = inner_u - F.matmul(adjoint(F, out0[..., k:, :]), gl[..., k:, :])
        inner = F.tril(inner_l, k=-1) + F.triu(inner_u)
        columns = [_over_upper(F, square, inner)]
        if n > k:
            columns.append(gu[..., k:])
        gx = F.solve_triangular(
            transposed, F.concat(columns, axis=-1), upper=True, unitriangular=True
        )
        if m > k:
            gx = F.concat([gx, _over_upper(F, square, gl[..., k:, :])], axis=-2)
        order = F.argsort(F.lu_permutation(out1, size=m), axis=-1)[..., None]
        return F.take_along_axis(gx, F.broadcast_to(order, gx.shape), axis=-2)


def _over_upper(F: Any, square: Any, x: Any) -> Any:
    """x U⁻ᴴ."""
    y = F.solve_triangular(square, adjoint(F, x), upper=True, unitriangular=False)
    return adjoint(F, y)


class LuPermutation(Op):
    """The row of A that each row of L U is, for A = P L U."""

    primitive = "lu_permutation"

    def forward(F, pivots, *, size):
        return F.lu_permutation(pivots, size=size)


def _factored(A: Tensor, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    if A.ndim < 2:
        raise RuntimeError(
            f"torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: "
            f"{list(A.shape)} instead"
        )
    expect_wide("lu_cpu", A)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    return apply(LuFactor, A)


def _expect_regular(name: str, info: Tensor) -> None:
    failed = failure(info)
    if failed:
        which, place = failed
        raise RuntimeError(
            f"torch.linalg.{name}: {which}U[{place},{place}] is zero and using it on lu_solve "
            "would result in a division by zero. If you still want to perform the factorization, "
            "consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        )


@public("linalg")
def lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None
) -> Any:
    """`lu_factor` as (LU, pivots, info), which does not raise for zeros on U's diagonal.

    info (int32, one per matrix) is 0, or the place, from 1, of the first zero.
    """
    result = _factored(A, pivot)
    if check_errors:
        _expect_regular("lu_factor_ex", result[2])
    return delivered("linalg_lu_factor_ex", _LuFactorEx(result), out)


@public("linalg")
def lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """A = P L U for (..., m, n) matrices as (LU, pivots).

    LU (..., m, n) is U with L, but its diagonal of ones, below. pivots (..., min(m, n)), int32,
    says with which row, from 1, each row was interchanged. RuntimeError for a zero on U's
    diagonal, and for ``pivot=False``, which the CPU lacks.
    """
    LU, pivots, info = _factored(A, pivot)
    _expect_regular("lu_factor", info)
    return delivered("linalg_lu_factor", _LuFactor((LU, pivots)), out)


@public("linalg", names=("lu",))
def linalg_lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """A = P L U as (P, L, U): a permutation (..., m, m), L (..., m, k) and U (..., k, n)."""
    LU, pivots, _ = _factored(A, pivot)
    return delivered("linalg_lu", _Lu(_unpacked(LU, pivots)), out)


@public("torch", "method", names=("lu",))
@autocasts("_lu_with_info")
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """As `linalg.lu_factor_ex`, under its older name; without info unless `get_infos`."""
    result = _factored(A, pivot)
    if not get_infos:
        return delivered("lu", result[:2], out)
    return delivered("lu", _LuWithInfo(result), out)


@public("torch")
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    out: Any = None,
) -> Any:
    """(P, L, U) of what `linalg.lu_factor` gave; what is not asked for is empty."""
    if LU_data.ndim < 2:
        raise RuntimeError(
            "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: "
            f"{list(LU_data.shape)} instead"
        )
    if unpack_pivots and LU_pivots.dtype is not int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 "
            "dtype.\nNote: this function is intended to be used with the output produced by "
            "torch.linalg.lu_factor"
        )
    P, L, U = _unpacked(LU_data, LU_pivots, unpack_data, unpack_pivots)
    return delivered("lu_unpack", _LuUnpack((P, L, U)), out)


def _unpacked(
    LU: Tensor, pivots: Tensor, data: bool = True, permutation: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    m, n = LU.shape[-2:]
    k = min(m, n)
    P = L = U = LU.new_empty(0)
    if data:
        L = LU[..., :k].tril(-1) + eye(m, k, dtype=LU.dtype, device=LU.device)
        U = LU[..., :k, :].triu()
    if permutation:
        message = (
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
            "Did you properly pass the result of lu_factor?"
        )
        rows = _permutation(pivots, m, message)
        P = (rows.unsqueeze(-2) == arange(m, device=LU.device).unsqueeze(-1)).to(LU.dtype)
    return P, L, U


def _permutation(pivots: Tensor, size: int, message: str) -> Tensor:
    backend = pivots._storage.backend
    backend.F.check_range(pivots._storage.array, 1, size, message)
    return apply(LuPermutation, pivots, size=size)


@public("linalg", names=("lu_solve",))
@with_out
def linalg_lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """X with A X = B for B (..., n, k) and what `lu_factor` gave for A (..., n, n).

    X A = B if not `left`; with `adjoint` A's conjugate transpose stands in its place. Leading
    dimensions of A and B broadcast.
    """
    return _solved(LU, pivots, B, left, adjoint)


@public("torch", "method")
@with_out
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """As ``linalg.lu_solve(LU_data, LU_pivots, input)``, under its older name."""
    return _solved(LU_data, LU_pivots, input, True, False)


def _solved(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Tensor:
    name = "linalg.lu_solve"
    expect_matrices(f"torch.{name}", LU)
    expect_matrices(name, B, "B")
    m, n = LU.shape[-2:]
    if m != n:
        raise RuntimeError(
            f"torch.{name}: A must be batches of square matrices, but they are {m} by {n} matrices"
        )
    if LU.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected LU and B to have the same dtype, but found LU of type "
            f"{LU.dtype.short_name} and B of type {B.dtype.short_name} instead"
        )
    if pivots.dtype is not int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    expect_equation(name, LU, B, left)
    if pivots.shape[-1:] != (n,):
        raise RuntimeError(
            f"{name}: Number of pivots per batch should be same as the dimension of the matrix"
        )
    if LU.shape[:-1] != pivots.shape:
        raise RuntimeError(
            f"{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with "
            f"shape {list(pivots.shape)} instead"
        )
    batch = broadcast_shapes(LU.shape[:-2], B.shape[:-2])
    expect_wide("linalg.lu_solve_cpu", LU)
    message = (
        "Pivots given to lu_solve must all be greater or equal to 1 and smaller or equal to "
        "LU.size(-2). Did you properly pass the result of lu_factor?"
    )
    order = _permutation(pivots, n, message)
    if not left:  # X A = B as Aᴴ Xᴴ = Bᴴ
        return _substituted(LU, order, B.mH, not adjoint, batch).mH
    return _substituted(LU, order, B, adjoint, batch)


def _substituted(LU: Tensor, order: Tensor, B: Tensor, adjoint: bool, batch: Any) -> Tensor:
    """A⁻¹ B = U⁻¹ L⁻¹ Pᵀ B, or A⁻ᴴ B = P L⁻ᴴ U⁻ᴴ B."""
    shape = (*batch, *B.shape[-2:])
    if adjoint:
        half = solved(LU.mH, B, upper=False)
        half = solved(LU.mH, half, upper=True, unitriangular=True)
        return half.gather(-2, order.argsort(-1).unsqueeze(-1).expand(shape))
    rows = B.expand(shape).gather(-2, order.unsqueeze(-1).expand(shape))
    return solved(LU, solved(LU, rows, upper=False, unitriangular=True), upper=True)

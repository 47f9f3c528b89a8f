"""LDL factorizations of symmetric matrices, and what is solved with them."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import broadcast_shapes
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import column_major
from tensorflow_lite_clone.ops._formulas import no_gradient
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.linalg._matrices import (
    expect_alike,
    expect_floats,
    expect_square,
    expect_wide,
    failure,
)
from tensorflow_lite_clone.ops.reduce._arguments import delivered
from tensorflow_lite_clone.tensor import Tensor

_LdlFactor = result_type("linalg_ldl_factor", "LD", "pivots")
_LdlFactorEx = result_type("linalg_ldl_factor_ex", "LD", "pivots", "info")


class LdlFactor(Op):
    """A = P L D Lᵀ Pᵀ, with D of blocks of order 1 and 2, as LAPACK's sytrf stores it.

    The pivoting is Bunch and Kaufman's (Golub and Van Loan, Matrix Computations (4th ed.),
    section 4.4).
    """

    primitive = "ldl_factor"
    layout = column_major
    nondifferentiable = (1, 2)

    def forward(F, x, *, hermitian):
        return F.ldl_factor(x, hermitian=hermitian)

    def backward_x(F, g, *, hermitian):
        return no_gradient("linalg_ldl_factor_ex")(F, g)


class LdlSolve(Op):
    """X with A X = B for what LdlFactor gave for A."""

    primitive = "ldl_solve"
    layout = column_major

    def forward(F, ld, pivots, b, *, hermitian):
        return F.ldl_solve(ld, pivots, b, hermitian=hermitian)

    def backward_ld(F, g, *, hermitian):
        return no_gradient("linalg_ldl_solve")(F, g)

    def backward_b(F, g, *, hermitian):
        return no_gradient("linalg_ldl_solve")(F, g)


def _factored(x: Tensor, hermitian: bool) -> tuple[Tensor, Tensor, Tensor]:
    name = "torch.linalg.ldl_factor_ex"
    expect_square(name, x)
    expect_floats(name, x)
    expect_wide("ldl_factor_kernel_cpu", x)
    return apply(LdlFactor, x, hermitian=hermitian)


def _expect_regular(name: str, info: Tensor) -> None:
    failed = failure(info)
    if failed:
        which, place = failed
        raise RuntimeError(f"torch.linalg.{name}: {which}D[{place},{place}] is zero")


@public("linalg")
def ldl_factor_ex(
    input: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Any = None
) -> Any:
    """`ldl_factor` as (LD, pivots, info), which does not raise for zeros in D.

    info (int32, one per matrix) is 0, or the place, from 1, of the first zero in D.
    """
    result = _factored(input, hermitian)
    if check_errors:
        _expect_regular("ldl_factor_ex", result[2])
    return delivered("linalg_ldl_factor_ex", _LdlFactorEx(result), out)


@public("linalg")
def ldl_factor(input: Tensor, *, hermitian: bool = False, out: Any = None) -> Any:
    """A = P L D Lᵀ Pᵀ for symmetric (..., n, n) matrices as (LD, pivots); Lᴴ if `hermitian`.

    Only the lower triangle is read. LD holds L, but its diagonal of ones, and the blocks of D.
    pivots (..., n), int32, are LAPACK's: p at k means that rows k and p, from 1, were
    interchanged; -p at k and k + 1 that D has a block of order 2 there, and that k + 1 and p
    were. There is no gradient. RuntimeError for a zero in D.
    """
    LD, pivots, info = _factored(input, hermitian)
    _expect_regular("ldl_factor", info)
    return delivered("linalg_ldl_factor", _LdlFactor((LD, pivots)), out)


@public("linalg")
@with_out
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X with A X = B for B (..., n, k) and what `ldl_factor` gave for A (..., n, n).

    Leading dimensions of A and B broadcast. There is no gradient.
    """
    name = "torch.linalg.ldl_solve"
    expect_square(name, LD)
    if B.ndim < 2:
        raise IndexError(f"{name}: B must have at least 2 dimensions, but it has {B.ndim}")
    if LD.shape[:-1] != pivots.shape:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with "
            f"shape {list(pivots.shape)} instead"
        )
    if pivots.dtype.kind not in "iu":
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {pivots.dtype.short_name}")
    expect_alike("ldl_solve", B, LD)
    broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    expect_wide("ldl_solve_kernel_cpu", LD)
    return apply(LdlSolve, LD, pivots, B, hermitian=hermitian)

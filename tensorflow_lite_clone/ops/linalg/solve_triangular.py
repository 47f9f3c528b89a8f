"""Triangular systems of equations."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import broadcast_shapes
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import column_major
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.linalg._matrices import (
    adjoint,
    expect_alike,
    expect_equation,
    expect_matrices,
    expect_square,
    expect_wide,
)
from tensorflow_lite_clone.ops.reduce._arguments import delivered
from tensorflow_lite_clone.tensor import Tensor

_TriangularSolve = result_type("triangular_solve", "solution", "cloned_coefficient")


class SolveTriangular(Op):
    """X with A X = B, where A is the upper or lower triangle of `a`, or that with ones in it.

    The gradients (Giles, "Collected matrix derivative results" (2008), section 2.3.1):
    gB = A⁻ᴴ gX, gA = -gB Xᴴ within the triangle.
    """

    primitive = "solve_triangular"
    layout = column_major
    label = "LinalgSolveTriangular"

    def forward(F, a, b, *, upper, unitriangular):
        return F.solve_triangular(a, b, upper=upper, unitriangular=unitriangular)

    def backward_a(F, g, a, out, *, upper, unitriangular):
        gb = _transposed(F, a, g, upper, unitriangular)
        return _triangle(F, -F.matmul(gb, adjoint(F, out)), upper, unitriangular)

    def backward_b(F, g, a, *, upper, unitriangular):
        return _transposed(F, a, g, upper, unitriangular)

    def backward_a_and_b(F, g, a, out, *, upper, unitriangular):
        gb = _transposed(F, a, g, upper, unitriangular)
        return _triangle(F, -F.matmul(gb, adjoint(F, out)), upper, unitriangular), gb


def _transposed(F: Any, a: Any, g: Any, upper: bool, unitriangular: bool) -> Any:
    return F.solve_triangular(adjoint(F, a), g, upper=not upper, unitriangular=unitriangular)


def _triangle(F: Any, x: Any, upper: bool, strict: bool) -> Any:
    return F.triu(x, k=int(strict)) if upper else F.tril(x, k=-int(strict))


def solved(
    a: Tensor, b: Tensor, *, upper: bool, unitriangular: bool = False, left: bool = True
) -> Tensor:
    """`linalg.solve_triangular` of checked arguments."""
    if left:
        return apply(SolveTriangular, a, b, upper=upper, unitriangular=unitriangular)
    flipped = {"upper": not upper, "unitriangular": unitriangular}
    return apply(SolveTriangular, a.mT, b.mT, **flipped).mT


@public("linalg")
@with_out
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """X with A X = B for triangular A (..., n, n) and B (..., n, k); X A = B if not `left`.

    Only the triangle that `upper` names is read, and no diagonal but ones if `unitriangular`.
    Leading dimensions broadcast. A zero on the diagonal gives infinities or NaN, no error.
    """
    name = "linalg.solve_triangular"
    expect_matrices(name, A)
    expect_matrices(name, B, "B")
    expect_square(name, A)
    expect_equation(name, A, B, left)
    broadcast_shapes(A.shape[:-2], B.shape[:-2])
    expect_wide("triangular_solve_cpu", A)
    if A.dtype is not B.dtype and not (A.numel() and B.numel()):
        B = B.to(A.dtype)  # as in PyTorch, which looks at the dtypes of what it solves
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type "
            f"{A.dtype.short_name} and B of type {B.dtype.short_name} instead"
        )
    return solved(A, B, upper=upper, unitriangular=unitriangular, left=left)


@public("torch", "method")
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Any = None,
) -> Any:
    """(solution, cloned_coefficient): X with A X = B for B `input`, and A; an older name.

    As ``linalg.solve_triangular(A, input)``; with `transpose` for the triangle's transpose.
    """
    name = "triangular_solve"
    for letter, x in (("b", input), ("A", A)):
        if x.ndim < 2:
            raise RuntimeError(
                f"torch.{name}: Expected {letter} to have at least 2 dimensions, but it has "
                f"{x.ndim} dimensions instead"
            )
    expect_alike(name, input, A)
    batch = broadcast_shapes(A.shape[:-2], input.shape[:-2])
    expect_wide("triangular_solve_cpu", A)
    triangle, side = (A.mT, not upper) if transpose else (A, upper)
    solution = solved(triangle, input, upper=side, unitriangular=unitriangular)
    clone = A.expand(*batch, *A.shape[-2:]).clone()
    if input.requires_grad:  # as in PyTorch the clone requires gradients with `input`, too: zeros
        clone = clone + input[..., :0].sum()
    return delivered(name, _TriangularSolve((solution, clone)), out)

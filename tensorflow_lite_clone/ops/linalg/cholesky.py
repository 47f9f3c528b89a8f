"""Cholesky's factorization of positive definite matrices, and what is solved with it."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, wrap
from tensorflow_lite_clone.core.errors import LinAlgError
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import broadcast_shapes
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import column_major
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops._samples import of_all_samples
from tensorflow_lite_clone.ops.create.constructors import eye
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.linalg._matrices import (
    adjoint,
    expect_alike,
    expect_floats,
    expect_matrices,
    expect_square,
    expect_wide,
    failure,
)
from tensorflow_lite_clone.ops.linalg.solve_triangular import solved
from tensorflow_lite_clone.ops.reduce._arguments import delivered
from tensorflow_lite_clone.tensor import Tensor

_CholeskyEx = result_type("linalg_cholesky_ex", "L", "info")


class Cholesky(Op):
    """A = L Lᴴ with L lower triangular, of the lower triangle of A; and info.

    With `upper` Lᴴ, of the upper triangle.
    """

    layout = column_major
    label = "LinalgCholeskyEx"
    nondifferentiable = (1,)

    def forward(F, x, *, upper):
        if not upper:
            return F.cholesky(x)
        factor, info = F.cholesky(adjoint(F, x))
        return adjoint(F, factor), info

    def backward_x(F, g, out0, *, upper):
        """Murray, "Differentiation of the Cholesky decomposition" (2016).

        Symmetrized, since A moves as a symmetric matrix only.
        """
        conjugated, g = (out0, adjoint(F, g)) if upper else (adjoint(F, out0), g)
        inner = F.matmul(conjugated, g)
        inner = 0.5 * (F.tril(inner) + adjoint(F, F.tril(inner, k=-1)))
        half = F.solve_triangular(conjugated, inner, upper=True, unitriangular=False)
        half = F.solve_triangular(conjugated, adjoint(F, half), upper=True, unitriangular=False)
        return adjoint(F, half)


def _expect_definite(name: str, info: Tensor) -> None:
    failed = failure(info)
    if failed:
        which, order = failed
        raise LinAlgError(
            f"{name}: {which}The factorization could not be completed because the input is not "
            f"positive-definite (the leading minor of order {order} is not positive-definite)."
        )


def _linalg_factored(name: str, x: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
    expect_square("linalg.cholesky", x)
    expect_floats("linalg.cholesky", x)
    expect_wide("cholesky_cpu", x)
    return apply(Cholesky, x, upper=upper)


@public("linalg")
def cholesky_ex(
    input: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None
) -> Any:
    """`linalg.cholesky` as (L, info), which does not raise for matrices that have no factor.

    info (int32, one per matrix) is 0, or the order of the leading minor that is not positive
    definite; what L holds then is not specified. With `check_errors` LinAlgError is raised.
    """
    result = _linalg_factored("cholesky_ex", input, upper)
    if check_errors:
        _expect_definite("linalg.cholesky_ex", result[1])
    return delivered("linalg_cholesky_ex", _CholeskyEx(result), out)


@public("linalg", names=("cholesky",))
def linalg_cholesky(input: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """The lower triangular L with A = L Lᴴ, for positive definite (..., n, n) matrices.

    Only the lower triangle of A is read. With `upper` the result is Lᴴ, of the upper triangle.
    LinAlgError when a matrix is not positive definite.
    """
    factor, info = _linalg_factored("cholesky", input, upper)
    _expect_definite("linalg.cholesky", info)
    return delivered("linalg_cholesky", factor, out)


@public("torch", "method")
@with_out
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """As `linalg.cholesky`, under its older name."""
    expect_square("cholesky", input)
    expect_wide("cholesky_cpu", input)
    factor, info = apply(Cholesky, input, upper=upper)
    _expect_definite("cholesky", info)
    return factor


@public("torch", "method")
@with_out
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """X with A X = B, for B `input` (..., n, k) and A = L Lᴴ, L `input2` (..., n, n).

    With `upper`, A = Uᴴ U. Only that triangle is read; leading dimensions broadcast.
    """
    for letter, x in (("b", input), ("u", input2)):
        if x.ndim < 2:
            raise RuntimeError(
                f"{letter} should have at least 2 dimensions, but has {x.ndim} dimensions instead"
            )
    expect_alike("cholesky_solve", input, input2)
    broadcast_shapes(input.shape[:-2], input2.shape[:-2])
    expect_wide("cholesky_solve_cpu", input)
    return _solved(input, input2, upper)


def _solved(b: Tensor, factor: Tensor, upper: bool) -> Tensor:
    if upper:
        return solved(factor, solved(factor.mH, b, upper=False), upper=True)
    return solved(factor.mH, solved(factor, b, upper=False), upper=True)


@public("torch", "method")
@with_out
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A = L Lᴴ for L `input` (..., n, n); of Uᴴ U with `upper`.

    LinAlgError when a diagonal element is zero.
    """
    expect_matrices("cholesky_inverse", input)
    expect_square("cholesky_inverse", input)
    expect_wide("cholesky_inverse_out_cpu", input)
    where, backend = of_all_samples(input.detach().diagonal(0, -2, -1) == 0)
    zeros = wrap(where, backend).nonzero().tolist() if backend.has_values else []
    if zeros:
        *batch, place = zeros[0]
        number = 0
        for index, size in zip(batch, where.shape):
            number = number * size + index
        which = f"(Batch element {number}): " if batch else ""
        raise LinAlgError(
            f"cholesky_inverse: {which}The diagonal element {place + 1} is zero, the inversion "
            "could not be completed because the input matrix is singular."
        )
    return _solved(eye(input.shape[-1], dtype=input.dtype, device=input.device), input, upper)

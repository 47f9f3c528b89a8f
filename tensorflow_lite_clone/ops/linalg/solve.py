"""Systems of linear equations with one solution."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.errors import LinAlgError
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import broadcast_shapes, normalize_dim
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import column_major
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.linalg._matrices import (
    adjoint,
    expect_equation,
    expect_floats,
    expect_matrices,
    expect_square,
    expect_wide,
    failure,
    removed,
)
from tensorflow_lite_clone.ops.linalg.determinants import inv
from tensorflow_lite_clone.ops.reduce._arguments import delivered
from tensorflow_lite_clone.tensor import Tensor

_SolveEx = result_type("linalg_solve_ex", "result", "info")


class Solve(Op):
    """X with A X = B, and info: 0, or the place of the first zero pivot.

    The gradients (Giles, "Collected matrix derivative results" (2008), section 2.3.1):
    gB = A⁻ᴴ gX, gA = -gB Xᴴ.
    """

    primitive = "solve"
    layout = column_major
    label = "LinalgSolveEx"
    nondifferentiable = (1,)

    def forward(F, a, b):
        return F.solve(a, b)

    def backward_a(F, g, a, out0):
        return -F.matmul(F.solve(adjoint(F, a), g)[0], adjoint(F, out0))

    def backward_b(F, g, a):
        return F.solve(adjoint(F, a), g)[0]

    def backward_a_and_b(F, g, a, out0):
        gb = F.solve(adjoint(F, a), g)[0]
        return -F.matmul(gb, adjoint(F, out0)), gb


def _solved(A: Tensor, B: Tensor, left: bool) -> tuple[Tensor, Tensor]:
    name = "linalg.solve"
    expect_floats(name, A)
    expect_square(name, A)
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type "
            f"{A.dtype.short_name} and B of type {B.dtype.short_name} instead"
        )
    vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    columns = B.unsqueeze(-1) if vector else B
    expect_matrices(name, columns, "B")
    expect_equation(name, A, columns, left)
    if vector and not left:
        raise RuntimeError(
            f"{name}: Vector broadcasting of the left hand side is not supported for left=False. "
            "In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    broadcast_shapes(A.shape[:-2], columns.shape[:-2])
    expect_wide("lu_cpu", A)
    if left:
        x, info = apply(Solve, A, columns)
    else:
        x, info = apply(Solve, A.mT, columns.mT)
        x = x.mT
    return (x.squeeze(-1) if vector else x), info


def _expect_regular(name: str, info: Tensor) -> None:
    failed = failure(info)
    if failed:
        raise LinAlgError(
            f"torch.linalg.{name}: {failed[0]}The solver failed because the input matrix is "
            "singular."
        )


@public("linalg")
def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Any = None
) -> Any:
    """`linalg.solve` as (result, info), which does not raise for singular matrices.

    info (int32, one per matrix of A) is 0, or the place, from 1, of the first pivot that is zero.
    With `check_errors` LinAlgError is raised.
    """
    result = _solved(A, B, left)
    if check_errors:
        _expect_regular("solve_ex", result[1])
    return delivered("linalg_solve_ex", _SolveEx(result), out)


@public("linalg", names=("solve",))
def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """X with A X = B for A (..., n, n) and B (..., n, k); X A = B if not `left`.

    B is a batch of vectors when it has one dimension, or the shape of A but for the last
    dimension. Other leading dimensions broadcast. LinAlgError when a matrix is singular.
    """
    result, info = _solved(A, B, left)
    _expect_regular("solve", info)
    return delivered("linalg_solve", result, out)


@public("linalg")
@with_out
def tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """The inverse of `input` as a map from its dimensions from `ind` on to those before.

    Of shape ``input.shape[ind:] + input.shape[:ind]``: ``tensordot(tensorinv(a), a, ind)`` is the
    identity. RuntimeError when both parts do not have equally many elements.
    """
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    if ind > input.ndim:
        raise RuntimeError(f"tensorinv: 'ind' is {ind}, but the input has {input.ndim} dimensions")
    before, after = tuple(input.shape[:ind]), tuple(input.shape[ind:])
    if prod(before) != prod(after):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {prod(after)} != {prod(before)}"
        )
    return inv(input.reshape(prod(after), prod(after))).reshape(after + before)


@public("linalg")
@with_out
def tensorsolve(input: Tensor, other: Tensor, dims: tuple[int, ...] | None = None) -> Tensor:
    """X with ``tensordot(input, X, X.ndim) == other``, after `dims` of `input` were moved last.

    RuntimeError when X has not as many elements as `other`; LinAlgError when the map is singular.
    """
    if other.ndim > input.ndim:
        raise RuntimeError(
            f"tensorsolve: other has {other.ndim} dimensions, which is more than the "
            f"{input.ndim} of the input"
        )
    if dims:
        moved = [normalize_dim(dim, input.ndim) for dim in dims]
        rest = [dim for dim in range(input.ndim) if dim not in moved]
        input = input.permute(*rest, *moved)
    shape = tuple(input.shape[other.ndim :])
    have, want = prod(shape), other.numel()
    if have != want:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {have} != {want}"
        )
    matrix, vector = input.reshape(have, have), other.reshape(-1)
    return linalg_solve(matrix, vector).reshape(shape)


for _name in ("solve", "lstsq"):
    removed(
        _name,
        f"torch.linalg.{_name} takes the matrices in the other order.",
        "torch",
        "method",
    )

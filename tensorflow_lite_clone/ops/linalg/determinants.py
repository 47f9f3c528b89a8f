"""Determinants, inverses and powers of square matrices; their diagonals."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.errors import LinAlgError
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.dispatch.result_layout import column_major
from tensorflow_lite_clone.ops._formulas import conj
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops.create.constructors import eye, ones_like
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.linalg._matrices import (
    adjoint,
    expect_floats,
    expect_square,
    failure,
)
from tensorflow_lite_clone.ops.linalg.matmul import matmul
from tensorflow_lite_clone.ops.reduce._arguments import delivered
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.ops.shape.slices import diagonal
from tensorflow_lite_clone.tensor import Tensor

export(LinAlgError, "linalg", name="LinAlgError")
_InvEx = result_type("linalg_inv_ex", "inverse", "info")


class Det(Op):
    """The determinants of square matrices."""

    primitive = "linalg.det"
    label = "LinalgDet"

    def forward(F, x):
        return F.linalg.det(x)

    def backward_x(F, g, x):
        return g[..., None, None] * conj(F, F.cofactors(x))


class Cofactors(Op):
    """The derivative of each matrix's determinant: ``det(x) inv(x).mT`` where there is an inverse.

    From ``x = u diag(s) v`` it is ``det(u) det(v) conj(u) diag(c) conj(v)``, where each c is the
    product of the other s; so it exists for singular matrices too.
    """

    def forward(F, x):
        n = x.shape[-1]
        if n == 0:
            return F.copy(x)
        finite = F.all(F.isfinite(x), axis=(-2, -1), keepdims=True)
        u, s, v = F.linalg.svd(F.where(finite, x, 0))  # which others do not have
        sign = F.linalg.det(u) * F.linalg.det(v)
        others = F.where(F.eye(n, dtype=F.bool), F.ones((), dtype=s.dtype), s[..., None, :])
        c = F.prod(others, axis=-1) * sign[..., None]
        return F.where(finite, F.matmul(conj(F, u) * c[..., None, :], conj(F, v)), F.nan)

    def backward_x(F, g, x):
        inverse, det = F.linalg.inv(x), F.det(x)[..., None, None]
        g = conj(F, g)
        inner = F.matmul(F.matmul(inverse, g), inverse)
        trace = F.sum(g * F.matrix_transpose(inverse), axis=(-2, -1), keepdims=True)
        return conj(F, det * F.matrix_transpose(trace * inverse - inner))


class Inv(Op):
    """The inverses of square matrices, and info: 0, or the place of the first zero pivot."""

    cost = costs.Cost(costs.inverse_flops)
    layout = column_major
    label = "LinalgInvEx"
    nondifferentiable = (1,)

    def forward(F, x):
        return F.solve(x, F.eye(x.shape[-1], dtype=x.dtype))

    def backward_x(F, g, out0):
        return F.inv_backward(g, out0)


@composite
def inv_backward(F, g, y):
    adjoint_y = adjoint(F, y)
    return -F.matmul(F.matmul(adjoint_y, g), adjoint_y)


@public("torch", "method")
@with_out
def det(input: Tensor) -> Tensor:
    """The determinants of (..., n, n) matrices.

    The gradient is that of the polynomial for singular matrices too.
    """
    expect_square("linalg.det", input)
    expect_floats("linalg.det", input, narrow=False)
    return apply(Det, input)


@public("linalg", names=("det",))
@with_out
def linalg_det(A: Tensor) -> Tensor:
    """The determinants of (..., n, n) matrices, see `torch.det`."""
    return det(A)


@public("linalg", names=("inv",))
@with_out
def linalg_inv(A: Tensor) -> Tensor:
    """The inverses of (..., n, n) matrices, see `torch.inverse`."""
    return inv(A)


@public("torch", "method", names=("inverse",))
@with_out
def inv(input: Tensor) -> Tensor:
    """The inverses of (..., n, n) matrices; raises LinAlgError when one of them is singular."""
    inverse, info = _inverted(input)
    _expect_regular("inv", info)
    return inverse


@public("linalg")
def inv_ex(A: Tensor, *, check_errors: bool = False, out: Any = None) -> Any:
    """`inv` as (inverse, info), which does not raise for singular matrices.

    info (int32, one per matrix) is 0, or the place, from 1, of the first pivot that is zero; the
    inverse then holds infinities. With `check_errors` LinAlgError is raised.
    """
    result = _inverted(A)
    if check_errors:
        _expect_regular("inv_ex", result[1])
    return delivered("linalg_inv_ex", _InvEx(result), out)


def _inverted(A: Tensor) -> tuple[Tensor, Tensor]:
    expect_square("linalg.inv", A)
    expect_floats("linalg.inv", A, narrow=False)
    return apply(Inv, A)


def _expect_regular(name: str, info: Tensor) -> None:
    failed = failure(info)
    if failed:
        which, place = failed
        raise LinAlgError(
            f"linalg.{name}: {which}The diagonal element {place} is zero, the inversion could not "
            "be completed because the input matrix is singular."
        )


@public("torch", "method", "linalg")
@with_out
def matrix_power(input: Tensor, n: int) -> Tensor:
    """The n-th power of (..., m, m) matrices by repeated squaring; of the inverses if n < 0."""
    expect_square("linalg.matrix_power", input)
    if n == 0:
        one = eye(input.shape[-1], dtype=input.dtype, device=input.device)
        return input.clone().copy_(one)
    if n < 0:
        input, n = inv(input), -n
    if n == 1:
        return input.clone()
    result = None
    while n > 1:
        if n & 1:
            result = input if result is None else matmul(result, input)
        input = matmul(input, input)
        n >>= 1
    return input if result is None else matmul(result, input)


@public("linalg", names=("diagonal",))
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Views of the diagonals of (..., m, n) matrices; `offset` > 0 lies above."""
    return diagonal(A, offset, dim1, dim2)


@public("torch")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The (n, N) matrix of powers 0 to N - 1 of n numbers, in falling order by default."""
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    powers = _powers(x, count)
    if x.dtype.kind in "iu":
        powers = powers.long()
    return powers if increasing else powers.flip(-1)


@public("linalg", names=("vander",))
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of (..., n) numbers as (..., n, N); N is n by default."""
    if x.dtype.kind == "b" or (x.dtype.kind == "f" and x.dtype.itemsize == 2):
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got "
            f"{x.dtype.short_name}"
        )
    if not x.ndim:
        x = x.unsqueeze(0)
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    return _powers(x, count)


def _powers(x: Tensor, count: int) -> Tensor:
    if x.dtype.kind == "b":
        x = x.long()
    one = ones_like(x).unsqueeze(-1)
    if count < 2:
        return one[..., :count]
    return cat([one, x.unsqueeze(-1).expand(*x.shape, count - 1)], -1).cumprod(-1)

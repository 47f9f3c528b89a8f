"""QR decompositions, and the products of reflections in which LAPACK keeps their Q."""

from __future__ import annotations

import warnings
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops._arguments import delivered
from tensorflow_lite_clone.ops._products import expect_tensors
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops._spectral import (
    adjoint,
    as_wide,
    diagonal,
    expect_matrices,
    expect_wide,
    on_diagonal,
)
from tensorflow_lite_clone.ops.create import eye
from tensorflow_lite_clone.ops.linear_algebra import inv
from tensorflow_lite_clone.ops.matmul import matmul
from tensorflow_lite_clone.tensor import Tensor

_LinalgQr = result_type("linalg_qr", "Q", "R")
_Qr = result_type("qr", "Q", "R")
_Geqrf = result_type("geqrf", "a", "tau")


class Qr(Op):
    """A = Q R with orthonormal columns in Q and R upper triangular.

    The gradient: D. A. O. Roberts and L. R. Roberts, "QR and LQ decomposition matrix
    backpropagation algorithms for square, wide, and deep matrices", 2020. A wide matrix is a
    square one, [X Y] = Q [U V], and Y = Q V.
    """

    label = "LinalgQr"

    def forward(F, x, *, mode):
        q, r = F.linalg.qr(x, mode="complete" if mode == "complete" else "reduced")
        return (F.zeros((0,), dtype=x.dtype), r) if mode == "r" else (q, r)

    def backward_x(F, g, out0, out1, *, mode):
        if mode == "r":
            raise RuntimeError(
                "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. "
                "Please use linalg.qr(A, mode='reduced') if you are going to differentiate "
                "through linalg.qr."
            )
        gq, gr = g
        rows, columns = out0.shape[-2], out1.shape[-1]
        if mode == "complete" and rows > columns:
            raise RuntimeError(
                "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
            )
        if rows >= columns:
            return _square_gradient(F, gq, gr, out0, out1)
        y = F.matmul(out0, out1[..., rows:])
        gv = gr[..., rows:]
        gq = gq + F.matmul(y, adjoint(F, gv))
        gx = _square_gradient(F, gq, gr[..., :rows], out0, out1[..., :rows])
        return F.concat([gx, F.matmul(out0, gv)], axis=-1)


def _square_gradient(F: Any, gq: Any, gr: Any, q: Any, r: Any) -> Any:
    """``(gQ + Q M) R^-H``, where M is Hermitian with the lower triangle of R gR^H - gQ^H Q."""
    middle = F.matmul(r, adjoint(F, gr)) - F.matmul(adjoint(F, gq), q)
    lower = F.tril(middle, k=-1)
    real = F.real(middle) if middle.dtype.kind == "c" else middle
    hermitian = lower + adjoint(F, lower) + on_diagonal(F, diagonal(F, real))
    # Scaled first, as a singular R makes NaN then and no error.
    sizes = diagonal(F, r)
    inverse = F.inv(r / sizes[..., None]) / sizes[..., None, :]
    return F.matmul(gq + F.matmul(q, hermitian), adjoint(F, inverse))


@public("linalg")
def qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> Any:
    """The factors ``Q, R`` of (..., m, n) matrices: orthonormal columns, upper triangular.

    With k = min(m, n) their shapes are (..., m, k) and (..., k, n) for `mode` ``reduced``,
    (..., m, m) and (..., m, n) for ``complete``; with ``r`` Q is empty. Of float32, float64 and
    their complex kin. The diagonal of R may be negative. There is no gradient for ``r``, nor for
    ``complete`` where m > n: RuntimeError in the backward pass.
    """
    expect_matrices("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), "
            "'r', or 'complete'"
        )
    A = as_wide("linalg.qr", Qr, A)
    return delivered("linalg_qr", _LinalgQr(apply(Qr, A, mode=mode)), out)


@public("torch", "method", names=("qr",))
def torch_qr(input: Tensor, some: bool = True, *, out: Any = None) -> Any:
    """Deprecated form of `linalg.qr`: reduced if `some`, complete otherwise."""
    warnings.warn(
        "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future "
        "release. The boolean parameter 'some' has been replaced with a string parameter 'mode'.",
        stacklevel=2,
    )
    return delivered("qr", _Qr(qr(input, "reduced" if some else "complete")), out)


class Geqrf(Op):
    """R, and below its diagonal the reflections whose product is Q, with their scalars."""

    def forward(F, x):
        return F.geqrf(x)

    def backward_x(F, g):
        raise NotImplementedError("the derivative for 'geqrf' is not implemented.")


@public("torch", "method")
def geqrf(input: Tensor, *, out: Any = None) -> Any:
    """LAPACK's QR decomposition of (..., m, n) matrices: ``a``, and ``tau`` of min(m, n) numbers.

    The upper triangle of ``a`` is R. Below the diagonal stand the vectors whose products of
    reflections `householder_product` makes Q of. Without a gradient, as in PyTorch.
    """
    expect_matrices("torch.geqrf", input)
    input = as_wide("torch.geqrf", Geqrf, input)
    return delivered("geqrf", _Geqrf(apply(Geqrf, input)), out)


def _reflections(input: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """V and T with ``H1 H2 ... Hk = I - V T V^H``, where ``Hi = I - tau_i v_i v_i^H``.

    v_i is column i of `input` below the diagonal, with a one on it. T is the inverse of
    ``diag(1 / tau) + U`` for the upper triangle U of V^H V; here without dividing by tau, which
    may be 0. Joffrain, Low, Quintana-Orti, van de Geijn and Van Zee, "Accumulating Householder
    transformations, revisited", 2006.
    """
    count = tau.shape[-1]
    one = eye(input.shape[-2], count, dtype=input.dtype, device=input.device)
    v = input[..., :count].tril(-1) + one
    upper = matmul(v.mH, v).triu(1)
    scales = tau.unsqueeze(-1)
    small = eye(count, dtype=input.dtype, device=input.device)
    return v, matmul(inv(small + scales * upper), small * scales)


@public("linalg")
@public("torch", "method", names=("orgqr",))
def householder_product(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first n columns of ``H1 H2 ... Hk`` for (..., m, n) `input` and (..., k) `tau`.

    ``Hi = I - tau_i v_i v_i^H``, where v_i is column i of `input` from below the diagonal on,
    with a one above and zeros there: Q, if both come from `geqrf`. RuntimeError unless
    m >= n >= k.
    """
    name = "torch.linalg.householder_product"
    expect_tensors("linalg_householder_product", input, tau)
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    rows, columns = input.shape[-2:]
    if rows < columns:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if not tau.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if columns < tau.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    _expect_batch(name, input, tau)
    if tau.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {tau.dtype.short_name} does not match input dtype "
            f"{input.dtype.short_name}"
        )
    expect_wide(name, input)
    v, t = _reflections(input, tau)
    one = eye(rows, columns, dtype=input.dtype, device=input.device)
    result = one - matmul(v, matmul(t, v[..., :columns, :].mH))
    return delivered("householder_product", result, out)


def _expect_batch(name: str, input: Tensor, tau: Tensor) -> None:
    if tau.ndim != input.ndim - 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal "
            f"to {tau.ndim} and input.ndim is equal to {input.ndim}"
        )
    if tau.shape[:-1] != input.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
            f"{list(tau.shape[:-1])}"
        )


@public("torch", "method")
def ormqr(
    input: Tensor,
    tau: Tensor,
    other: Tensor,
    left: bool = True,
    transpose: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """``Q @ other``, or ``other @ Q`` unless `left`, with Q or its adjoint if `transpose`.

    Q is the whole (..., m, m) product of the reflections in `input` and `tau`, see
    `householder_product`; it is not formed. RuntimeError for shapes that do not fit.
    """
    name = "torch.ormqr"
    expect_tensors("ormqr", input, tau, other)
    for word, value in (("input", input), ("other", other)):
        if value.ndim < 2:
            raise RuntimeError(f"{name}: {word} must have at least 2 dimensions.")
    if not tau.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    axis = -2 if left else -1
    if other.shape[axis] < tau.shape[-1]:
        raise RuntimeError(
            f"{name}: other.shape[{axis}] must be greater than or equal to tau.shape[-1]"
        )
    if other.shape[axis] != input.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{axis}] must be equal to input.shape[-2]")
    if tau.shape[-1] > min(other.shape[axis], input.shape[-1]):
        raise RuntimeError(
            f"{name}: tau.shape[-1] must be equal to min(other.shape[{axis}], input.shape[-1])"
        )
    _expect_batch(name, input, tau)
    if other.ndim != input.ndim:
        raise RuntimeError(
            f"{name}: Expected other to have the same number of dimensions as input, but got "
            f"other.ndim equal to {other.ndim} and input.ndim is equal to {input.ndim}"
        )
    if other.shape[:-2] != input.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of other to be equal to input.shape[:-2], but got "
            f"{list(other.shape[:-2])}"
        )
    for word, value in (("tau", tau), ("other", other)):
        if value.dtype is not input.dtype:
            raise RuntimeError(
                f"{name}: Expected input and {word} to have the same dtype, but input has dtype "
                f"{input.dtype.short_name} and {word} has dtype {value.dtype.short_name}"
            )
    expect_wide(name, input)
    v, t = _reflections(input, tau)
    t = t.mH if transpose else t
    if left:
        change = matmul(v, matmul(t, matmul(v.mH, other)))
    else:
        change = matmul(matmul(matmul(other, v), t), v.mH)
    return delivered("ormqr", other - change, out)

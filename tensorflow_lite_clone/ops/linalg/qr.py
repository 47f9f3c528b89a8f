"""QR decompositions."""

from __future__ import annotations

import warnings
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import column_major
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops.linalg._matrices import adjoint, expect_matrices
from tensorflow_lite_clone.ops.linalg._spectral import as_wide, diagonal, on_diagonal
from tensorflow_lite_clone.ops.reduce._arguments import delivered
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

    cost = costs.Cost(costs.qr_flops)
    layout = column_major
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
    inverse = F.inv(r / sizes[..., None])[0] / sizes[..., None, :]
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
    A = as_wide("linalg.qr", A)
    return delivered("linalg_qr", _LinalgQr(apply(Qr, A, mode=mode)), out)


@public("torch", "method", names=("qr",))
def torch_qr(input: Tensor, some: bool = True, *, out: Any = None) -> Any:
    """Deprecated form of `linalg.qr`: reduced if `some`, complete otherwise."""
    warnings.warn(
        "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future "
        "release. The boolean parameter 'some' has been replaced with a string parameter 'mode'.",
        stacklevel=level_outside(),
    )
    return delivered("qr", _Qr(qr(input, "reduced" if some else "complete")), out)


class Geqrf(Op):
    """R, and below its diagonal the reflections whose product is Q, with their scalars."""

    primitive = "geqrf"
    layout = column_major

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
    input = as_wide("torch.geqrf", input)
    return delivered("geqrf", _Geqrf(apply(Geqrf, input)), out)
